"""Drivers of one query, started in sequence or concurrently, and their combined result."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from tests.support.checkpoints import CheckpointJudge
from tests.support.events import SCHEMA, Event, events
from tests.support.feeds import Feed, Row
from tests.support.processes import DriverJob, job_arguments
from tests.support.provider import ProviderUnderTest
from tests.support.sinks import BatchLog, Rows, assert_same_rows

JOB = "running_count.py"


class Jobs:
    """Starts drivers of the running count over one feed, and judges their combined output."""

    def __init__(self, folder: Path, provider: ProviderUnderTest, judge: CheckpointJudge) -> None:
        self.folder = folder
        self.provider = provider
        self.judge = judge
        self.location = folder / "checkpoint"
        self.feed = Feed(folder / "feeds" / "events", SCHEMA)
        self.sink = BatchLog(folder / "out", "update")
        self.started: list[DriverJob] = []

    def start(self, name: str = "driver", script: str = JOB, **options: object) -> DriverJob:
        """Starts a driver."""
        job = DriverJob(script, self.folder, job_arguments(self.provider, **options), name=name)
        self.started.append(job)
        return job

    def finish(self, job: DriverJob, *, orphans: bool = False) -> None:
        """Waits for the driver; asserts that its result is the batch answer and that the location is in order.

        A driver may write more columns than the answer has. With `orphans`, unreferenced files may remain: files of a
        coordinator that died while its driver lived are deleted by the next driver's claim.
        """
        status = job.wait()
        assert status == 0, f"the driver ended with status {status}:\n{job.output()[-6000:]}"
        assert_same_rows([row[:3] for row in self.sink.rows()], self.answer())
        self.judge.check(self.location, orphans=orphans)

    def answer(self) -> Rows:
        """The batch answer."""
        return running_counts(self.feed.rows())


def running_counts(events: Iterable[Row]) -> Rows:
    """Batch answer to the drivers' query, computed in Python."""
    sums: dict[object, tuple[int, int]] = {}
    for _, key, value in dict.fromkeys(tuple(event) for event in events):
        count, total = sums.get(key, (0, 0))
        sums[key] = (count + 1, total + int(str(value)))
    return [(key, *figures) for key, figures in sums.items()]


def with_duplicates(rng: random.Random, batches: int) -> list[list[Event]]:
    """Events, some repeated in the same batch or in the next one."""
    result = events(rng, batches, per_batch=60, keys=30)
    for earlier, later in pairwise(result):
        later += rng.choices(earlier, k=10)
    return result
