"""Export: the state of a stopped query moves from spark-ckpt to a provider of Spark, into a new location."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_ckpt.checkpoint.load import CheckpointState, read_checkpoint
from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.config import PROVIDER_CLASS
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.location.driver_liveness import HasEnded, check_not_running, never_ended
from spark_ckpt.location.open_store import opened_store
from spark_ckpt.migrate.errors import TransferRefusedError
from spark_ckpt.migrate.importing import source_state
from spark_ckpt.migrate.spark_copy import copy_query_files
from spark_ckpt.migrate.state_jobs import DescribedStore, ExportedPartition, SourceState, StateJobs
from spark_ckpt.migrate.stopped_query import (
    HDFS_PROVIDER,
    PROVIDERS,
    ROCKSDB_PROVIDER,
    StoppedQuery,
    check_unchanged,
    read_stopped_query,
)
from spark_ckpt.migrate.transferred import TransferredStore
from spark_ckpt.operations.errors import TargetNotEmptyError
from spark_ckpt.operations.restore import as_hadoop_writes
from spark_ckpt.progress import Progress
from spark_ckpt.spark_files.entries import CommitEntry
from spark_ckpt.spark_files.logs import QUERY, BatchLog, SparkLog
from spark_ckpt.storage import Storage, copy_file

FORMATS: Mapping[str, str] = {"spark-hdfs": HDFS_PROVIDER, "spark-rocksdb": ROCKSDB_PROVIDER}
"""Providers by the name of their format."""

UNFINISHED = b"A spark-ckpt export into this location is unfinished. If it was interrupted, delete the location.\n"
"""Content of the file `metadata` until the export is complete: Spark fails to read it, and shows it."""


@dataclass(frozen=True, slots=True)
class Export:
    """Result of an export, or of its dry run.

    Args:
        source: the location with the state of spark-ckpt, unchanged.
        target: the location with the exported state.
        provider: short name of the provider: `HDFS` or `RocksDB`.
        dry_run: True if nothing was written.
        checkpoint_id: the exported checkpoint.
        batch_id: its batch, the last committed one.
        has_begun: True if the next batch has begun; it is repeated with the same offsets.
        checkpoint_format: format of Spark's state stores in the target, 1 or 2.
        stores: stores of all stateful operators.
    """

    source: str
    target: str
    provider: str
    dry_run: bool
    checkpoint_id: int
    batch_id: int
    has_begun: bool
    checkpoint_format: int
    stores: tuple[TransferredStore, ...]


def export_state(
    source: Storage,
    target: Storage,
    jobs: StateJobs,
    state_format: str,
    *,
    settings: Mapping[str, str] | None = None,
    force: bool = False,
    dry_run: bool = False,
    has_ended: HasEnded = never_ended,
    clock: Clock | None = None,
    progress: Progress = lambda done, of: None,
) -> Export:
    """Writes the state of a stopped query with a provider of Spark. The query then continues with that provider.

    The file `metadata` of the new location comes last. Until then it holds a text that Spark fails to read, so no query
    starts there. The source never changes.

    Args:
        source: storage of the query's checkpoint location.
        target: storage of a new, empty location.
        jobs: Spark jobs on the source.
        state_format: a key of `FORMATS`.
        settings: settings of the query that begin with `spark.sql.streaming.stateStore.ckpt.`.
        force: True to proceed although a driver is running here.
        dry_run: True to check the logs, operators and schemas, and write nothing.
        has_ended: tells whether a run has ended although its driver's process is running.
        clock: source of time.
        progress: called with the number of finished tasks and the total.

    Raises:
        TransferRefusedError: the state does not belong to spark-ckpt, the provider cannot hold it, or the query
            continued during the export.
        LocationInUseError: see `force`.
        TargetNotEmptyError: the new location is not empty.
        StateTransferError: see `StateJobs`.
        DamagedCheckpointError, SettingError, SparkLogFormatError, StorageError: see those classes.
    """
    provider = FORMATS[state_format]
    query = read_stopped_query(source)
    if query.provider != PROVIDER_CLASS:
        raise TransferRefusedError(
            query.location, f"its state belongs to {query.provider or 'an unknown provider'}, so there is no export"
        )
    if target.list(""):
        raise TargetNotEmptyError(target.location)
    checkpoint = _checkpoint_of(source, query, settings or {}, None if force else has_ended, clock or SystemClock())
    state = _state_of(query, checkpoint)
    stores = jobs.stores(state)
    _check_can_hold(query, provider, stores)
    exporter = _Exporter(source, target, jobs, query, provider)
    exported = None if dry_run else exporter.run(state, stores, progress)
    return _result(exporter, checkpoint, stores, exported)


def _checkpoint_of(
    source: Storage, query: StoppedQuery, settings: Mapping[str, str], has_ended: HasEnded | None, clock: Clock
) -> CheckpointState:
    """The checkpoint of the last committed batch.

    Args:
        has_ended: as in `export_state`; None for no check of running drivers.
    """
    with opened_store(source, settings, "export", clock) as (store, _):
        store.recover()
        if has_ended is not None:
            check_not_running(source.location, store, has_ended)
        record = store.latest_of_version(query.version)
    if record is None:
        raise TransferRefusedError(
            query.location,
            f"there is no checkpoint of batch {query.batch_id}, the last in Spark's commit log. If its completed "
            "checkpoints are in ZooKeeper, pass --conf with the query's settings",
        )
    return read_checkpoint(source, record)


def _state_of(query: StoppedQuery, checkpoint: CheckpointState) -> SourceState:
    partitions = {key.operator_id: len(chains) for key, chains in checkpoint.table.items()}
    state = source_state(query)
    return SourceState(state.batch_id, state.settings, state.state_ids, partitions)


def _check_can_hold(query: StoppedQuery, provider: str, stores: Sequence[DescribedStore]) -> None:
    if not stores:
        raise TransferRefusedError(query.location, "the query has no stateful operator, so there is no state to export")
    for store in stores:
        if provider == HDFS_PROVIDER and store.has_families:
            raise TransferRefusedError(
                query.location,
                f"operator {store.operator_id} ({store.name}) uses column families, which HDFSBackedStateStoreProvider "
                "does not support. Use --format spark-rocksdb",
            )


@dataclass(frozen=True, slots=True)
class _Exporter:
    """One export."""

    source: Storage
    target: Storage
    jobs: StateJobs
    query: StoppedQuery
    provider: str

    @property
    def checkpoint_format(self) -> int:
        """The query's; HDFSBackedStateStoreProvider supports only format 1."""
        return 1 if self.provider == HDFS_PROVIDER else self.query.checkpoint_format

    def run(
        self, state: SourceState, stores: Sequence[DescribedStore], progress: Progress
    ) -> Mapping[StoreKey, Sequence[ExportedPartition]]:
        """Writes the new location."""
        query, target = self.query, self.target
        target.write_atomic(QUERY, UNFINISHED)
        location = as_hadoop_writes(target.location)
        exported = self.jobs.export_state(state, location, self.provider, self.checkpoint_format, progress)
        copy_query_files(self.source, target, query.batch_id, state.partitions)
        out = SparkLog(target)
        for batch, entry in query.with_provider(self.provider).items():
            out.add_offsets(batch, entry)
        log = SparkLog(self.source)
        for batch in log.batches(BatchLog.COMMITS)[-2:]:
            commit = log.commit(batch)
            out.add_commit(batch, self._commit(commit, stores, exported) if batch == query.batch_id else commit)
        check_unchanged(self.source, query)
        copy_file(self.source, QUERY, target, QUERY)
        return exported

    def _commit(
        self,
        commit: CommitEntry,
        stores: Sequence[DescribedStore],
        exported: Mapping[StoreKey, Sequence[ExportedPartition]],
    ) -> CommitEntry:
        """The commit with the ids of the exported state."""
        if self.query.checkpoint_format == 1:
            return commit
        if self.checkpoint_format == 1:
            return commit.without_state_ids()
        ids: dict[int, list[list[str]]] = {}
        for store in stores:  # by name, which is Spark's order of a join's stores
            of_operator = ids.setdefault(store.operator_id, [[] for _ in range(store.partitions)])
            for of_partition, part in zip(of_operator, exported[store.key], strict=True):
                assert part.state_id is not None
                of_partition.append(part.state_id)
        return commit.with_state_ids(ids)


def _result(
    exporter: _Exporter,
    checkpoint: CheckpointState,
    stores: Sequence[DescribedStore],
    exported: Mapping[StoreKey, Sequence[ExportedPartition]] | None,
) -> Export:
    assert checkpoint.record is not None
    query = exporter.query
    described = []
    for store in stores:
        rows = sum(chain.rows for chain in checkpoint.table[store.key])
        parts = None if exported is None else [part.families for part in exported[store.key]]
        described.append(TransferredStore.of(store, parts, rows, None))
    return Export(
        exporter.source.location,
        exporter.target.location,
        PROVIDERS[exporter.provider],
        exported is None,
        checkpoint.record.id,
        query.batch_id,
        query.has_begun,
        exporter.checkpoint_format,
        tuple(described),
    )
