"""What happens when a job's first batch runs: checks, the claim, and the recovery of what earlier runs left."""

from __future__ import annotations

import logging
import os
import socket
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed import CheckpointRecord, ClaimRecord, CompletedCheckpointStore, JobStatus, Owner
from spark_ckpt.config import MAX_PARALLELISM, ROLL_BACK, STORE, CheckpointConfig
from spark_ckpt.coordinator.cleaner import Cleaner, ThreadCleaner
from spark_ckpt.coordinator.layout import in_location
from spark_ckpt.coordinator.loading import CheckpointState, load_checkpoint, read_checkpoint
from spark_ckpt.coordinator.messages import StoreKey, Trigger
from spark_ckpt.coordinator.orphans import list_state, select_orphans
from spark_ckpt.coordinator.registry import SharedStateRegistry
from spark_ckpt.coordinator.scan import checkpoint_directories
from spark_ckpt.coordinator.statistics import CheckpointStats
from spark_ckpt.coordinator.stores import make_store
from spark_ckpt.errors import (
    DamagedCheckpointError,
    FencedError,
    ForeignStateError,
    ParallelismChangedError,
    RolledBackError,
    SparkCkptError,
    VersionNotFoundError,
)
from spark_ckpt.keygroups import default_max_parallelism, factors
from spark_ckpt.operations.rollback import move_aside
from spark_ckpt.operations.verifying import verify_checkpoint
from spark_ckpt.storage import FileInfo, Storage, resolve

_log = logging.getLogger(__name__)

# What the state stores of Spark leave in a partition's directory, or in a store's directory below it.
_FOREIGN_SUFFIXES = (".delta", ".snapshot", ".changelog", ".zip")
_MOST_DIRECTORIES_LOOKED_AT = 8

StorageFactory: TypeAlias = Callable[[Trigger], Storage]


@dataclass(frozen=True, slots=True)
class Environment:
    """What jobs share, and what a simulation puts its own in place of.

    Args:
        host: name of the machine.
        pid: process id of the driver's JVM.
        process_token: unique for each life of the coordinator's process.
        clock: where time comes from.
        open_storage: the storage of a trigger's location.
        make_cleaner: who deletes files of it.
    """

    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    process_token: str = field(default_factory=lambda: uuid.uuid4().hex)
    clock: Clock = field(default_factory=SystemClock)
    open_storage: StorageFactory = field(default=lambda trigger: resolve(trigger.location, trigger.hadoop))
    make_cleaner: Callable[[Storage, Clock], Cleaner] = ThreadCleaner

    def owner(self, query_id: str, run_id: str) -> Owner:
        """The owner of what a job writes."""
        return Owner(self.host, self.pid, self.process_token, query_id, run_id)

    def with_pid(self, pid: int) -> Environment:
        """The same with the process id of the JVM, once it is known."""
        return replace(self, pid=pid)


@dataclass(frozen=True, slots=True, eq=False)
class OpenJob:
    """What an open job works with.

    Args:
        owner: what its records name as their owner.
        storage: of the checkpoint location.
        store: of the completed checkpoints, claimed.
        registry: of the files of all retained checkpoints.
        cleaner: deletes files.
        config: the query's settings.
        max_parallelism: number of key groups.
        key_group_factors: their numbering.
        base: the newest checkpoint of the version that the batch starts from, or of the one it leads to if this very
            run has completed that already.
        history: statistics that the newest checkpoint has, oldest first.
    """

    owner: Owner
    storage: Storage
    store: CompletedCheckpointStore
    registry: SharedStateRegistry
    cleaner: Cleaner
    config: CheckpointConfig
    max_parallelism: int
    key_group_factors: tuple[int, ...]
    base: CheckpointState
    history: tuple[CheckpointStats, ...]


def open_job(trigger: Trigger, environment: Environment) -> OpenJob:
    """Opens a job: everything is checked before the claim, so that a query that cannot run shuts nobody out.

    Raises:
        SettingError, UnsupportedSchemeError: a setting or the location cannot be used.
        ForeignStateError: the state there is another provider's.
        VersionNotFoundError: no retained checkpoint has the version that the batch starts from.
        LogInTheWayError: the location was used with another store.
        DamagedCheckpointError: the one that has it is damaged.
        RolledBackError: the same, and the query has gone back to one that is whole, as its settings say.
        ParallelismChangedError: partitions or key groups are not those of that checkpoint.
        FencedError: another run has claimed since this one did, has committed its batch, or claims just now.
        StorageError, CorruptRecordError: as they say.
    """
    config = CheckpointConfig.parse(trigger.settings)
    storage = environment.open_storage(trigger)
    store = make_store(config, storage, environment.owner(trigger.query_id, trigger.job), environment.clock)
    try:
        return _open_with(store, trigger, config, storage, environment)
    except BaseException:
        store.shutdown(JobStatus.SUSPENDED)
        raise


def _open_with(
    store: CompletedCheckpointStore,
    trigger: Trigger,
    config: CheckpointConfig,
    storage: Storage,
    environment: Environment,
) -> OpenJob:
    owner = environment.owner(trigger.query_id, trigger.job)
    store.recover()
    claims = store.claims()
    _check_not_overtaken(trigger, storage, store)
    try:
        base = starting_point(trigger, storage, store)
    except DamagedCheckpointError as damaged:
        if config.on_damage == ROLL_BACK:
            _go_back(damaged, storage, store, environment.clock)
        raise
    check_parallelism(trigger, base, config)
    max_parallelism, chain = _key_groups(trigger, base, config)
    store.claim()
    _check_not_overtaken(trigger, storage, store)
    # The owner before may have completed a checkpoint between our reading and our claim, or dropped ours.
    if _record_to_start_from(trigger, store) != base.record:
        base = starting_point(trigger, storage, store)
    registry, history = _register(storage, store.all(), base)
    cleaner = environment.make_cleaner(storage, environment.clock)
    if not store.fences:
        _log.info("%s: orphans stay, since nothing says that this driver is the only one", storage.location)
    elif _same_run(claims, owner):
        # The process before this one died; tasks of the run may have written files that they will yet acknowledge.
        _log.info("%s: the run goes on after a restart of the coordinator; orphans stay", storage.location)
    else:
        _delete_orphans(storage, store, registry, cleaner)
    return OpenJob(owner, storage, store, registry, cleaner, config, max_parallelism, chain, base, history)


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
    if not retained and (found := _foreign_state(storage)) is not None:
        raise ForeignStateError(storage.location, found, version)
    hint = ""
    if not retained and checkpoint_directories(storage):
        hint = f"It has checkpoints all the same, of a query that ran with another store: set {STORE.key} to that one"
    raise VersionNotFoundError(storage.location, version, tuple(sorted({record.version for record in retained})), hint)


def _go_back(damaged: DamagedCheckpointError, storage: Storage, store: CompletedCheckpointStore, clock: Clock) -> None:
    """Makes the newest checkpoint that is whole the one that the next start begins from; nothing if there is none.

    Raises:
        RolledBackError: done.
        StorageError: something could not be read or moved.
    """
    for record in reversed(store.all()):
        if record.id == damaged.checkpoint_id:
            continue
        verdict = verify_checkpoint(storage, record)
        if verdict.is_whole and verdict.can_go_back:
            store.claim()
            done = move_aside(storage, store, record, clock)
            raise RolledBackError(damaged, record.id, record.batch_id, storage.describe(done.aside)) from damaged


def check_parallelism(trigger: Trigger, base: CheckpointState, config: CheckpointConfig) -> None:
    """Makes sure that a batch has the partitions and key groups of the checkpoint it starts from.

    Raises:
        ParallelismChangedError: it has not; the message says which and what to do.
    """
    if base.batch is None:
        return
    had = {store.key: store.parallelism for store in base.batch.stores}
    for operator in trigger.operators:
        for name in operator.stores:
            before = had.get(StoreKey(operator.operator_id, name))
            if before is not None and before != operator.parallelism:
                raise ParallelismChangedError(
                    f"operator {operator.operator_id} ({operator.name}) runs with {operator.parallelism} partitions, "
                    f"its state in {trigger.location} has {before}. Set spark.sql.shuffle.partitions to {before}, or "
                    f"stop the query and change it with 'spark-ckpt rescale --partitions {operator.parallelism}'"
                )
    fixed, wanted = base.batch.max_parallelism, config.max_parallelism
    if wanted is not None and wanted != fixed:
        raise ParallelismChangedError(
            f"{MAX_PARALLELISM.key} is {wanted}, but the query was started with {fixed} key groups, which stay as they "
            f"are: set it to {fixed} or leave it out"
        )


def _record_to_start_from(trigger: Trigger, store: CompletedCheckpointStore) -> CheckpointRecord | None:
    own = store.latest_of_version(trigger.version)
    if own is not None and own.owner.run_id == trigger.job:
        return own
    return store.latest_of_version(trigger.version - 1)


def _key_groups(trigger: Trigger, base: CheckpointState, config: CheckpointConfig) -> tuple[int, tuple[int, ...]]:
    if base.batch is not None:
        return base.batch.max_parallelism, base.batch.key_group_factors
    parallelism = max((operator.parallelism for operator in trigger.operators), default=1)
    max_parallelism = config.max_parallelism or default_max_parallelism(parallelism)
    return max_parallelism, tuple(factors(parallelism, max_parallelism))


def _register(
    storage: Storage, retained: Iterable[CheckpointRecord], base: CheckpointState
) -> tuple[SharedStateRegistry, tuple[CheckpointStats, ...]]:
    """The registry of all retained checkpoints, and the statistics of the newest."""
    registry, newest = SharedStateRegistry(), base
    for record in retained:
        if base.record is not None and record.id == base.record.id:
            state = base
        else:
            try:
                state = read_checkpoint(storage, record)
            except SparkCkptError as e:
                _log.warning("a retained checkpoint cannot be read: %s", e)
                registry.register_unread(record.id)
                continue
        registry.register(record.id, state.files())
        newest = state
    return registry, newest.history


def _check_not_overtaken(trigger: Trigger, storage: Storage, store: CompletedCheckpointStore) -> None:
    """A run that another one has followed stays shut out, also if its side process has started anew and could claim
    once more. So does one that comes so late that its batch is committed: its checkpoint would subsume newer ones.
    """
    claims = store.claims()
    own = [claim.id for claim in claims if claim.owner.run_id == trigger.job]
    others = [claim for claim in claims if claim.owner.run_id != trigger.job]
    if not others:
        return
    followed = bool(own) and others[-1].id > own[0]
    if followed or (not trigger.is_standalone and storage.exists(f"commits/{trigger.batch_id}")):
        raise FencedError(storage.location, store.generation, others[-1].generation, str(others[-1].owner))


def _same_run(claims: list[ClaimRecord], owner: Owner) -> bool:
    last = claims[-1].owner if claims else None
    return last is not None and (last.run_id, last.host, last.pid) == (owner.run_id, owner.host, owner.pid)


def _delete_orphans(
    storage: Storage, store: CompletedCheckpointStore, registry: SharedStateRegistry, cleaner: Cleaner
) -> None:
    """Deletes what crashed drivers left: state files and `_metadata` that no record refers to.

    Only right after the claim, when no task of this run has written anything, and no other run can complete anything.
    What a retained checkpoint may need that cannot be read stays until that one is dropped.

    Raises:
        FencedError: another driver has claimed since, and what was listed may be its own.
    """
    used = registry.files() | {record.metadata.path for record in store.all()}
    orphans = select_orphans(list_state(storage), used)
    store.check_owner()
    files = [orphan.path for orphan in orphans if not orphan.is_directory]
    if registry.is_whole:
        if files:
            _log.info("%s: %d files that no checkpoint refers to are deleted", storage.location, len(files))
        cleaner.submit(in_location(path) for path in files)
    else:
        _log.warning("%s: %d orphans stay as long as a checkpoint cannot be read", storage.location, len(files))
        registry.hold(files)
    for orphan in orphans:
        if orphan.is_directory:
            storage.remove_empty(in_location(orphan.path))


def _files(storage: Storage, directory: str) -> list[FileInfo]:
    return [entry for entry in storage.list(directory) if not entry.is_directory]


def _foreign_state(storage: Storage) -> str | None:
    """A state file of another provider, or None if a look at the first few partitions shows none."""
    for operator in _directories(storage, "state"):
        for partition in _directories(storage, operator):
            for directory in [partition, *_directories(storage, partition)]:
                for file in _files(storage, directory):
                    if file.name[:1].isdigit() and file.name.endswith(_FOREIGN_SUFFIXES):
                        return storage.describe(f"{directory}/{file.name}")
    return None


def _directories(storage: Storage, directory: str) -> list[str]:
    names = sorted(entry.name for entry in storage.list(directory) if entry.is_directory)
    return [f"{directory}/{name}" for name in names[:_MOST_DIRECTORIES_LOOKED_AT]]
