"""Restore after real kills: of the driver, of executors on a real cluster, and of the coordinator's process."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.spark.jobs.running_count import FAILED, GATE
from tests.support.checkpoints import CheckpointJudge, committed_batches, log_records
from tests.support.events import SCHEMA, Event, events
from tests.support.feeds import Feed, at
from tests.support.processes import DriverJob, job_arguments, kill
from tests.support.provider import ProviderUnderTest
from tests.support.sinks import BatchLog, Rows, assert_same_rows
from tests.support.standalone_cluster import StandaloneCluster

JOB = "running_count.py"
KILLS = 4


class Jobs:
    """Starts drivers of the running count over one feed, and compares what they have written together."""

    def __init__(self, folder: Path, provider: ProviderUnderTest, judge: CheckpointJudge) -> None:
        self.folder = folder
        self.provider = provider
        self.judge = judge
        self.location = folder / "checkpoint"
        self.feed = Feed(folder / "feeds" / "events", SCHEMA)
        self.started: list[DriverJob] = []

    def start(self, name: str = "driver", **options: object) -> DriverJob:
        """Starts a driver."""
        job = DriverJob(JOB, self.folder, job_arguments(self.provider, **options), name=name)
        self.started.append(job)
        return job

    def finish(self, job: DriverJob) -> None:
        """Waits for the driver; its result must be the batch answer, and the location in order."""
        status = job.wait()
        assert status == 0, f"the driver ended with status {status}:\n{job.output()[-6000:]}"
        assert_same_rows(BatchLog(self.folder / "out", "update").rows(), self.answer())
        self.judge.check(self.location)

    def answer(self) -> Rows:
        """The batch answer, by Python."""
        sums: dict[object, tuple[int, int]] = {}
        for _, key, value in dict.fromkeys(self.feed.rows()):
            count, total = sums.get(key, (0, 0))
            sums[key] = (count + 1, total + int(str(value)))
        return [(key, *figures) for key, figures in sums.items()]


@pytest.fixture
def jobs(tmp_path: Path, provider: ProviderUnderTest, judge: CheckpointJudge) -> Iterator[Jobs]:
    """Drivers in this test's folder; what still runs at the end is killed."""
    jobs = Jobs(tmp_path, provider, judge)
    yield jobs
    for job in jobs.started:
        job.kill()


def with_duplicates(rng: random.Random, batches: int) -> list[list[Event]]:
    """Events of which some come again in the same batch or in the one after."""
    result = events(rng, batches, per_batch=60, keys=30)
    for earlier, later in pairwise(result):
        later += rng.choices(earlier, k=10)
    return result


def test_driver_killed_at_any_moment(jobs: Jobs, rng: random.Random) -> None:
    """kill -9 of the driver with its JVM and the coordinator, four times in the middle of the work: nothing is lost."""
    for batch in with_duplicates(rng, 24):
        jobs.feed.drop(batch)
    kills = 0
    for _ in range(KILLS):
        job = jobs.start()
        done = len(committed_batches(jobs.location))
        if job.await_batches(done + rng.randrange(1, 5)):
            time.sleep(rng.random() * 0.7)
        kills += job.running()
        job.kill()
        print(f"killed after batch {committed_batches(jobs.location)[-1]}")
    assert kills >= 2, "the drivers were too quick to be killed"
    jobs.finish(jobs.start())


def test_driver_killed_before_its_first_batch(jobs: Jobs, rng: random.Random) -> None:
    """A driver that dies in its first batch has completed nothing; the next one begins anew."""
    for batch in with_duplicates(rng, 3):
        jobs.feed.drop(batch)
    job = jobs.start()
    job.await_(lambda: (jobs.location / "offsets" / "0").exists())
    time.sleep(rng.random() * 0.5)
    job.kill()
    jobs.finish(jobs.start())


@pytest.mark.slow
def test_executors_killed_on_a_real_cluster(jobs: Jobs, rng: random.Random, tmp_path: Path) -> None:
    """kill -9 of executors in the middle of the work: the same query goes on by itself, and nothing is lost."""
    for batch in with_duplicates(rng, 14):
        jobs.feed.drop(batch)
    killed: list[int] = []
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        executor_memory = "spark.executor.memory=512m"
        job = jobs.start(master=cluster.url, conf=executor_memory, partitions=4)
        for target in (2, 6):
            assert job.await_batches(target), job.output()[-6000:]
            assert job.await_(lambda: bool(cluster.executors()))
            time.sleep(rng.random() * 0.5)
            victim = rng.choice(cluster.executors())
            kill(victim)
            killed.append(victim)
            print(f"killed executor {victim} with {len(committed_batches(jobs.location))} batches committed")
        assert job.running(), "the query ended before its executors were killed"
        jobs.finish(job)
    assert len(killed) == 2


def test_coordinator_killed_between_and_in_batches(jobs: Jobs, rng: random.Random, provider: ProviderUnderTest) -> None:
    """kill -9 of the side process: the JVM starts it again, the running checkpoint completes, the query never fails."""
    if not provider.is_ours:
        pytest.skip("only our provider has a side process")
    batches = with_duplicates(rng, 16)
    gate = jobs.folder / "gate-is-open"
    batches[6].append((at(0), GATE, 1))
    for batch in batches:
        jobs.feed.drop(batch)
    job = jobs.start(gate=gate)
    assert job.await_batches(3), job.output()[-6000:]
    kill(job.side_process())
    assert job.await_(lambda: (jobs.location / "offsets" / "6").exists()), job.output()[-6000:]
    time.sleep(rng.random())
    kill(job.side_process())
    gate.touch()
    assert job.await_batches(10), job.output()[-6000:]
    kill(job.side_process())
    jobs.finish(job)
    generations = [record["generation"] for record in log_records(jobs.location)]
    assert generations == sorted(generations)


def test_second_driver_takes_over(jobs: Jobs, rng: random.Random, provider: ProviderUnderTest) -> None:
    """A second driver takes the location of one that is held in a batch, and finishes.

    The first can then complete nothing more and says who took over; the result is the batch answer.
    """
    if not provider.is_ours:
        pytest.skip("Spark's own providers do not tell two drivers apart")
    gate = jobs.folder / "gate-is-open"
    batches = with_duplicates(rng, 8)
    batches[4].append((at(0), GATE, 1))
    for batch in batches:
        jobs.feed.drop(batch)
    first = jobs.start(name="first", gate=gate)
    assert first.await_(lambda: (jobs.location / "offsets" / "4").exists()), first.output()[-6000:]
    second = jobs.start(name="second")
    jobs.finish(second)
    records = log_records(jobs.location)
    gate.touch()
    assert first.wait() == FAILED, first.output()[-6000:]
    assert "took over" in first.output() or "taken over" in first.output(), first.output()[-6000:]
    assert log_records(jobs.location) == records, "the first driver has written to the log of the second"
    jobs.finish(second)
