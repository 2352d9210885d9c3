"""Restore after real kills: of the driver, of executors on a real cluster, and of the coordinator's process."""

from __future__ import annotations

import os
import random
import time
from functools import partial
from pathlib import Path

import pytest

from spark_ckpt import config
from spark_ckpt.checkpoint.layout import metadata_path
from spark_ckpt.operations.gc import collect_garbage
from spark_ckpt.storage import LocalStorage
from tests.spark.jobs.running_count import FAILED, GATE, SLOW, waiting
from tests.support.checkpoints import committed_batches, log_records
from tests.support.feeds import at
from tests.support.jobs import Jobs, with_duplicates
from tests.support.processes import DriverJob, descendants, hang, kill
from tests.support.provider import ProviderUnderTest
from tests.support.standalone_cluster import StandaloneCluster

KILLS = 1
"""A kill takes half a minute; `make soak` has many."""


# Not of the core: there, the driver of test_scala.py is killed.
def test_driver_killed_at_any_moment(jobs: Jobs, rng: random.Random) -> None:
    """SIGKILL of the driver with its JVM and the coordinator, several times during the work: nothing is lost.

    Every other driver has its state on the local disk, each compresses it in another way, and all of them continue
    from the one before.
    """
    gate = jobs.folder / "gate-is-open"
    batches = with_duplicates(rng, 6 * (KILLS + 1))
    batches[-1].append((at(0), GATE, 1))  # so that no driver finishes too early, however fast the machine is
    for batch in batches:
        jobs.feed.drop(batch)
    for number in range(KILLS):
        settings = {config.MEMORY_BUDGET: ("1", "40%")[number % 2], config.COMPRESSION: ("zstd", "lz4")[number % 2]}
        job = jobs.start(gate=gate, conf=[f"{setting.key}={value}" for setting, value in settings.items()])
        done = len(committed_batches(jobs.location))
        assert job.await_batches(min(done + rng.randrange(1, 5), len(batches) - 1)), job.output()[-6000:]
        time.sleep(rng.random() * 0.7)
        assert job.running(), job.output()[-6000:]
        job.kill()
        print(f"killed after batch {committed_batches(jobs.location)[-1]}")
    gate.touch()
    jobs.finish(jobs.start(gate=gate))


@pytest.mark.long
def test_driver_killed_before_its_first_batch(jobs: Jobs, rng: random.Random) -> None:
    """A driver that dies in its first batch has completed nothing; the next one starts from the beginning."""
    for batch in with_duplicates(rng, 3):
        jobs.feed.drop(batch)
    job = jobs.start()
    job.await_(lambda: (jobs.location / "offsets" / "0").exists())
    time.sleep(rng.random() * 0.5)
    job.kill()
    jobs.finish(jobs.start())


@pytest.mark.long
def test_executors_killed_on_a_real_cluster(jobs: Jobs, rng: random.Random, tmp_path: Path) -> None:
    """SIGKILL of executors during the work: the same query recovers by itself, and nothing is lost.

    The shorter test is `test_attempts.py`, which kills two executors at chosen moments.
    """
    kills = 3
    gate = jobs.folder / "gate-is-open"
    batches = with_duplicates(rng, 6 + 4 * kills)
    batches[-1].append((at(0), GATE, 1))  # so that the query does not finish too early, however fast the machine is
    for batch in batches:
        jobs.feed.drop(batch)
    killed: list[int] = []
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        executor_memory = "spark.executor.memory=512m"
        job = jobs.start(master=cluster.url, conf=executor_memory, partitions=4, gate=gate)
        for target in range(2, 2 + 4 * kills, 4):
            assert job.await_batches(target), job.output()[-6000:]
            assert job.await_(lambda: bool(cluster.executors()))
            time.sleep(rng.random() * 0.5)
            victim = rng.choice(cluster.executors())
            kill(victim)
            killed.append(victim)
            print(f"killed executor {victim} with {len(committed_batches(jobs.location))} batches committed")
        assert job.running(), "the query ended before its executors were killed"
        gate.touch()
        jobs.finish(job)
    assert len(killed) == kills


def test_coordinator_killed_and_hanging_between_and_in_batches(
    jobs: Jobs, rng: random.Random, provider: ProviderUnderTest
) -> None:
    """SIGKILL or SIGSTOP of the side process: the JVM replaces it, the running checkpoint completes, and the query does
    not fail.

    It hangs when the first operator has acknowledged and the second has not.
    """
    if not provider.is_ours:
        pytest.skip("only our provider has a side process")
    *batches, for_the_next = with_duplicates(rng, 11)
    gate = jobs.folder / "gate-is-open"
    batches[4].append((at(0), GATE, 1))
    for batch in batches:
        jobs.feed.drop(batch)
    job = jobs.start(gate=gate, conf=[f"{config.BRIDGE_SILENCE.key}=3s"])
    assert job.await_batches(2), job.output()[-6000:]
    kill(job.side_process())
    assert job.await_(waiting(gate).exists), job.output()[-6000:]
    time.sleep(rng.random() * 2)
    hang(job.side_process())
    gate.touch()
    assert job.await_batches(7), job.output()[-6000:]
    kill(job.side_process())
    jobs.finish(job, orphans=True)
    jobs.feed.drop(for_the_next)  # without a batch, a driver claims nothing
    jobs.finish(jobs.start(name="next"))  # its claim deletes the files left behind by the killed coordinators
    batches_done = [record["batch_id"] for record in log_records(jobs.location) if record["kind"] == "checkpoint"]
    assert batches_done == committed_batches(jobs.location), "a batch was completed by two coordinators"


@pytest.mark.long
def test_a_busy_driver_loses_to_each_that_starts_later(
    jobs: Jobs, rng: random.Random, provider: ProviderUnderTest
) -> None:
    """The newer claim wins each time against a driver that completes a batch about every six seconds.

    A newcomer that has planned a batch which the earlier driver then commits is told to restart. It is never told
    that the earlier driver has taken over, and needs only a few starts.
    """
    if not provider.is_ours:
        pytest.skip("Spark's own providers do not tell two drivers apart")
    tries = int(os.environ.get("SPARK_CKPT_TEST_TAKEOVERS", "1"))
    gate = jobs.folder / "gate-is-open"
    *batches, for_the_next = with_duplicates(rng, 40 * (tries + 1) + 1)
    for batch in batches:
        batch.append((at(0), SLOW, rng.randrange(10**9)))
    batches[-1].append((at(0), GATE, 1))  # so that only a takeover ends the driver, however fast the machine is
    for batch in batches:
        jobs.feed.drop(batch)
    owner = jobs.start(name="owner", gate=gate, conf=KEEP_LOGS)
    assert owner.await_batches(2), owner.output()[-6000:]
    for number in range(tries):
        owner = _takes_over(jobs, owner, f"newcomer-{number}", gate)
    gate.touch()
    # A driver that lost the create of a record may have written its `_metadata` after the newcomer's claim cleaned up,
    # and deletes nothing itself; the next claim does.
    jobs.finish(owner, orphans=True)
    jobs.feed.drop(for_the_next)  # without a batch, a driver claims nothing
    jobs.finish(jobs.start(name="next", conf=KEEP_LOGS))


def _takes_over(jobs: Jobs, owner: DriverJob, name: str, gate: Path) -> DriverJob:
    """Restarts a newcomer, as a supervisor would, until it has replaced and stopped the owner."""
    starts: list[DriverJob] = []
    while True:
        newcomer = jobs.start(name=name, gate=gate, conf=KEEP_LOGS)
        starts.append(newcomer)
        if newcomer.await_(partial(_has_completed, jobs, newcomer)):
            break
        assert newcomer.wait() == FAILED, newcomer.output()[-6000:]
        assert any(words in newcomer.output() for words in START_AGAIN), newcomer.output()[-6000:]
        assert "has taken over" not in newcomer.output()
        assert len(starts) < 4, f"{len(starts)} newcomers did not stop it:\n{newcomer.output()[-6000:]}"
    assert owner.wait() == FAILED, owner.output()[-6000:]
    assert any(words in owner.output() for words in STOPPED), owner.output()[-6000:]
    print(f"{name} has taken over with start {len(starts)}")
    return newcomer


KEEP_LOGS = "spark.sql.streaming.minBatchesToRetain=1000"
# Errors of Spark's batch logs and source logs, respectively, when another driver has written the same batch.
_SPARK_LOST = ("CONCURRENT_STREAM_LOG_UPDATE", "Multiple streaming queries are concurrently using")
STOPPED = ("[FencedError]", *_SPARK_LOST)
START_AGAIN = ("[BatchCommittedError]", *_SPARK_LOST)


def _has_completed(jobs: Jobs, driver: DriverJob) -> bool:
    """True if the newest checkpoint was written by this driver."""
    records = log_records(jobs.location)
    pids = {driver.pid, *descendants(driver.pid)}
    return bool(records) and records[-1]["kind"] == "checkpoint" and records[-1]["owner"]["pid"] in pids


def test_second_driver_takes_over(jobs: Jobs, rng: random.Random, provider: ProviderUnderTest) -> None:
    """A second driver takes over the location of a driver held in a batch, and finishes.

    The first driver can complete nothing more and names its successor; the result is the batch answer.
    """
    if not provider.is_ours:
        pytest.skip("Spark's own providers do not tell two drivers apart")
    gate = jobs.folder / "gate-is-open"
    batches = with_duplicates(rng, 8)
    batches[4].append((at(0), GATE, 1))
    for batch in batches:
        jobs.feed.drop(batch)
    first = jobs.start(name="first", gate=gate)
    assert first.await_(waiting(gate).exists), first.output()[-6000:]
    second = jobs.start(name="second")
    jobs.finish(second)
    records = log_records(jobs.location)
    gate.touch()
    assert first.wait() == FAILED, first.output()[-6000:]
    for words in ("[FencedError]", f"run {records[-1]['owner']['run_id']}", "has taken over"):
        assert words in first.output(), f"no {words!r} in:\n{first.output()[-6000:]}"
    assert log_records(jobs.location) == records, "the first driver has written to the log of the second"
    # A fenced driver deletes nothing, since its successor might have found the checkpoint complete. `gc` decides.
    taken = next(record["id"] for record in records if record["generation"] == records[-1]["generation"])
    collected = collect_garbage(LocalStorage(jobs.location), grace_seconds=0)
    assert [orphan.path for orphan in collected.orphans] == [metadata_path(taken)]
    jobs.finish(second)
