"""Rollbacks in a simulated world, and the fence of Spark's logs that drivers keep to (Scala: `LogFence`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from spark_ckpt.checkpoint.publish import Publisher
from spark_ckpt.completed import OPERATION, JobStatus, Owner
from spark_ckpt.completed.errors import FencedError
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.location.open_store import make_store
from spark_ckpt.recovery.rollback import Rollback, claim_and_move
from spark_ckpt.spark_files.logs import SparkBatches, SparkLog
from spark_ckpt.spark_files.rollbacks import Rollbacks, marker
from tests.simulation.clocks import MachineClock
from tests.simulation.disk import SimulatedStorage
from tests.simulation.faults import Faults
from tests.simulation.scheduler import Group
from tests.simulation.stages import BatchFailed

if TYPE_CHECKING:
    from tests.simulation.world import World

ROLL_BACK = "roll back"
FRESH_SECONDS = 15.0
"""`LogFence.FreshNanos`."""

STALLS = 0.3
"""Probability that a driver stands still before it looks for a rollback, or between this and its entry."""

UNFINISHED = "RollbackUnfinishedError"
UNFINISHED_HOLDS = True
"""Whether no run starts during a rollback."""

OF_RUN = True
"""Whether each run of a driver has its own fence. Otherwise, a second start that Spark refuses replaces it."""

SECOND_STARTS = 0.3
"""Probability that a batch meets such a second start."""


def content_of(entry: bytes) -> dict[str, Any]:
    """The JSON object in an entry of a log."""
    content: dict[str, Any] = json.loads(entry.splitlines()[1])
    return content


class FencedLogs:
    """Spark's logs, as a run of the query reads and writes them through `CheckpointLogFileManager`.

    Args:
        world: the world.
        group: the run's process. It may be frozen between any two steps.

    Raises:
        BatchFailed: a rollback has not finished.
    """

    def __init__(self, world: World, group: Group) -> None:
        self._world, self._group = world, group
        self._storage = SimulatedStorage(world.disk, world.way(group, Faults(pause=0.6)))
        self._looked_at = world.scheduler.now
        there = Rollbacks.of(self._storage)
        if UNFINISHED_HOLDS and there.unfinished:
            raise BatchFailed(UNFINISHED)
        self._noted = there.epoch

    @property
    def epoch(self) -> int:
        """Log epoch at the start of the run."""
        return self._noted

    def start_again(self) -> None:
        """Starts the query once more in the driver, which Spark refuses after its look at the location."""
        world = self._world
        if world.rng.random() >= SECOND_STARTS:
            return
        try:
            second = FencedLogs(world, self._group)
        except BatchFailed:
            return
        world.count("second start refused")
        if not OF_RUN:
            self._noted, self._looked_at = second._noted, second._looked_at

    def batches(self) -> SparkBatches:
        """The batches in both logs."""
        return SparkBatches.of(SparkLog(self._storage))

    def read(self, log: str, batch: int) -> bytes:
        """An entry.

        Raises:
            BatchFailed: the entry is missing.
        """
        data = self._world.disk.read(f"{log}/{batch}")
        if data is None:
            raise BatchFailed(f"{log}/{batch} is missing")
        return data

    def put(self, log: str, batch: int, text: str) -> None:
        """Writes an entry: by a temporary file and a rename, or by one put on an object store.

        Args:
            log: directory of the log.
            batch: batch of the entry.
            text: its content.

        Raises:
            BatchFailed: the location was rolled back, or another run has written the entry.
        """
        disk, data = self._world.disk, text.encode()
        temporary = None if self._world.profile.is_remote else f"{log}/.{batch}.{self._world.new_id()}.tmp"
        if temporary is not None:
            disk.create(temporary, data)
        self._pause(temporary)
        self._check(temporary)
        self._pause(temporary)
        if temporary is not None and not disk.delete(temporary):
            self._world.count("entry of a driver fenced off")
            raise BatchFailed(f"{temporary} is gone")
        if not disk.create(f"{log}/{batch}", data):
            raise BatchFailed(f"CONCURRENT_STREAM_LOG_UPDATE: {log}/{batch} exists")

    def _pause(self, temporary: str | None) -> None:
        """Time passes. Now and then the process stands still: for any time if there is a temporary file, otherwise for
        less than a rollback waits."""
        world = self._world
        if world.rng.random() < STALLS:
            stall = world.rng.expovariate(0.1) if temporary is not None else 4 * world.rng.random()
            self._group.frozen_until = max(self._group.frozen_until, world.scheduler.now + stall)
        self._storage.exists("nothing")

    def _check(self, temporary: str | None) -> None:
        now = self._world.scheduler.now
        if temporary is None and now - self._looked_at < FRESH_SECONDS:
            return
        if self._storage.exists(marker(self.epoch + 1)):
            self._world.count("run fenced off by a rollback")
            if temporary is not None:
                self._world.disk.delete(temporary)
            raise BatchFailed("LogFencedError")
        self._looked_at = now


class RollingBack:
    """Rollbacks of drivers in progress. A person repeats one only if its process has ended."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._groups: list[Group] = []

    @property
    def alive(self) -> bool:
        """Whether a driver that lives is rolling back, even if it stands still."""
        return any(group.alive for group in self._groups)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Notes the rollbacks that drivers begin."""
        with patch("spark_ckpt.recovery.rollback_on_damage.claim_and_move", self._noting(claim_and_move)):
            yield

    def _noting(self, move: Callable[..., Rollback]) -> Callable[..., Rollback]:
        def noting(*arguments: Any, **named: Any) -> Rollback:
            world, group = self._world, self._world.scheduler.current().group
            self._groups.append(group)
            try:
                done = move(*arguments, **named)
            except SparkCkptError as e:
                world.count(f"automatic rollback failed: {type(e).__name__}")
                raise
            finally:
                self._groups.remove(group)
            world.count("rolled back automatically")
            world.trace(f"{group.name} rolled back to batch {done.checkpoint.batch_id}, from {done.batches}")
            return done

        return noting


def roll_back(world: World) -> None:
    """Rolls back as `spark-ckpt rollback --force` does, whatever drivers live."""
    if world.is_rolling_back or world.rolling_back.alive:
        return  # one at a time, by one person
    world.is_rolling_back = True
    try:
        _roll_back(world)
    finally:
        world.is_rolling_back = False


def _roll_back(world: World) -> None:
    group = world.scheduler.current().group
    storage, clock = world.storage(group), MachineClock(world.scheduler)
    owner = Owner("operator", 1, world.new_id(), world.query_id, f"{OPERATION}rollback {world.new_id()}")
    settings = {f"spark.sql.streaming.stateStore.ckpt.{k}": v for k, v in world.profile.all_settings().items()}
    store = make_store(CheckpointConfig.parse(settings), storage, owner, clock)
    try:
        store.recover()
        batches = SparkBatches.of(SparkLog(storage))
        whole = [record for record in store.all() if world.damages.is_whole(record)]
        there = [record for record in whole if batches.can_follow(record.batch_id)]
        if not there:
            return
        done = claim_and_move(Publisher(storage, store, owner), world.rng.choice(there).id, clock)
        world.count("rolled back" if done.batches else "nothing to roll back")
        world.trace(f"rolled back to batch {done.checkpoint.batch_id}, from {done.batches}")
    except FencedError:
        world.count("rollback fenced off by a driver")
    except SparkCkptError as e:
        world.count(f"rollback failed: {type(e).__name__}")
    finally:
        store.shutdown(JobStatus.SUSPENDED)
