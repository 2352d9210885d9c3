"""Rollbacks in a simulated world, and the fence of Spark's logs that drivers keep to (Scala: `LogFence`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from spark_ckpt.checkpoint.publish import Publisher
from spark_ckpt.completed import JobStatus, Owner
from spark_ckpt.completed.errors import FencedError
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.location.open_store import make_store
from spark_ckpt.operations.driver_liveness import OPERATION
from spark_ckpt.operations.rollback import GRACE_SECONDS, check_not_subsumed, move_later_batches
from spark_ckpt.spark_files import rollbacks
from spark_ckpt.spark_files.logs import SparkBatches, SparkLog
from spark_ckpt.spark_files.rollbacks import Rollbacks
from tests.simulation.clocks import MachineClock
from tests.simulation.disk import SimulatedStorage
from tests.simulation.faults import Faults
from tests.simulation.scheduler import Group
from tests.simulation.stages import BatchFailed

if TYPE_CHECKING:
    from tests.simulation.world import World

ROLL_BACK = "roll back"
FRESH_SECONDS = 5.0
"""`LogFence.FreshNanos`."""

STRAY = "StrayLogEntryError"
UNFINISHED = "RollbackUnfinishedError"
UNFINISHED_HOLDS = True
"""Whether no run starts during a rollback."""


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
        self._world = world
        self._storage = SimulatedStorage(world.disk, world.way(group, Faults(pause=0.6)))
        self._looked_at = world.scheduler.now
        self._rollbacks = Rollbacks.of(self._storage)
        if UNFINISHED_HOLDS and self._rollbacks.unfinished:
            raise BatchFailed(UNFINISHED)

    @property
    def epoch(self) -> int:
        """Log epoch at the start of the run."""
        return self._rollbacks.epoch

    def batches(self) -> SparkBatches:
        """The batches in both logs."""
        return SparkBatches.of(SparkLog(self._storage))

    def read(self, log: str, batch: int) -> dict[str, Any]:
        """An entry.

        Raises:
            BatchFailed: the entry is missing, or a stray.
        """
        data = self._world.disk.read(f"{log}/{batch}")
        if data is None:
            raise BatchFailed(f"{log}/{batch} is missing")
        self._accept(log, batch, data)
        return content_of(data)

    def put(self, log: str, batch: int, content: dict[str, Any]) -> None:
        """Writes an entry.

        Raises:
            BatchFailed: the location was rolled back, or another run has written the entry.
        """
        end_offset = f'\n{{"topic":{{"0":{batch}}}}}' if log == "offsets" else ""
        data = f"v1\n{json.dumps(content)}{end_offset}".encode()
        self._check()
        self._storage.exists("nothing")  # time passes, and the process may be frozen
        if (marker := self._rollbacks.covering(batch)) is not None:
            name = rollbacks._voucher(marker, log, batch, data)
            self._storage.write_atomic(f"{rollbacks.ROLLBACKS}/{name}", b"{}")
        if not self._world.disk.create(f"{log}/{batch}", data):
            raise BatchFailed(f"CONCURRENT_STREAM_LOG_UPDATE: {log}/{batch} exists")

    def _check(self) -> None:
        now = self._world.scheduler.now
        if now - self._looked_at >= FRESH_SECONDS:
            if self._storage.exists(f"{rollbacks.ROLLBACKS}/{self.epoch + 1:020}.json"):
                self._world.count("run fenced off by a rollback")
                raise BatchFailed("LogFencedError")
            self._looked_at = now

    def _accept(self, log: str, batch: int, data: bytes) -> None:
        marker = self._rollbacks.covering(batch)
        if marker is None or not marker.is_done:
            return
        if not self._storage.exists(f"{rollbacks.ROLLBACKS}/{rollbacks._voucher(marker, log, batch, data)}"):
            self._world.count("stray entry refused")
            raise BatchFailed(f"{STRAY}: {log}/{batch}")


def roll_back(world: World, below: int | None = None) -> None:
    """Rolls back as `spark-ckpt rollback --force` does, whatever drivers live.

    Args:
        world: the world.
        below: batch above the one to go back to; None to choose from all that can be.
    """
    if world.is_rolling_back:
        return  # one at a time, by one person
    world.is_rolling_back = True
    try:
        _roll_back(world, below)
    finally:
        world.is_rolling_back = False


def _roll_back(world: World, below: int | None) -> None:
    group = world.scheduler.current().group
    storage, clock = world.storage(group), MachineClock(world.scheduler)
    owner = Owner("operator", 1, world.new_id(), world.query_id, f"{OPERATION}rollback {world.new_id()}")
    settings = {f"spark.sql.streaming.stateStore.ckpt.{k}": v for k, v in world.profile.settings.items()}
    store = make_store(CheckpointConfig.parse(settings), storage, owner, clock)
    try:
        store.recover()
        batches = SparkBatches.of(SparkLog(storage))
        there = [r for r in store.all() if batches.can_follow(r.batch_id) and (below is None or r.batch_id < below)]
        if not there:
            return
        record = there[-1] if below is not None else world.rng.choice(there)
        store.claim()
        if record in store.all():
            check_not_subsumed(storage, store, record)
            publisher = Publisher(storage, store, owner)
            done = move_later_batches(
                storage, store, record, clock, holds=True, grace=GRACE_SECONDS, publisher=publisher
            )
            world.count("rolled back" if done.batches else "nothing to roll back")
            world.trace(f"rolled back to batch {record.batch_id}, from {done.batches}")
    except FencedError:
        world.count("rollback fenced off by a driver")
    except SparkCkptError as e:
        world.count(f"rollback failed: {type(e).__name__}")
    finally:
        store.shutdown(JobStatus.SUSPENDED)
