"""The driver's end: the endpoint, the bridge with its replays, and the side process with the real coordinator in it.

The JVM's part is modelled after docs/protocol.md, sections 1.3 and 1.5. The side process runs the real `Job`, with one
actor to deliver its messages and another to delete files.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from spark_ckpt.bridge.errors import JobNotOpenError
from spark_ckpt.clock import Clock
from spark_ckpt.coordinator.job import Job
from spark_ckpt.coordinator.open_job import Environment
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.location.cleaner import Cleaner
from spark_ckpt.messages import (
    Ack,
    AckReply,
    Close,
    Decline,
    EndOffsets,
    EndOffsetsReply,
    Locate,
    LocateReply,
    Notification,
    Outcome,
    Request,
    Rescale,
    TaskFailed,
    Trigger,
    Unreadable,
)
from spark_ckpt.recovery.errors import RolledBackError
from spark_ckpt.storage import Storage
from tests.simulation.scheduler import Group, Mailbox, Promise
from tests.support.driver import do_now

if TYPE_CHECKING:
    from tests.simulation.world import World

ANSWER_SECONDS = 120.0
MAX_CRASHES = 5

TOLD = (TaskFailed, Decline, Close)
"""Kinds of requests without a waiting caller."""

Reply: TypeAlias = object
"""The coordinator's answer, or the exception it raised."""


class BridgeError(Exception):
    """The side process does not answer."""


@dataclass(slots=True)
class Numbered:
    id: int
    request: Request


class ActorCleaner(Cleaner):
    """Deletes in an actor of the side process, which stands for the real cleaner's thread."""

    def __init__(self, storage: Storage, clock: Clock, world: World, group: Group) -> None:
        super().__init__(storage, clock)
        self._box: Mailbox[str] = Mailbox(world.scheduler)
        world.scheduler.spawn("cleaner", group, self._run)

    def submit(self, names: Iterable[str]) -> None:
        for name in self._new(names):
            self._box.put(name)

    def close(self, timeout: float) -> None:
        """Does not wait: the actor deletes the remaining files in the background."""

    def _run(self) -> None:
        while (name := self._box.get()) is not None:
            self._delete([name])


class SideProcess:
    """One lifetime of the Python process."""

    def __init__(self, world: World, bridge: Bridge, number: int) -> None:
        self.group = Group(f"{bridge.group.name}/python{number}", bridge.group)
        self._world, self._bridge = world, bridge
        self.replies: Mailbox[tuple[Numbered, Reply] | None] = Mailbox(world.scheduler)
        """Output pipe of the process; None marks the end."""
        self._jobs: dict[str, Mailbox[Numbered]] = {}
        self._environment = Environment(
            looks_for_rescales=False,  # the driver asks by itself, and each seed keeps its schedule
            host=bridge.group.name,
            pid=1,
            process_token=self.group.name,
            clock=bridge.clock,
            open_storage=lambda trigger: world.storage(self.group),
            make_cleaner=lambda storage, clock: ActorCleaner(storage, clock, world, self.group),
            in_background=do_now,
        )

    def send(self, numbered: Numbered) -> None:
        """Dispatches a message like `spark_ckpt.bridge.server.Server`: one thread per job."""
        if not self.group.alive:
            return  # the message stays in a pipe without a reader
        job = numbered.request.job
        if job not in self._jobs:
            if isinstance(numbered.request, TOLD):
                self.replies.put((numbered, None))
                return
            if not isinstance(numbered.request, Trigger):
                self.replies.put((numbered, JobNotOpenError(job)))
                return
            box: Mailbox[Numbered] = Mailbox(self._world.scheduler)
            self._jobs[job] = box
            self._world.scheduler.spawn(f"job {job}", self.group, lambda: self._serve(box))
        self._jobs[job].put(numbered)
        if isinstance(numbered.request, Close):
            del self._jobs[job]

    def _notify(self, notification: Notification) -> None:
        self._world.checks.notified(notification)
        self._world.count(notification.event.value)
        self._bridge.notify(notification)

    def _serve(self, box: Mailbox[Numbered]) -> None:
        world = self._world
        job: Job | None = None
        rolled_back: RolledBackError | None = None
        while True:
            numbered = box.get(None if job is None else job.seconds_to_timer)
            if numbered is None:
                assert job is not None
                job.run_timers()
                continue
            request = numbered.request
            try:
                if rolled_back is not None and not isinstance(request, TOLD):
                    raise rolled_back
                if isinstance(request, Trigger) and job is None:
                    job = Job(request, self._environment, self._notify)
                reply = _handle(job, request)
            except SparkCkptError as e:
                reply = e
                rolled_back = e if isinstance(e, RolledBackError) else rolled_back
            world.trace(f"{self.group.name}: {describe(request)} -> {describe_reply(reply)}")
            self.replies.put((numbered, reply))
            if isinstance(request, (Ack, EndOffsets)) and job is not None:
                job.housekeeping()
            if isinstance(request, Close):
                return


def _handle(job: Job | None, request: Request) -> Reply:
    if job is None and isinstance(request, TOLD):
        return None
    if job is None:
        raise JobNotOpenError(request.job)
    if isinstance(request, Trigger):
        return job.trigger(request)
    if isinstance(request, Locate):
        return job.locate(request)
    if isinstance(request, Ack):
        return job.acknowledge(request)
    if isinstance(request, EndOffsets):
        return job.end_offsets(request)
    if isinstance(request, Rescale):
        return job.rescale(request)
    if isinstance(request, Unreadable):
        job.unreadable(request)
    elif isinstance(request, TaskFailed):
        job.task_failed(request)
    elif isinstance(request, Decline):
        job.decline(request)
    else:
        job.close(request.status)
    return None


@dataclass(slots=True)
class _Open:
    """The endpoint's knowledge of a job, including its replay log."""

    trigger: Numbered | None = None
    again: list[Numbered] = field(default_factory=list)
    batch_id: int = -1
    triggered: Reply = None
    known_pending: dict[SubtaskKey, str] = field(default_factory=dict)
    known_pending_version: int = -1
    known: dict[SubtaskKey, str] = field(default_factory=dict)
    known_version: int = -1


class Bridge:
    """The endpoint and the bridge of one driver JVM."""

    def __init__(
        self, world: World, group: Group, rng: random.Random, clock: Clock, notify: Callable[[Notification], None]
    ) -> None:
        self.group = group
        self.clock = clock
        self.notify = notify
        self._world, self._rng = world, rng
        self._jobs: dict[str, _Open] = {}
        self._over: set[str] = set()
        """Runs that Spark has dropped, so that a late task finds no batch of theirs."""
        self._unanswered: dict[int, Numbered] = {}
        self._waiting: dict[int, Promise[Reply]] = {}
        self._replies: deque[tuple[int, Reply]] = deque()
        self._next = 0
        self._lives = 0
        self._crashes = 0
        self._process: SideProcess | None = None

    # ---- requests of tasks and listeners -----------------------------------------------------------------------------

    def locate(self, trigger: Trigger, request: Locate, held: str | None) -> LocateReply | None:
        """Location of the state; None if the store already holds the state that counts."""
        job = self._job(request.job)
        current = job.known.get(request.subtask) if request.version == job.known_version else None
        if held is not None and current == held:
            return None
        self._trigger_first(job, trigger)
        reply = self._ask(request)
        assert isinstance(reply, LocateReply)
        return reply

    def acknowledge(self, trigger: Trigger, ack: Ack) -> AckReply:
        job = self._job(ack.job)
        self._trigger_first(job, trigger)
        reply = self._ask(ack)
        assert isinstance(reply, AckReply)
        if reply.outcome is Outcome.SUCCESS:
            if ack.version != job.known_pending_version:
                job.known_pending.clear()
                job.known_pending_version = ack.version
            job.known_pending[ack.subtask] = ack.state_id
        if reply.completed is not None and reply.completed_version == job.known_pending_version:
            job.known, job.known_version = dict(job.known_pending), job.known_pending_version
        return reply

    def end_offsets(self, request: EndOffsets) -> None:
        job = self._job(request.job)
        reply = self._ask(request)
        assert isinstance(reply, EndOffsetsReply)
        if reply.completed_version == job.known_pending_version:
            job.known, job.known_version = dict(job.known_pending), job.known_pending_version

    def rescale(self, request: Rescale) -> None:
        """Asks for another number of partitions. Tables in memory have the rows of the partitions before."""
        job = self._job(request.job)
        self._ask(request)
        job.known = {}

    def unreadable(self, request: Unreadable) -> None:
        """Reports state that cannot be read. Raises the coordinator's verdict, if it finds damage."""
        self._job(request.job)
        self._ask(request)

    def _job(self, run_id: str) -> _Open:
        if run_id in self._over:
            raise JobNotOpenError(run_id)
        return self._jobs.setdefault(run_id, _Open())

    def tell(self, request: TaskFailed | Decline | Close) -> None:
        if isinstance(request, Close):
            self._over.add(request.job)
        if isinstance(request, Close) and self._jobs.pop(request.job, None) is None:
            return
        self._send(request)

    # ---- the side process --------------------------------------------------------------------------------------------

    def kill_process(self) -> None:
        """Kills the side process; its pipe ends a little later."""
        process, scheduler = self._process, self._world.scheduler
        if process is not None and process.group.alive:
            process.replies.put(None)
            scheduler.kill(process.group)

    def _read(self, process: SideProcess) -> None:
        """The thread that reads the pipe: delivers replies in order and with a delay, until the pipe ends."""
        while (answered := process.replies.get()) is not None:
            self._pause()
            self._answered(*answered)
        self._pause()
        self._ended()

    def _pause(self) -> None:
        if self._world.faults.pause and self._rng.random() < 0.3:
            self._world.scheduler.sleep(self._rng.random() ** 3 * 0.2)

    def _ended(self) -> None:
        """Restarts the process and replays the messages it must know."""
        self._process = None
        self._crashes += 1
        if self._crashes > MAX_CRASHES:
            self._crashes = 0
            for number in list(self._unanswered):
                self._settle(number, BridgeError("the side process dies again and again"))
            return
        process = self._started()
        again = {n.id: n for job in self._jobs.values() if job.trigger for n in (job.trigger, *job.again)}
        again.update(self._unanswered)
        self._world.trace(f"{process.group.name}: is told {len(again)} messages again")
        for number in sorted(again):
            process.send(again[number])

    def _answered(self, numbered: Numbered, reply: Reply) -> None:
        self._crashes = 0
        job = self._jobs.get(numbered.request.job)
        if job is not None and numbered.id in self._unanswered:
            is_complete = isinstance(reply, AckReply) and reply.completed is not None
            if is_complete or isinstance(reply, EndOffsetsReply):
                job.again.clear()
            elif _does_not_count(reply) and numbered in job.again:
                job.again.remove(numbered)  # an ack that did not count must not count on replay either
        self._settle(numbered.id, reply)

    def _settle(self, number: int, reply: Reply) -> None:
        self._unanswered.pop(number, None)
        promise = self._waiting.pop(number, None)
        if promise is not None:
            promise.set(reply)

    def _trigger_first(self, job: _Open, trigger: Trigger) -> None:
        failed = isinstance(job.triggered, Exception)
        if trigger.batch_id > job.batch_id or (trigger.batch_id == job.batch_id and failed):
            job.batch_id = trigger.batch_id
            promise: Promise[Reply] = Promise(self._world.scheduler)
            job.triggered = promise
            self._send(trigger, promise)
        if isinstance(job.triggered, Promise):
            promise = job.triggered
            reply = promise.wait(ANSWER_SECONDS)
            if reply is None:
                reply = BridgeError("no answer in time")
            if job.triggered is promise:
                job.triggered = reply
            if isinstance(reply, Exception):
                raise reply
        elif isinstance(job.triggered, Exception):
            raise job.triggered

    def _ask(self, request: Locate | Ack | EndOffsets | Rescale | Unreadable) -> Reply:
        promise: Promise[Reply] = Promise(self._world.scheduler)
        self._send(request, promise)
        reply = promise.wait(ANSWER_SECONDS)
        if reply is None:
            raise BridgeError("no answer in time")
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _send(self, request: Request, promise: Promise[Reply] | None = None) -> None:
        numbered = Numbered(self._next, request)
        self._next += 1
        process = self._process or self._started()
        if promise is not None:
            self._waiting[numbered.id] = promise
        self._unanswered[numbered.id] = numbered
        job = self._jobs.get(request.job)
        if job is not None:
            if isinstance(request, Trigger):
                job.trigger = numbered
                job.again = []
            elif isinstance(request, (Ack, TaskFailed, Decline)) and job.trigger is not None:
                job.again.append(numbered)
        process.send(numbered)

    def _started(self) -> SideProcess:
        self._lives += 1
        process = self._process = SideProcess(self._world, self, self._lives)
        self._world.scheduler.spawn("pipe", self.group, lambda: self._read(process))
        return process


def _does_not_count(reply: Reply) -> bool:
    """True if the answer says that the ack does not count (`PythonBridge.NotCounted`)."""
    if isinstance(reply, AckReply):
        return reply.outcome in (Outcome.DENIED, Outcome.UNKNOWN, Outcome.DISCARDED)
    return isinstance(reply, Exception)


def describe(request: Request) -> str:
    if isinstance(request, Trigger):
        return f"trigger {request.job} batch {request.batch_id}"
    if isinstance(request, Locate):
        return f"locate {request.job} v{request.version} {tuple(request.subtask)}"
    if isinstance(request, Ack):
        task = request.task
        attempt = f"{task.stage_id}.{task.stage_attempt}/{task.partition}.{task.attempt_number}"
        files = "".join(f" {path}" for path in request.paths)
        base = f" base v{request.base.version}" if request.base else ""
        return f"ack {request.job} v{request.version} {tuple(request.subtask)} by {attempt}{base}{files}"
    if isinstance(request, EndOffsets):
        return f"end_offsets {request.job} v{request.version} {request.offset_log.splitlines()[-1]}"
    if isinstance(request, Rescale):
        return f"rescale {request.job} v{request.version} to {request.partitions}"
    if isinstance(request, Unreadable):
        return f"unreadable {request.job} v{request.version} {tuple(request.subtask)}"
    if isinstance(request, TaskFailed):
        where = f"{request.stage_id}.{request.stage_attempt}/{request.partition}.{request.attempt_number}"
        return f"task_failed {where} {request.reason}"
    if isinstance(request, Decline):
        return f"decline {request.job} v{request.version} {tuple(request.subtask)}"
    return f"close {request.job} {request.status.value}"


def describe_reply(reply: Reply) -> str:
    if isinstance(reply, AckReply):
        completed = f", checkpoint {reply.completed}" if reply.completed else ""
        return f"{reply.outcome.value}{completed}"
    if isinstance(reply, EndOffsetsReply):
        return f"checkpoint {reply.completed}"
    if isinstance(reply, LocateReply):
        return f"checkpoint {reply.checkpoint_id}"
    if isinstance(reply, Exception):
        return f"{type(reply).__name__}: {reply}"
    return "ok"
