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
from spark_ckpt.checkpoint.load import CheckpointState, load_checkpoint, read_checkpoint
from spark_ckpt.checkpoint.registry import SharedStateRegistry
from spark_ckpt.checkpoint.statistics import CheckpointStats
from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed import LOG, CheckpointRecord, ClaimRecord, CompletedCheckpointStore, JobStatus, Owner
from spark_ckpt.completed.process_claims import ProcessClaims
from spark_ckpt.config import STORE, CheckpointConfig
from spark_ckpt.coordinator.heartbeat import Heartbeat
from spark_ckpt.coordinator.messages import Trigger
from spark_ckpt.coordinator.parallelism import check_parallelism
from spark_ckpt.coordinator.taking_over import await_commit, check_not_followed, committed_by_another, shut_out
from spark_ckpt.errors import DamagedCheckpointError, LogMissingError, SavepointLocationError, SparkCkptError
from spark_ckpt.format.key_groups import default_max_parallelism, factors
from spark_ckpt.location.backlog import Backlog, in_thread
from spark_ckpt.location.cleaner import Cleaner, ThreadCleaner
from spark_ckpt.location.errors import ForeignStateError
from spark_ckpt.location.foreign_state import foreign_state
from spark_ckpt.location.listing import checkpoint_directories, scan
from spark_ckpt.location.open_store import make_store
from spark_ckpt.location.orphans import check_no_links
from spark_ckpt.location.savepoint import is_savepoint
from spark_ckpt.operations.rollback import move_to_rollback_dir
from spark_ckpt.operations.rollback_on_damage import WayBack, recover
from spark_ckpt.storage import Storage, resolve

_log = logging.getLogger(__name__)

StorageFactory: TypeAlias = Callable[[Trigger], Storage]


@dataclass(frozen=True, slots=True)
class Environment:
    """Dependencies that jobs share and a simulation replaces.

    Args:
        host: name of the machine.
        pid: process id of the driver's JVM.
        process_token: unique for each life of the coordinator's process.
        clock: where time comes from.
        open_storage: the storage of a trigger's location.
        make_cleaner: who deletes files of it.
        in_background: does something beside the batches.
        commit_seconds: how long a driver that takes over waits for the commit of a batch that is complete.
        claims: of the runs in this process.
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

    def owner(self, query_id: str, run_id: str) -> Owner:
        """The owner of what a job writes."""
        return Owner(self.host, self.pid, self.process_token, query_id, run_id)

    def with_pid(self, pid: int) -> Environment:
        """Copy with the process id of the JVM."""
        return replace(self, pid=pid)


@dataclass(frozen=True, slots=True, eq=False)
class OpenJob:
    """State and dependencies of an open job.

    Args:
        owner: what its records name as their owner.
        storage: of the checkpoint location.
        store: of the completed checkpoints, claimed.
        registry: of the files of all retained checkpoints.
        cleaner: deletes files.
        backlog: what is yet to be done of the start.
        config: the query's settings.
        max_parallelism: number of key groups.
        key_group_factors: their numbering.
        parent: the newest checkpoint of the version that the batch starts from, or of the one it leads to if this very
            run has completed that already.
        history: statistics that the newest checkpoint has, oldest first.
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


def open_job(trigger: Trigger, environment: Environment, going_back: Callable[[], None] = lambda: None) -> OpenJob:
    """Opens a job. All checks come before the claim, so a query that cannot run shuts no other driver out.

    Args:
        trigger: the first of the job.
        environment: what jobs share.
        going_back: called now and then while the query goes back, which may take long.

    Raises:
        SettingError, UnsupportedSchemeError: a setting or the location cannot be used.
        LinkedStateError: there is a symbolic link below `ckpt`.
        ForeignStateError: the state there is another provider's.
        VersionNotFoundError: no retained checkpoint has the version that the batch starts from.
        StoreMismatchError: the location was used with another store.
        DamagedCheckpointError: the one that has it is damaged.
        RolledBackError: one of these two, or a damaged record, and the query has gone back to a checkpoint that is
            whole, as its settings say.
        ParallelismChangedError: partitions or key groups are not those of that checkpoint.
        FencedError: another run has claimed since this one did, or claims just now.
        BatchCommittedError: an earlier run has committed the batch meanwhile; it is shut out.
        StorageError, CorruptRecordError: as they say.
    """
    config = CheckpointConfig.parse(trigger.settings)
    storage = environment.open_storage(trigger)
    check_no_links(storage)
    owner = environment.owner(trigger.query_id, trigger.job)
    store = make_store(config, storage, owner, environment.clock, environment.claims)
    try:
        heartbeat = Heartbeat(going_back, environment.clock, config.bridge_timeout)
        way = WayBack(storage, store, config, environment.clock, heartbeat=heartbeat)
        return _open_with(way, trigger, environment)
    except BaseException:
        store.shutdown(JobStatus.SUSPENDED)
        raise


def _open_with(way: WayBack, trigger: Trigger, environment: Environment) -> OpenJob:
    storage, store, config = way.storage, way.store, way.config
    owner = environment.owner(trigger.query_id, trigger.job)
    way, corrupt = recover(way)
    claims = store.claims()
    check_not_followed(trigger, storage, store)
    if committed := committed_by_another(trigger, storage, store):
        shut_out(trigger, storage, store, config)
        raise committed
    try:
        parent = starting_point(trigger, storage, store)
    except (DamagedCheckpointError, VersionNotFoundError) as damaged:
        if way.is_taken:
            way.go(corrupt or damaged)
        raise
    check_parallelism(trigger, parent, config)
    max_parallelism, chain = _key_groups(trigger, parent, config)
    store.claim()
    if way.damaged:
        moved_to = storage.describe(move_to_rollback_dir(storage, way.damaged, environment.clock))
        _log.warning("%s: %d damaged records were moved to %s", storage.location, len(way.damaged), moved_to)
    check_not_followed(trigger, storage, store)
    await_commit(trigger, storage, store, claims, environment)
    if committed := committed_by_another(trigger, storage, store):
        raise committed
    # The owner before may have completed a checkpoint between our reading and our claim, or dropped ours.
    if _record_to_start_from(trigger, store) != parent.record:
        parent = starting_point(trigger, storage, store)
    registry, history, older = _register(storage, store.all(), parent)
    cleaner = environment.make_cleaner(storage, environment.clock)
    deletes_orphans = False
    if not store.fences:
        _log.info("%s: orphans stay, since nothing says that this driver is the only one", storage.location)
    elif _same_run(claims, owner):
        # The process before this one died; tasks of the run may have written files that they will yet acknowledge.
        _log.info("%s: the run goes on after a restart of the coordinator; orphans stay", storage.location)
    else:
        deletes_orphans = True
    backlog = Backlog(storage, store, registry, cleaner, older, deletes_orphans)
    backlog.start(environment.in_background)
    return OpenJob(owner, storage, store, registry, cleaner, backlog, config, max_parallelism, chain, parent, history)


def starting_point(trigger: Trigger, storage: Storage, store: CompletedCheckpointStore) -> CheckpointState:
    """The checkpoint that a batch starts from: of the version before its own, or its own if this run has completed it.

    Raises:
        ForeignStateError, VersionNotFoundError, DamagedCheckpointError: see `open_job`.
    """
    record = _record_to_start_from(trigger, store)
    if record is not None:
        return load_checkpoint(storage, record, store.all())
    version = trigger.version - 1
    if version <= 0:
        return CheckpointState()
    retained = store.all()
    if not retained and (found := foreign_state(storage)) is not None:
        raise ForeignStateError(storage.location, found, version)
    hint = ""
    if not retained and is_savepoint(storage):
        raise SavepointLocationError(storage.location)
    if not retained and (log := scan(storage).log) is not None and not trigger.is_standalone:
        raise LogMissingError(storage.describe(LOG), log)
    if not retained and checkpoint_directories(storage):
        hint = f"It has checkpoints all the same, of a query that ran with another store: set {STORE.key} to that one"
    raise VersionNotFoundError(storage.location, version, {record.id: record.version for record in retained}, hint)


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
    """The registry of all retained checkpoints, the statistics of the newest, and the checkpoints that are yet to be
    read: all but the one to start from and the newest."""
    registry, newest = SharedStateRegistry(), parent
    for record in retained[-1:]:
        if parent.record is None or parent.record.id != record.id:
            with suppress(SparkCkptError):  # it is tried again with the older ones, and said there
                newest = read_checkpoint(storage, record)
    for state in (parent, newest):
        if state.record is not None:
            registry.register(state.record.id, state.files())
    known = {state.record.id for state in (parent, newest) if state.record is not None}
    older = [record for record in retained if record.id not in known]
    for record in older:
        registry.register_unread(record.id)
    return registry, newest.history, older


def _same_run(claims: list[ClaimRecord], owner: Owner) -> bool:
    last = claims[-1].owner if claims else None
    return last is not None and (last.run_id, last.host, last.pid) == (owner.run_id, owner.host, owner.pid)
