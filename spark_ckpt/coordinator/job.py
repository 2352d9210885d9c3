"""One run of a query: its messages, in their order, over the parts that decide (Flink: `CheckpointCoordinator`)."""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import replace

from spark_ckpt.completed import JobStatus, select_subsumed
from spark_ckpt.coordinator.acks import check_ack
from spark_ckpt.coordinator.chains import chain_of
from spark_ckpt.coordinator.finalise import Draft, finalise
from spark_ckpt.coordinator.layout import in_location
from spark_ckpt.coordinator.loading import CheckpointState, load_checkpoint
from spark_ckpt.coordinator.messages import (
    Ack,
    AckReply,
    Locate,
    LocatedSegment,
    LocateReply,
    Outcome,
    StoreKey,
    SubtaskKey,
    TaskFailed,
    Trigger,
    TriggerReply,
)
from spark_ckpt.coordinator.opening import Environment, OpenJob, check_parallelism, open_job, starting_point
from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.coordinator.policy import ASK_AGAIN_AFTER, is_base_due, retained_checkpoints
from spark_ckpt.errors import (
    CheckpointError,
    FencedError,
    IncompleteCheckpointError,
    SparkCkptError,
    StateIdMismatchError,
    UnknownOutcomeError,
    VersionNotFoundError,
)

_log = logging.getLogger(__name__)

_STATES_IN_MEMORY = 3
_CLOSE_SECONDS = 5.0


class Job:
    """The coordinator of one job. Not thread-safe: one thread hands it its messages.

    Args:
        trigger: the first of the job; opens it.
        environment: what jobs share.

    Raises:
        SparkCkptError: as in `open_job`.
    """

    def __init__(self, trigger: Trigger, environment: Environment) -> None:
        self._clock = environment.clock
        self._open: OpenJob = open_job(trigger, environment)
        self._trigger = trigger
        self._base = self._open.base
        self._pending: PendingCheckpoint | None = None
        self._tried = False  # whether completing the pending checkpoint has failed
        self._doubt: Draft | None = None
        self._aborted: PendingCheckpoint | None = None
        self._ids: OrderedDict[int, dict[StoreKey, list[str]]] = OrderedDict()
        self._own: dict[int, int] = {}
        self._states: OrderedDict[int, CheckpointState] = OrderedDict()
        self._asked: dict[SubtaskKey, int] = {}
        self._unused: list[str] = []  # files of dropped checkpoints, to be deleted once we are known to be the owner
        self._started_ms = 0
        self._remember(self._base, own=self._base.version == trigger.version)

    # ---- messages ----------------------------------------------------------------------------------------------------

    def trigger(self, trigger: Trigger) -> TriggerReply:
        """A batch begins.

        A pending checkpoint of another version is aborted. For the version that is pending already this is a repetition
        and changes nothing, unless completing it has failed: then all its subtasks must acknowledge anew.

        Raises:
            IncompleteCheckpointError: the batch before left subtasks that did not acknowledge.
            SparkCkptError: the state that the batch starts from cannot be used (see `open_job`).
        """
        self._settle()
        self._trigger = trigger
        if trigger.version in self._own or (
            self._pending is not None and self._pending.version == trigger.version and not self._tried
        ):
            return self._trigger_reply()
        self._abort_pending()
        self._go_to_base_of(trigger)
        check_parallelism(trigger, self._base, self._open.config)
        self._pending = PendingCheckpoint(trigger.operators, trigger.batch_id, trigger.version)
        self._tried = False
        self._started_ms = self._clock.now_ms()
        return self._trigger_reply()

    def locate(self, request: Locate) -> LocateReply:
        """Where the state of a subtask is.

        Raises:
            VersionNotFoundError: no retained checkpoint has the version.
            StateIdMismatchError: the state there is not the one that Spark asks for.
            CheckpointError: the checkpoint has no such subtask.
        """
        self._settle()
        key, job = request.subtask, self._open
        if request.version == 0:
            operator = next((o for o in self._trigger.operators if o.operator_id == key.operator_id), None)
            name, fmt = (operator.name, operator.state_format_version) if operator else ("", None)
            return LocateReply(None, None, job.max_parallelism, job.key_group_factors, name, fmt, 0, ())
        state = self._state_of(request.version)
        assert state.record is not None
        assert state.batch is not None
        chain = chain_of(state.table, key)
        if chain is None:
            stores = "; ".join(f"{store} ({len(chains)} partitions)" for store, chains in state.table.items())
            raise CheckpointError(
                f"checkpoint {state.record.id} of version {request.version} has no state of {key}; it has: {stores}. "
                "The query's stateful operators have changed: start it with a new checkpoint location"
            )
        if request.ckpt_id is not None and request.ckpt_id != chain.ckpt_id:
            raise StateIdMismatchError(
                f"{key}: Spark asks for state {request.ckpt_id} of version {request.version}, and checkpoint "
                f"{state.record.id} has state {chain.ckpt_id} of it. Spark's commit log and the completed checkpoints "
                "are of different runs: go back to a batch on which both agree"
            )
        store = next(store for store in state.batch.stores if store.key == key.of_operator)
        segments = tuple(
            LocatedSegment(entry.is_base, entry.path, entry.offsets, entry.size, entry.data) for entry in chain.entries
        )
        return LocateReply(
            chain.ckpt_id,
            state.record.id,
            state.batch.max_parallelism,
            state.batch.key_group_factors,
            store.name,
            store.state_format_version,
            chain.rows,
            segments,
        )

    def acknowledge(self, ack: Ack) -> AckReply:
        """A subtask is ready. The ack that makes the checkpoint complete is answered once that is durable.

        If it cannot be completed, the ack does not count: the task fails, and its next attempt tries once more.

        Raises:
            SparkCkptError: the ack makes no sense, or completing the checkpoint failed (see `finalise`).
        """
        self._settle()
        if self._trigger.is_standalone:
            self._trigger_standalone(ack)
        if ack.version in self._own:
            return self._late_reply(ack)
        pending = self._pending
        if pending is None or pending.version != ack.version:
            self._discard(ack)
            return AckReply(Outcome.DISCARDED, None, completed_version=self._newest_own())
        ack = check_ack(ack, pending.parallelism_of(ack.subtask), self._open, self._base, self._ids_of)
        outcome, ckpt_id = pending.acknowledge(ack)
        if outcome is not Outcome.SUCCESS:
            self._discard(ack)
            return AckReply(outcome, ckpt_id, completed_version=self._newest_own())
        base_due = self._base_due(ack)
        if not pending.is_complete:
            return AckReply(outcome, ckpt_id, base_due, completed_version=self._newest_own())
        completed = self._complete(pending, ack)
        return AckReply(outcome, ckpt_id, base_due, completed, ack.version)

    def task_failed(self, failure: TaskFailed) -> None:
        """A task attempt failed: its acks do not count any more while the checkpoint is pending."""
        if self._pending is not None:
            for ack in self._pending.task_failed(failure):
                self._discard(ack)

    def close(self, status: JobStatus) -> None:
        """The run has ended. Checkpoints stay: Spark restarts finished queries as well."""
        if self._doubt is None:
            self._abort_pending()
        self._open.store.shutdown(status)
        self._open.cleaner.close(_CLOSE_SECONDS)

    def housekeeping(self) -> None:
        """What can wait until the ack is answered: checkpoints that are subsumed are dropped. Never raises."""
        store, retained = self._open.store, retained_checkpoints(self._open.config)
        subsumed = select_subsumed([record for record in store.all() if store.may_subsume(record)], retained)
        if not subsumed and not self._unused:
            return
        try:
            store.check_owner()
            for record in subsumed:
                # The record first: a checkpoint that is found must be whole.
                store.subsume(record)
                self._states.pop(record.id, None)
                self._unused += [record.metadata.path, *self._open.registry.unregister(record.id)]
            # A driver that claimed before the records were gone has seen them. One that claims from here on has not.
            store.check_owner()
            self._open.cleaner.submit(in_location(path) for path in self._unused)
            self._unused = []
        except SparkCkptError as e:
            _log.warning("subsumed checkpoints are dropped later: %s", e)

    # ---- completing --------------------------------------------------------------------------------------------------

    def _complete(self, pending: PendingCheckpoint, last: Ack) -> int:
        draft = Draft(self._trigger, dict(pending.acks), self._started_ms)
        try:
            state = finalise(self._open, draft, self._base, self._clock.now_ms())
        except UnknownOutcomeError:
            self._doubt = draft
            pending.withdraw(last)
            raise
        except FencedError:
            # Its files stay: the new owner may have found its record, and go on from it.
            self._pending = None
            raise
        except SparkCkptError as e:
            _log.error("checkpoint of batch %d cannot be completed: %s", pending.batch_id, e)
            self._tried = True
            pending.withdraw(last)
            raise
        self._open.cleaner.submit(in_location(path) for path in draft.unused)
        return self._completed(state)

    def _completed(self, state: CheckpointState) -> int:
        assert state.record is not None
        self._open.registry.register(state.record.id, state.files())
        self._pending = None
        self._tried = False
        self._aborted = None
        self._base = state
        self._remember(state, own=True)
        return state.record.id

    def _settle(self) -> None:
        """Finds out about a record whose outcome was unknown, before anything else is done."""
        try:
            record = self._open.store.settle()
        except FencedError:
            self._pending = None
            raise
        draft, self._doubt = self._doubt, None
        if record is not None and draft is not None:
            self._completed(draft.completed(record))

    def _abort_pending(self) -> None:
        """Gives up the pending checkpoint: the files its tasks have written are deleted, their late acks discarded."""
        pending, self._pending = self._pending, None
        if pending is not None:
            self._aborted = pending
            for ack in pending.acks.values():
                self._discard(ack)

    def _discard(self, ack: Ack) -> None:
        """Deletes the files of an ack that does not count, unless one that counts has named them as well."""
        used: set[str] = set()
        if self._pending is not None:
            counted = self._pending.acks.get(ack.subtask)
            used.update(counted.paths if counted is not None else ())
        registry = self._open.registry
        self._open.cleaner.submit(in_location(path) for path in ack.paths if path not in registry and path not in used)

    def _late_reply(self, ack: Ack) -> AckReply:
        """The answer to an ack of a version that this job has completed."""
        checkpoint = self._own[ack.version]
        counts = self._id_of(ack.version, ack.subtask)
        if counts == ack.ckpt_id:
            return AckReply(Outcome.SUCCESS, counts, completed=checkpoint, completed_version=self._newest_own())
        self._discard(ack)
        return AckReply(Outcome.DUPLICATE, counts, completed=checkpoint, completed_version=self._newest_own())

    # ---- what is known -----------------------------------------------------------------------------------------------

    def _go_to_base_of(self, trigger: Trigger) -> None:
        """Makes the state that a batch starts from the base."""
        version = trigger.version - 1
        if self._base.version == version:
            return
        if version > 0 and self._aborted is not None and self._aborted.version == version:
            raise IncompleteCheckpointError(version, self._aborted.describe_missing())
        self._base = starting_point(replace(trigger, job=""), self._open.storage, self._open.store)
        self._remember(self._base, own=False)

    def _trigger_standalone(self, ack: Ack) -> None:
        """A store without a query commits any version it can load, without saying so before; the last commit counts."""
        if ack.version in self._own and self._id_of(ack.version, ack.subtask) == ack.ckpt_id:
            return
        if self._pending is None or self._pending.version != ack.version:
            self._own.pop(ack.version, None)
            self.trigger(replace(self._trigger, batch_id=ack.version - 1, version=ack.version))

    def _state_of(self, version: int) -> CheckpointState:
        record = self._open.store.latest_of_version(version)
        if record is None:
            versions = tuple(sorted({known.version for known in self._open.store.all()}))
            raise VersionNotFoundError(self._open.storage.location, version, versions)
        state = self._states.get(record.id)
        if state is None:
            state = load_checkpoint(self._open.storage, record, self._open.store.all())
            self._remember(state, own=False)
        return state

    def _remember(self, state: CheckpointState, own: bool) -> None:
        if state.record is None:
            return
        self._states[state.record.id] = state
        self._states.move_to_end(state.record.id)
        while len(self._states) > _STATES_IN_MEMORY:
            self._states.popitem(last=False)
        self._ids[state.version] = state.ckpt_ids()
        self._ids.move_to_end(state.version)
        if own:
            self._own[state.version] = state.record.id
        while len(self._ids) > self._open.config.max_deltas + _STATES_IN_MEMORY:
            forgotten, _ = self._ids.popitem(last=False)
            self._own.pop(forgotten, None)

    def _ids_of(self, version: int) -> dict[StoreKey, list[str]] | None:
        return self._ids.get(version)

    def _id_of(self, version: int, key: SubtaskKey) -> str | None:
        ids = self._ids.get(version, {}).get(key.of_operator)
        return ids[key.partition] if ids is not None and 0 <= key.partition < len(ids) else None

    def _newest_own(self) -> int | None:
        return max(self._own, default=None)

    def _base_due(self, ack: Ack) -> bool:
        """Whether this subtask should bring a base soon. One that was asked is left in peace for a few batches."""
        if ack.base is not None:
            self._asked.pop(ack.subtask, None)
            return False
        chain = chain_of(self._base.table, ack.subtask)
        if chain is None:
            return False
        deltas = chain.deltas + bool(ack.delta.size)
        due = is_base_due(
            ack.subtask.partition,
            ack.version,
            deltas,
            chain.size - chain.base_bytes + ack.delta.size,
            chain.base_bytes,
            self._open.config,
        )
        if not due or ack.version < self._asked.get(ack.subtask, -ASK_AGAIN_AFTER) + ASK_AGAIN_AFTER:
            return False
        self._asked[ack.subtask] = ack.version
        return True

    def _trigger_reply(self) -> TriggerReply:
        job = self._open
        return TriggerReply(job.store.generation, job.max_parallelism, job.key_group_factors)
