"""Drivers of one query, started one after the other or at once, and what they have to have done together."""

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
    """Starts drivers of the running count over one feed, and compares what they have written together."""

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
        """Waits for the driver; its result must be the batch answer, and the location in order.

        A driver may write more than the columns of the answer. With `orphans`, files that nothing refers to may be
        left: those of a coordinator that died while its driver lived go with the claim of the next driver.
        """
        status = job.wait()
        assert status == 0, f"the driver ended with status {status}:\n{job.output()[-6000:]}"
        assert_same_rows([row[:3] for row in self.sink.rows()], self.answer())
        self.judge.check(self.location, orphans=orphans)

    def answer(self) -> Rows:
        """The batch answer."""
        return running_counts(self.feed.rows())


def running_counts(events: Iterable[Row]) -> Rows:
    """The batch answer to the query of these drivers, by Python."""
    sums: dict[object, tuple[int, int]] = {}
    for _, key, value in dict.fromkeys(tuple(event) for event in events):
        count, total = sums.get(key, (0, 0))
        sums[key] = (count + 1, total + int(str(value)))
    return [(key, *figures) for key, figures in sums.items()]


def with_duplicates(rng: random.Random, batches: int) -> list[list[Event]]:
    """Events of which some come again in the same batch or in the one after."""
    result = events(rng, batches, per_batch=60, keys=30)
    for earlier, later in pairwise(result):
        later += rng.choices(earlier, k=10)
    return result
