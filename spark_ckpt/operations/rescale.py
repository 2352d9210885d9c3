"""Rescale: a new number of partitions for a stopped query, by metadata only (docs/operations.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from spark_ckpt.checkpoint.batch import SparkBatch, state_ids
from spark_ckpt.checkpoint.publish import Publisher, checkpoint_of_operation
from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed import CheckpointRecord, CompletedCheckpointStore
from spark_ckpt.location.driver_liveness import check_not_running
from spark_ckpt.location.open_store import opened_store
from spark_ckpt.operations.last_batch import SparkLogs, checkpoint_of_last_batch, read_logs
from spark_ckpt.progress import Progress
from spark_ckpt.rescaling.assignment import Assignment, assign
from spark_ckpt.rescaling.errors import RescaleRefusedError
from spark_ckpt.rescaling.operators import add_metadata
from spark_ckpt.rescaling.plan import plan_rescale
from spark_ckpt.spark_files.errors import SparkLogEntryExistsError
from spark_ckpt.spark_files.logs import SparkLog, operator_directory
from spark_ckpt.storage import Storage


@dataclass(frozen=True, slots=True)
class RescaledStore:
    """A store before and after.

    Args:
        operator_id: Spark's number of the operator.
        name: Spark's short name of it.
        store: name of the store.
        before: number of subtasks before.
        after: number of subtasks after; the same for an operator that runs as one task.
        segments: parts of state files that the new subtasks refer to.
    """

    operator_id: int
    name: str
    store: str
    before: int
    after: int
    segments: int


@dataclass(frozen=True, slots=True)
class Rescaling:
    """Result of a rescale, or of its dry run.

    Args:
        location: the checkpoint location.
        before: number of partitions before.
        after: number of partitions after.
        batch_id: its batch in Spark's logs.
        from_checkpoint: the checkpoint it started from.
        checkpoint_id: the new checkpoint; None after a dry run.
        new_bytes: bytes written for the new checkpoint; 0 after a dry run.
        reads: how often each block of state is read at the next start; more than once if partitions share key groups.
        read_once: the nearest numbers of partitions at which each block is read once; empty if `reads` is 1.
        stores: stores of all stateful operators.
    """

    location: str
    before: int
    after: int
    batch_id: int
    from_checkpoint: int
    checkpoint_id: int | None
    new_bytes: int
    reads: int
    read_once: tuple[int, ...]
    stores: tuple[RescaledStore, ...]


def rescale(
    storage: Storage,
    partitions: int,
    *,
    settings: Mapping[str, str] | None = None,
    force: bool = False,
    dry_run: bool = False,
    clock: Clock | None = None,
    progress: Progress = lambda done, of: None,
) -> Rescaling:
    """Changes the number of partitions of a stopped query. The duration does not depend on the size of the state.

    Refuses a number at which partitions share so many segments that the checkpoint would come near the limit of
    readers, and names the nearest numbers that work.

    The new checkpoint refers to the existing state files. Spark's logs get one more batch without input, as with
    Spark's own repartition (`OfflineStateRepartitionRunner`). Order of the writes: the offsets of the batch, the
    metadata of the operators, the checkpoint, the commit of the batch. After an interruption Spark refuses to start the
    query; running the same rescale again finishes it.

    Args:
        storage: storage of the checkpoint location.
        partitions: new number of partitions, 1 to the number of key groups.
        settings: settings of the query that begin with `spark.sql.streaming.stateStore.ckpt.`; required unless its
            completed checkpoints are in the store `filesystem`.
        force: True to proceed although the driver's process is running.
        dry_run: True to check everything and write nothing.
        clock: source of time.
        progress: called after each store with the number of stores done and the total.

    Raises:
        RescaleRefusedError: the rescale is impossible. Nothing was changed.
        LocationInUseError: the driver's process is running on this machine. Nothing was changed.
        VersionNotFoundError, DamagedCheckpointError: no undamaged checkpoint of the last committed batch.
        StateIdMismatchError: Spark's commit log and that checkpoint belong to different runs.
        SparkLogFormatError, StateSchemaError: one of Spark's files is damaged.
        SparkLogEntryExistsError, FencedError: another driver or command is writing here.
        SettingError, DamagedRecordError, StorageError, UnknownOutcomeError: see those classes.
    """
    clock = clock or SystemClock()
    started_ms = clock.now_ms()
    log = SparkLog(storage)
    logs = read_logs(log, lambda reason: RescaleRefusedError(storage.location, partitions, reason))
    with opened_store(storage, settings, "rescale", clock) as (store, owner):
        store.recover()
        work = _prepare(storage, store, logs, partitions, progress)
        if not force:
            check_not_running(storage.location, store)
        if dry_run:
            return _result(storage, work, None)
        # A query that runs anyway, such as one on another host, finds this batch begun and fails. If it has begun the
        # batch first, this call fails. So a driver elsewhere need not be ruled out.
        log.add_offsets(work.plan.batch_id, work.plan.offsets)
        store.claim()
        # The previous owner may have completed the last batch once more between the reading and the claim.
        if store.latest_of_version(work.batch.version) != work.parent.record:
            work = _prepare(storage, store, logs, partitions, progress)
        _prepare_operators(storage, log, work)
        rescaled = _rescaled(work, owner.run_id)
        now_ms = clock.now_ms()
        new = checkpoint_of_operation(
            rescaled, work.table, work.plan.offsets, work.parent.history, work.inline, started_ms, now_ms
        )
        record = Publisher(storage, store, owner).publish(new, now_ms)
        commit = logs.commit.with_state_ids(state_ids(rescaled)) if logs.commit.state_ids else logs.commit
        try:
            # Is the entry still ours? Without our log writer, Spark's does not create exclusively on an object store.
            log.add_offsets(work.plan.batch_id, work.plan.offsets)
            log.add_commit(work.plan.batch_id, commit)
        except SparkLogEntryExistsError:
            # The batch is a driver's, or a concurrent run of the same rescale was faster: the states of its checkpoint
            # count.
            store.subsume(record)
            raise
        return _result(storage, work, record)


def _prepare(
    storage: Storage, store: CompletedCheckpointStore, logs: SparkLogs, partitions: int, progress: Progress
) -> Assignment:
    parent = checkpoint_of_last_batch(storage, store, logs)
    assert parent.batch is not None
    plan = plan_rescale(storage.location, partitions, logs.committed, logs.offsets, parent.batch, logs.begun)
    way_back = ""
    if logs.begun is not None:  # by a release that did not refuse it
        assert parent.record is not None
        back = f"spark-ckpt rollback {storage.location} --id {parent.record.id}"
        way_back = f". This rescale was begun: take it back first: {back}"
    return assign(storage, parent, plan, way_back=way_back, progress=progress)


def _rescaled(work: Assignment, run_id: str) -> SparkBatch:
    """The description of the rescale's batch."""
    batch_id = work.plan.batch_id
    return replace(work.assigned_batch, batch_id=batch_id, version=batch_id + 1, run_id=run_id)


def _result(storage: Storage, work: Assignment, record: CheckpointRecord | None) -> Rescaling:
    assert work.parent.record is not None
    reads = work.size.reads(work.plan.after)
    return Rescaling(
        storage.location,
        work.plan.before,
        work.plan.after,
        work.plan.batch_id,
        work.parent.record.id,
        None if record is None else record.id,
        0 if record is None else record.new_bytes,
        reads,
        tuple(work.size.min_reads(work.plan.after)) if reads > 1 else (),
        tuple(_described(work)),
    )


def _described(work: Assignment) -> Iterator[RescaledStore]:
    for store in work.batch.stores:
        chains = work.table[store.key]
        segments = sum(len(chain.entries) for chain in chains)
        yield RescaledStore(store.operator_id, store.name, store.store, store.parallelism, len(chains), segments)


def _prepare_operators(storage: Storage, log: SparkLog, work: Assignment) -> None:
    """Writes Spark's metadata of each operator, and creates the partition directories for the `statestore` source."""
    plan = work.plan
    add_metadata(log, work.batch, plan.batch_id, plan.after)
    for operator_id in sorted({key.operator_id for key in work.table} - {key.operator_id for key in work.alone}):
        there = set(log.partitions(operator_id))
        for partition in sorted(set(range(plan.after)) - there):
            storage.make_directory(f"{operator_directory(operator_id)}/{partition}")
