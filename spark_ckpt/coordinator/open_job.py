"""Start of a job at its first batch: checks, claim, and recovery from earlier runs."""

from __future__ import annotations

import logging
import os
import socket
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from spark_ckpt.checkpoint.errors import VersionNotFoundError
from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.checkpoint.load import CheckpointState, load_checkpoint, read_checkpoint
from spark_ckpt.checkpoint.publish import Publisher
from spark_ckpt.checkpoint.registry import SharedStateRegistry
from spark_ckpt.checkpoint.statistics import CheckpointStats
from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed import CheckpointRecord, ClaimRecord, CompletedCheckpointStore, JobStatus, Owner
from spark_ckpt.completed.process_claims import ProcessClaims
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.coordinator.takeover import (
    await_commit,
    check_not_followed,
    committed_by_another,
    fence_earlier,
    is_committed,
)
from spark_ckpt.errors import DamagedCheckpointError, SparkCkptError
from spark_ckpt.format.key_groups import default_max_parallelism, factors
from spark_ckpt.location.backlog import Backlog, files_before, in_thread
from spark_ckpt.location.cleaner import Cleaner, ThreadCleaner
from spark_ckpt.location.import_marker import check_no_import
from spark_ckpt.location.no_checkpoint import why_missing
from spark_ckpt.location.open_store import make_store
from spark_ckpt.location.orphans import check_no_links
from spark_ckpt.messages import Trigger
from spark_ckpt.recovery.heartbeat import Heartbeat
from spark_ckpt.recovery.parallelism import check_parallelism
from spark_ckpt.recovery.query_change import check_query
from spark_ckpt.recovery.rollback import move_to_rollback_dir
from spark_ckpt.recovery.rollback_on_damage import AutomaticRollback, recover
from spark_ckpt.rescaling.begun import begun_rescale
from spark_ckpt.spark_files.rollbacks import Rollbacks
from spark_ckpt.storage import Request, Storage, resolve

_log = logging.getLogger(__name__)

StorageFactory: TypeAlias = Callable[[Trigger], Storage]


@dataclass(frozen=True, slots=True)
class Environment:
    """Dependencies that jobs share and a simulation replaces.

    Args:
        host: host name.
        pid: process id of the driver's JVM.
        process_token: unique token of the coordinator's process.
        clock: time source.
        open_storage: opens the storage of a trigger's location.
        make_cleaner: creates the cleaner of a storage.
        in_background: runs work beside the batches.
        commit_seconds: seconds that a driver waits, on takeover, for the commit of a completed batch.
        claims: claims of the runs in this process.
        looks_for_rescales: whether jobs look for requests of `rescale --running`.
        hung: number of side processes that the driver has killed before this one, because they gave no sign of life.
    """

    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    process_token: str = field(default_factory=lambda: uuid.uuid4().hex)
    clock: Clock = field(default_factory=SystemClock)
    open_storage: StorageFactory = field(default=lambda trigger: resolve(trigger.location, trigger.hadoop))
    make_cleaner: Callable[[Storage, Clock], Cleaner] = ThreadCleaner
    in_background: Callable[[Callable[[], None]], None] = in_thread
    commit_seconds: float = 10.0
    claims: ProcessClaims = field(default_factory=ProcessClaims)
    hung: int = 0
    looks_for_rescales: bool = True

    def owner(self, query_id: str, run_id: str) -> Owner:
        """Owner in the records of a job."""
        return Owner(self.host, self.pid, self.process_token, query_id, run_id)

    def of_driver(self, pid: int, hung: int) -> Environment:
        """Copy with the process id of a driver's JVM, and the number of side processes that it has killed before."""
        return replace(self, pid=pid, hung=hung)


@dataclass(frozen=True, slots=True, eq=False)
class OpenJob:
    """State and dependencies of an open job.

    Args:
        owner: owner in its records.
        storage: storage of the checkpoint location.
        store: completed checkpoints, claimed.
        registry: files of all retained checkpoints.
        cleaner: deletes files.
        backlog: deferred work of the start.
        config: settings of the query.
        max_parallelism: number of key groups.
        key_group_factors: numbering of the key groups.
        parent: newest checkpoint of the version that the batch starts from, or of the batch's own version if this run
            has already completed it.
        history: statistics in the newest checkpoint, oldest first.
        meaning: payload of the master state `spark-query` of its checkpoints; None if it is not known.
    """

    owner: Owner
    storage: Storage
    store: CompletedCheckpointStore
    registry: SharedStateRegistry
    cleaner: Cleaner
    backlog: Backlog
    config: CheckpointConfig
    max_parallelism: int
    key_group_factors: tuple[int, ...]
    parent: CheckpointState
    history: tuple[CheckpointStats, ...]
    meaning: bytes | None

    def publisher(self) -> Publisher:
        """A new publisher, which uses no name of a file that the cleaner deletes."""
        return Publisher(
            self.storage, self.store, self.owner, lambda path: self.cleaner.was_submitted(in_location(path))
        )


def open_job(trigger: Trigger, environment: Environment, going_back: Callable[[], None] = lambda: None) -> OpenJob:
    """Open a job. All checks precede the claim, so a query that cannot run fences no other driver.

    Args:
        trigger: first trigger of the job.
        environment: dependencies shared by jobs.
        going_back: signals progress during a rollback, which may take long.

    Raises:
        SettingError, UnsupportedSchemeError: invalid setting or unsupported location.
        LinkedStateError: symbolic link below `ckpt`.
        ForeignStateError: the location has state of another provider.
        VersionNotFoundError: no retained checkpoint has the version that the batch starts from.
        StoreMismatchError: the location was used with another store.
        DamagedCheckpointError: the checkpoint to start from is damaged.
        RolledBackError: a checkpoint is missing or damaged, or a record is damaged, and the query was rolled back to an
            intact checkpoint.
        ParallelismChangedError: partitions or key groups differ from the checkpoint's.
        RescaleRefusedError: the batch has begun a rescale that this state cannot have.
        QueryChangedError: the state means something else to the query.
        FencedError: another run has claimed the location since.
        LogFencedError: the location was rolled back after the run had started.
        BatchCommittedError: an earlier run, fenced now, has committed the batch meanwhile.
        StorageError, DamagedRecordError: see these classes.
    """
    config = CheckpointConfig.parse(trigger.settings)
    storage = environment.open_storage(trigger)
    check_no_links(storage)
    owner = environment.owner(trigger.query_id, trigger.job)
    clock, claims, hung = environment.clock, environment.claims, environment.hung or None
    store = make_store(config, storage, owner, clock, claims, trigger.log_epoch, hung)
    try:
        heartbeat = Heartbeat(going_back, environment.clock, config.bridge_timeout)
        publisher = Publisher(storage, store, owner)
        rollback = AutomaticRollback(publisher, config, environment.clock, trigger.log_epoch, heartbeat=heartbeat)
        return _open_with(rollback, trigger, environment)
    except BaseException:
        store.shutdown(JobStatus.SUSPENDED)
        raise


def _open_with(rollback: AutomaticRollback, trigger: Trigger, environment: Environment) -> OpenJob:
    storage, store, config = rollback.storage, rollback.store, rollback.config
    owner = environment.owner(trigger.query_id, trigger.job)
    store.prepare_claim()
    commit = is_committed(trigger, storage)
    rollback, damaged_record = recover(rollback)
    claims = store.claims()
    check_not_followed(trigger, storage, store)
    if committed := committed_by_another(trigger, storage, store, commit):
        fence_earlier(trigger, storage, store, config)
        raise committed
    rollbacks = _list_rollbacks(trigger, storage)
    try:
        parent = starting_point(trigger, storage, store)
    except (DamagedCheckpointError, VersionNotFoundError) as damaged:
        _check_log_epoch(trigger, storage, rollbacks)
        if rollback.is_enabled:
            rollback.run(damaged_record or damaged)
        raise
    rescale = begun_rescale(storage, trigger, parent)
    check_parallelism(trigger, parent if rescale is None else rescale.state(), config)
    check_query(trigger, parent, config)
    _check_log_epoch(trigger, storage, rollbacks)
    max_parallelism, chain = _key_groups(trigger, parent, config)
    store.claim()
    # A rollback may have ended between the look and the claim. One that begins later is fenced off by the claim.
    rollbacks = _list_rollbacks(trigger, storage)
    if rollback.damaged:
        moved_to = storage.describe(move_to_rollback_dir(storage, rollback.damaged, environment.clock))
        _log.warning("%s: moved %d damaged records to %s", storage.location, len(rollback.damaged), moved_to)
    check_not_followed(trigger, storage, store)
    commit = is_committed(trigger, storage)
    earlier_files = _earlier_files(storage, store, claims, owner)
    _check_log_epoch(trigger, storage, rollbacks)
    if await_commit(trigger, storage, store, claims, environment):
        commit = is_committed(trigger, storage)
    if committed := committed_by_another(trigger, storage, store, commit):
        raise committed
    # Between recovery and claim, the previous owner may have completed a checkpoint or dropped the one just read. If it
    # has discarded all of them, a listing may still show this one.
    if config.cleanup != "retain" and (record := _record_to_start_from(trigger, store)) is not None:
        store.forget_if_gone(record)
    if _record_to_start_from(trigger, store) != parent.record:
        parent = starting_point(trigger, storage, store)
    registry, history, older = _register(storage, store.all(), parent)
    cleaner = environment.make_cleaner(storage, environment.clock)
    there_before = None if earlier_files is None else earlier_files.result()
    backlog = Backlog(storage, store, registry, cleaner, older, there_before)
    backlog.start(environment.in_background)
    return OpenJob(
        owner,
        storage,
        store,
        registry,
        cleaner,
        backlog,
        config,
        max_parallelism,
        chain,
        parent,
        history,
        _meaning(trigger, parent),
    )


def _meaning(trigger: Trigger, parent: CheckpointState) -> bytes | None:
    """Meaning of the state. A restarted side process may find it only in an earlier checkpoint of the run."""
    if trigger.meaning is not None:
        return trigger.meaning.encode()
    return None if parent.batch is None else parent.batch.meaning


def _list_rollbacks(trigger: Trigger, storage: Storage) -> Request[Rollbacks] | None:
    """Begin to list rollbacks; None without the fence of Spark's logs, because a start needs no list then."""
    return None if trigger.log_epoch is None else storage.begin(lambda: Rollbacks.of(storage))


def _check_log_epoch(trigger: Trigger, storage: Storage, rollbacks: Request[Rollbacks] | None) -> None:
    if trigger.log_epoch is not None and rollbacks is not None:
        rollbacks.result().check_epoch(storage.location, trigger.log_epoch)


def _earlier_files(
    storage: Storage, store: CompletedCheckpointStore, claims: list[ClaimRecord], owner: Owner
) -> Request[set[str]] | None:
    """Begin to list the files of earlier runs; None if this run may not delete the orphans among them."""
    if not store.fences:
        _log.info("%s: keeping orphaned files: other drivers may use this location", storage.location)
        return None
    if claims and claims[-1].owner.is_same_run(owner):
        # The previous side process died. Tasks of the run may have written files without acknowledging them yet.
        _log.info("%s: keeping orphaned files: the coordinator restarted during this run", storage.location)
        return None
    claimed = store.counter.get()
    return storage.begin(lambda: files_before(storage, claimed))


def starting_point(trigger: Trigger, storage: Storage, store: CompletedCheckpointStore) -> CheckpointState:
    """Checkpoint that a batch starts from: of the previous version, or of its own if this run has completed that.

    Raises:
        ForeignStateError, VersionNotFoundError, DamagedCheckpointError: see `open_job`.
    """
    record = _record_to_start_from(trigger, store)
    version = trigger.version - 1
    # An import from Flink follows the first batch, whose checkpoint stays; written state is that of the first batch.
    if version <= 1 or record is None:
        check_no_import(storage)
    if record is not None:
        return load_checkpoint(storage, record, store.all())
    if version <= 0:
        return CheckpointState()
    raise why_missing(storage, version, store.all(), is_query=not trigger.is_standalone)


def _record_to_start_from(trigger: Trigger, store: CompletedCheckpointStore) -> CheckpointRecord | None:
    own = store.latest_of_version(trigger.version)
    if own is not None and own.owner.run_id == trigger.job:
        return own
    return store.latest_of_version(trigger.version - 1)


def _key_groups(trigger: Trigger, parent: CheckpointState, config: CheckpointConfig) -> tuple[int, tuple[int, ...]]:
    if parent.batch is not None:
        return parent.batch.max_parallelism, parent.batch.key_group_factors
    parallelism = max((operator.parallelism for operator in trigger.operators), default=1)
    max_parallelism = config.max_parallelism or default_max_parallelism(parallelism)
    return max_parallelism, tuple(factors(parallelism, max_parallelism))


def _register(
    storage: Storage, retained: Sequence[CheckpointRecord], parent: CheckpointState
) -> tuple[SharedStateRegistry, tuple[CheckpointStats, ...], list[CheckpointRecord]]:
    """Registry of all retained checkpoints, statistics of the newest, and unread checkpoints: all but the one to start
    from and the newest."""
    registry, newest = SharedStateRegistry(), parent
    for record in retained[-1:]:
        if parent.record is None or parent.record.id != record.id:
            with suppress(SparkCkptError):  # the backlog retries it and logs the failure
                newest = read_checkpoint(storage, record)
    for state in (parent, newest):
        if state.record is not None:
            registry.register(state.record.id, state.files())
    known = {state.record.id for state in (parent, newest) if state.record is not None}
    older = [record for record in retained if record.id not in known]
    for record in older:
        registry.register_unread(record.id)
    return registry, newest.history, older
