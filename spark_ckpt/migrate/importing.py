"""Import: the state of a stopped query moves from a provider of Spark to spark-ckpt (docs/moving.md)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from spark_ckpt.checkpoint.batch import SparkBatch, StoreState
from spark_ckpt.checkpoint.chains import Chain, ChainTable
from spark_ckpt.checkpoint.publish import Publisher, checkpoint_of_operation
from spark_ckpt.checkpoint.segment_table import SegmentTable
from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.config import PROVIDER_CLASS, STORE
from spark_ckpt.format.key_groups import default_max_parallelism, factors
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.format.segment_ref import Blocks, SegmentRef
from spark_ckpt.location.import_marker import MARKER, ImportMarker, read_marker
from spark_ckpt.location.open_store import opened_store
from spark_ckpt.migrate.errors import TransferRefusedError
from spark_ckpt.migrate.recent_writes import check_quiet
from spark_ckpt.migrate.spark_copy import copy_query_files
from spark_ckpt.migrate.state_jobs import DescribedStore, ImportedPartition, SourceState, StateJobs
from spark_ckpt.migrate.stopped_query import PROVIDERS, StoppedQuery, check_unchanged, read_stopped_query
from spark_ckpt.migrate.transferred import TransferredStore
from spark_ckpt.operations.errors import TargetNotEmptyError
from spark_ckpt.operations.restore import as_hadoop_writes
from spark_ckpt.progress import Progress
from spark_ckpt.spark_files.logs import QUERY, BatchLog, SparkLog, checksum_name, entry_name, operator_directory
from spark_ckpt.spark_files.operators import JOIN
from spark_ckpt.spark_files.schemas import with_nullable_columns
from spark_ckpt.storage import Storage, copy_file

Imported: TypeAlias = Mapping[StoreKey, Sequence[ImportedPartition]]
"""The imported partitions of all stores."""


@dataclass(frozen=True, slots=True)
class Import:
    """Result of an import, or of its dry run.

    Args:
        source: the location with the earlier provider's state.
        target: the location with the imported state; the same for an import in place.
        provider: short name of the earlier provider: `HDFS` or `RocksDB`.
        batch_id: last committed batch.
        has_begun: True if the next batch has begun; it is repeated with the same offsets.
        checkpoint_format: format of Spark's state stores, 1 or 2.
        checkpoint_id: the new checkpoint; None after a dry run.
        stores: stores of all stateful operators.
    """

    source: str
    target: str
    provider: str
    batch_id: int
    has_begun: bool
    checkpoint_format: int
    checkpoint_id: int | None
    stores: tuple[TransferredStore, ...]

    @property
    def is_in_place(self) -> bool:
        """True if the query keeps its location."""
        return self.source == self.target


def import_state(
    source: Storage,
    jobs: StateJobs,
    target: Storage | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    force: bool = False,
    dry_run: bool = False,
    clock: Clock | None = None,
    progress: Progress = lambda done, of: None,
) -> Import:
    """Imports the state of a stopped query. The query then continues with spark-ckpt from the same batch.

    In place, everything is written below `ckpt/`; then one step switches the query: the replacement of the newest entry
    of the offset log, from which a start takes the provider. Until then the query is the earlier provider's,
    unchanged. Into a new location, the last committed batch's commit comes last: without it no query starts there, and
    the source never changes.

    Args:
        source: storage of the query's checkpoint location.
        jobs: Spark jobs on that location.
        target: storage of a new, empty location; by default the import is in place.
        settings: settings of the query that begin with `spark.sql.streaming.stateStore.ckpt.`.
        force: True to proceed although the files are young.
        dry_run: True to check the logs, operators and schemas, and write nothing.
        clock: source of time.
        progress: called with the number of finished tasks and the total.

    Raises:
        TransferRefusedError: there is nothing to import, or the query continued during the import. Nothing was
            switched.
        QueryMayRunError: the files are young. Nothing was changed.
        TargetNotEmptyError: the new location is not empty.
        StateTransferError: see `StateJobs`. Nothing was switched.
        SparkLogFormatError: one of Spark's files is damaged.
        SettingError, FencedError, StorageError, UnknownOutcomeError: see those classes.
    """
    clock = clock or SystemClock()
    query = read_stopped_query(source)
    _check_importable(query)
    if target is not None and target.list(""):
        raise TargetNotEmptyError(target.location)
    if not force:
        check_quiet(source, query, clock)
    stores = jobs.stores(source_state(query))
    if not stores:
        raise TransferRefusedError(
            source.location, "the query has no stateful operator, so there is no state to import"
        )
    if dry_run:
        return _result(source, target, query, stores, None, None)
    importer = _Importer(source, jobs, settings or {}, clock, progress)
    return importer.in_place(query, stores) if target is None else importer.into(target, query, stores)


def source_state(query: StoppedQuery) -> SourceState:
    """The state of a query's last committed batch.

    Raises:
        TransferRefusedError: as in `StoppedQuery.settings`.
    """
    ids = query.commit.metadata.get("stateUniqueIds")
    return SourceState(
        query.batch_id,
        query.settings(),
        None if ids is None else {int(operator): ids[operator] for operator in ids},
    )


def _check_importable(query: StoppedQuery) -> None:
    if query.provider == PROVIDER_CLASS:
        raise TransferRefusedError(
            query.location,
            "its state belongs to spark-ckpt already, so there is nothing to import. Start the query",
        )
    if query.provider not in PROVIDERS:
        raise TransferRefusedError(
            query.location,
            f"its state belongs to {query.provider or 'an unknown provider'}; the state of {' and '.join(PROVIDERS)} "
            "can be imported",
        )


@dataclass(frozen=True, slots=True)
class _Importer:
    """One import."""

    source: Storage
    jobs: StateJobs
    settings: Mapping[str, str]
    clock: Clock
    progress: Progress

    def in_place(self, query: StoppedQuery, stores: Sequence[DescribedStore]) -> Import:
        """Imports below `ckpt/`, and switches the query by the newest entry of its offset log."""
        before = self._entries_before(query)
        record, imported = self._write_state(self.source, query, stores)
        marker = ImportMarker(query.batch_id, query.provider or "", record.id, before)
        self.source.write_atomic(MARKER, marker.encode())
        check_unchanged(self.source, query)
        widen_join_schemas(self.source, stores)
        ours = query.with_provider(PROVIDER_CLASS)
        for batch in sorted(before):  # the newest is the switch; a rollback may need the other
            replace_offsets(self.source, batch, ours[batch].encode())
        return _result(self.source, None, query, stores, imported, record.id)

    def _entries_before(self, query: StoppedQuery) -> dict[int, bytes]:
        """The entries to replace. An interrupted import of the same state may have replaced the older one."""
        entries = {batch: query.entries[batch] for batch in query.entries if batch >= query.batch_id}
        marker = read_marker(self.source)
        if marker is not None and marker.batch_id == query.batch_id and query.has_begun:
            entries[query.batch_id] = marker.entries.get(query.batch_id, entries[query.batch_id])
        return entries

    def into(self, target: Storage, query: StoppedQuery, stores: Sequence[DescribedStore]) -> Import:
        """Imports into a new location. Its last commit comes last."""
        out = SparkLog(target)
        # From here on a start uses our provider, and finds no state. Without an entry, Spark would begin at batch 0.
        ours = query.with_provider(PROVIDER_CLASS)
        for batch in sorted(ours, reverse=True):
            out.add_offsets(batch, ours[batch])
        target.write_atomic(MARKER, ImportMarker(query.batch_id, query.provider or "", None, {}).encode())
        copy_file(self.source, QUERY, target, QUERY)
        copy_query_files(self.source, target, query.batch_id)
        widen_join_schemas(target, stores)
        record, imported = self._write_state(target, query, stores)
        check_unchanged(self.source, query)
        log = SparkLog(self.source)
        for batch in log.batches(BatchLog.COMMITS)[-2:]:
            out.add_commit(batch, log.commit(batch))
        target.delete(MARKER)
        return _result(self.source, target, query, stores, imported, record.id)

    def _write_state(
        self, target: Storage, query: StoppedQuery, stores: Sequence[DescribedStore]
    ) -> tuple[CheckpointRecord, Imported]:
        """Writes the base snapshots, and the checkpoint that consists of them."""
        started_ms = self.clock.now_ms()
        state = source_state(query)
        parallelism = max(store.partitions for store in stores)
        max_parallelism = default_max_parallelism(parallelism)
        numbering = factors(parallelism, max_parallelism)
        imported = self.jobs.import_state(state, as_hadoop_writes(target.location), numbering, self.progress)
        table = _chains(query.version, stores, imported)
        offsets = query.with_provider(PROVIDER_CLASS)[query.batch_id]
        # A location without records would count as one that has lost its log.
        with opened_store(target, {STORE.key: "filesystem", **self.settings}, "import", self.clock) as (store, owner):
            store.recover()
            store.claim()
            batch = SparkBatch(
                batch_id=query.batch_id,
                version=query.version,
                query_id=owner.query_id,
                run_id=owner.run_id,
                spark_version=self.jobs.spark_version,
                checkpoint_format=query.checkpoint_format,
                max_parallelism=max_parallelism,
                key_group_factors=tuple(numbering),
                sources=tuple(offsets.offsets),
                stores=tuple(_state(described, table[described.key]) for described in stores),
            )
            now_ms = self.clock.now_ms()
            new = checkpoint_of_operation(batch, table, offsets, (), None, started_ms, now_ms)
            new.new_state_bytes = new.task_bytes = sum(part.size for parts in imported.values() for part in parts)
            return Publisher(target, store, owner).publish(new, now_ms), imported


def replace_offsets(storage: Storage, batch_id: int, data: bytes) -> None:
    """Replaces an entry of the offset log in one step.

    Raises:
        StorageError: the entry cannot be replaced, or the outcome is unknown.
    """
    _replace(storage, entry_name(BatchLog.OFFSETS, batch_id), data)


def widen_join_schemas(storage: Storage, stores: Sequence[DescribedStore]) -> None:
    """Makes the columns nullable in the schemas of joins that a Spark before 4.0 began.

    Later releases of Spark plan some of these columns as nullable, and would refuse the old schemas. The widened ones
    suit the release that wrote them as well.

    Args:
        storage: storage of the checkpoint location.
        stores: its stores.

    Raises:
        StateSchemaError: a schema file is damaged.
        StorageError: a schema file cannot be replaced.
    """
    for store in stores:
        directory = operator_directory(store.operator_id)
        # `StreamingSymmetricHashJoinExec`; since Spark 4.0, operators have metadata.
        if store.name == JOIN and not storage.list(f"{directory}/_metadata"):
            name = f"{directory}/0/{store.store}/_metadata/schema"
            content = storage.read(name)
            widened = with_nullable_columns(content, storage.describe(name))
            if widened != content:
                _replace(storage, name, widened)


def _replace(storage: Storage, name: str, data: bytes) -> None:
    storage.delete(checksum_name(name))  # Hadoop would hold the earlier checksum against the new bytes
    storage.write_atomic(name, data)


def _chains(version: int, stores: Sequence[DescribedStore], imported: Imported) -> ChainTable:
    return {
        described.key: [
            Chain(_state_id(described, partition), part.rows, _base(part, version))
            for partition, part in enumerate(imported[described.key])
        ]
        for described in stores
    }


def _base(part: ImportedPartition, version: int) -> tuple[SegmentRef, ...]:
    if part.path is None:
        return ()
    return (SegmentRef(0, version, Blocks(part.key_groups, part.offsets), part.size, part.path, part.size),)


def _state_id(store: DescribedStore, partition: int) -> str:
    """The id in the query's commit, so that the commit stays as it is; a new one in checkpoint format 1."""
    return str(uuid.uuid4()) if store.state_ids is None else store.state_ids[partition]


def _state(store: DescribedStore, chains: Sequence[Chain]) -> StoreState:
    return StoreState(
        store.operator_id,
        store.store,
        store.name,
        store.state_format_version,
        tuple(chain.rows for chain in chains),
        tuple(chain.state_id for chain in chains),
        SegmentTable.of(chains),
    )


def _result(
    source: Storage,
    target: Storage | None,
    query: StoppedQuery,
    stores: Sequence[DescribedStore],
    imported: Imported | None,
    checkpoint_id: int | None,
) -> Import:
    return Import(
        source.location,
        (target or source).location,
        PROVIDERS[query.provider or ""],
        query.batch_id,
        query.has_begun,
        query.checkpoint_format,
        checkpoint_id,
        tuple(_described(store, None if imported is None else imported[store.key]) for store in stores),
    )


def _described(store: DescribedStore, parts: Sequence[ImportedPartition] | None) -> TransferredStore:
    if parts is None:
        return TransferredStore.of(store, None, None, None)
    rows, size = sum(part.rows for part in parts), sum(part.size for part in parts)
    return TransferredStore.of(store, [part.families for part in parts], rows, size)
