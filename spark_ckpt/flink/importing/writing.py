"""The writing part of an import: rows, check, checkpoint, and the entries of Spark's logs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from spark_ckpt.checkpoint.batch import state_ids
from spark_ckpt.checkpoint.chains import Chain, ChainTable
from spark_ckpt.checkpoint.publish import Publisher, checkpoint_of_operation, inline_state_in_file, with_chains
from spark_ckpt.clock import Clock
from spark_ckpt.completed import CheckpointRecord, CompletedCheckpointStore, Owner
from spark_ckpt.errors import StorageError
from spark_ckpt.flink.importing.checking import RowDigest, check_rows
from spark_ckpt.flink.importing.errors import FlinkImportRefusedError, FlinkImportRowError
from spark_ckpt.flink.importing.plan import ImportPlan
from spark_ckpt.flink.importing.result import FlinkImport
from spark_ckpt.flink.importing.rows import RowEncoder
from spark_ckpt.flink.tables.read import FlinkScan
from spark_ckpt.progress import Progress
from spark_ckpt.spark_files.errors import SparkLogEntryExistsError
from spark_ckpt.spark_files.logs import SparkLog
from spark_ckpt.state.catalog import StateCatalog, Store
from spark_ckpt.state_writing.bases import write_bases
from spark_ckpt.state_writing.errors import RepeatedKeyError
from spark_ckpt.state_writing.spill import RowSpill
from spark_ckpt.state_writing.targets import Target, TargetKind, families_of


class ImportWriter:
    """Writer of one import.

    Args:
        plan: the checked import.
        store: completed checkpoints of the query, recovered.
        owner: owner of the claim.
        clock: source of time.
        progress: called with the number of steps done and the total.
    """

    def __init__(
        self, plan: ImportPlan, store: CompletedCheckpointStore, owner: Owner, clock: Clock, progress: Progress
    ) -> None:
        self._plan = plan
        self._location = plan.location
        self._storage = plan.location.storage
        self._store = store
        self._owner = owner
        self._clock = clock
        self._progress = progress
        self._files: list[str] = []
        self._digests: dict[str, dict[str, RowDigest]] = {}
        keys = {encoder.pair.target.store.state.key for encoder in plan.encoders}
        self._stores = [each for each in self._location.catalog.stores if each.state.key in keys]
        self._done = 0
        self._steps = 2 * len(plan.encoders) + sum(len(each.chains) for each in self._stores)

    def run(self) -> FlinkImport:
        """Writes the rows, compares them with Flink's, and lets the query continue from them.

        Raises:
            SparkCkptError: see `import_flink_savepoint`.
        """
        started_ms = self._clock.now_ms()
        try:
            self._check_unmapped()
            table: ChainTable = {each.state.key: list(each.chains) for each in self._location.catalog.stores}
            for each in self._stores:
                table[each.state.key] = self._write(each)
            self._check(table)
            sizes = sum(chain.size for each in self._stores for chain in table[each.state.key])
        except BaseException:
            for name in self._files:
                with suppress(StorageError):
                    self._storage.delete(name)
            raise
        record = self._publish(table, sizes, started_ms)
        rows = {
            encoder.pair.target.title: self._digests[encoder.pair.target.title][encoder.pair.target.family.name].rows
            for encoder in self._plan.encoders
        }
        return self._plan.result(record.id, rows, record.new_bytes)

    def _check_unmapped(self) -> None:
        """States without a target may stay behind if they have no rows."""
        for state, error in self._plan.mapping.open:
            if next(FlinkScan(self._plan.flink, state).batches(), None) is not None:
                raise error

    def _write(self, store: Store) -> list[Chain]:
        encoders = [each for each in self._plan.encoders if each.pair.target.store.state.key == store.state.key]
        targets = [encoder.pair.target for encoder in encoders]
        families = families_of(targets)
        factors = self._location.catalog.batch.key_group_factors
        with RowSpill(len(store.chains), factors, list(families)) as spill:
            for encoder in encoders:
                self._read(encoder, spill)
                self._step()
            version, written = self._location.version, self._files.append
            try:
                partitions = ([table] for table in spill.partitions())
                return write_bases(self._storage, partitions, families, version, written, self._step)
            except RepeatedKeyError as e:
                title = next(each.title for each in targets if e.family in _names(each))
                reason = "two rows of Flink have this key in the query"
                raise FlinkImportRowError(title, "key", e.key, reason) from None

    def _read(self, encoder: RowEncoder, spill: RowSpill) -> None:
        target = encoder.pair.target
        names = [target.family.name, *(each.name for each in target.beside if target.kind is not TargetKind.LIST)]
        digests = {name: RowDigest(target.kind is TargetKind.LIST) for name in names}
        for batch in FlinkScan(self._plan.flink, encoder.pair.state).batches():
            for rows in encoder.encode(batch):
                digests[rows.family.name].add(rows.keys, rows.values)
                spill.add(rows)
        self._digests[target.title] = digests

    def _check(self, table: ChainTable) -> None:
        written = self._with(self._location.catalog, table)
        for encoder in self._plan.encoders:
            check_rows(written, encoder.pair.target, self._digests[encoder.pair.target.title])
            self._step()

    def _with(self, catalog: StateCatalog, table: ChainTable) -> StateCatalog:
        """The state with other chains."""
        batch = with_chains(catalog.batch, table)
        stores = tuple(
            replace(store, state=state, chains=table[state.key])
            for store, state in zip(catalog.stores, batch.stores, strict=True)
        )
        return replace(catalog, batch=batch, stores=stores)

    def _publish(self, table: ChainTable, sizes: int, started_ms: int) -> CheckpointRecord:
        """Publishes the checkpoint and ends its batch. From the marker on, no query starts before the end of this."""
        location, log = self._location, SparkLog(self._storage)
        self._store.claim()
        if self._store.latest_of_version(location.version - 1) != location.record:
            raise FlinkImportRefusedError(self._storage.location, "the query was started meanwhile. Stop it first")
        location.mark()
        try:
            log.add_offsets(location.batch_id, self._plan.offsets)
        except SparkLogEntryExistsError:
            location.unmark()
            raise
        inline = inline_state_in_file(table)
        described = with_chains(location.catalog.batch, table)
        batch = replace(described, batch_id=location.batch_id, version=location.version, run_id=self._owner.run_id)
        now_ms = self._clock.now_ms()
        new = checkpoint_of_operation(batch, table, self._plan.offsets, (), inline, started_ms, now_ms)
        new.new_state_bytes += sizes
        new.task_bytes += sizes
        record = Publisher(self._storage, self._store, self._owner).publish(new, now_ms)
        commit = location.commit.with_state_ids(state_ids(batch)) if location.commit.state_ids else location.commit
        try:
            # Is the entry still ours? Without our log writer, Spark's does not create exclusively on an object store.
            log.add_offsets(location.batch_id, self._plan.offsets)
            log.add_commit(location.batch_id, commit)
        except SparkLogEntryExistsError:
            self._store.subsume(record)
            raise
        location.unmark()
        return record

    def _step(self) -> None:
        self._done += 1
        self._progress(self._done, self._steps)


def _names(target: Target) -> set[str]:
    """Names of the column families of a target."""
    return {target.family.name, *(other.name for other in target.beside)}
