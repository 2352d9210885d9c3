"""A rollback while the earlier driver lives on another host: that driver ends, and none of its entries survives."""

from __future__ import annotations

import os
import random
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from spark_ckpt.location import driver_liveness
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.operations.verify import verify
from spark_ckpt.recovery.rollback import Rollback
from spark_ckpt.storage import LocalStorage
from tests.spark.jobs.running_count import FAILED, waiting
from tests.support.checkpoints import committed_batches, log_records
from tests.support.jobs import Jobs, with_duplicates
from tests.support.processes import DriverJob, descendants
from tests.support.provider import ProviderUnderTest

JOB = "standing_count.py"
BACK_TO = 1


@pytest.fixture(autouse=True)
def _only_ours(provider: ProviderUnderTest) -> None:
    if not provider.is_ours:
        pytest.skip("only our provider has checkpoints")


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes this process know nothing about others, like one in another container."""
    monkeypatch.setattr(driver_liveness, "is_running", lambda pid, identity: None)


def back(location: Path, batch: int = BACK_TO) -> Rollback:
    checkpoint_id = max(int(r["id"]) for r in log_records(location) if r.get("batch_id") == batch)
    return roll_back(LocalStorage(location), checkpoint_id)


def suspend(job: DriverJob, how: signal.Signals) -> None:
    for pid in [job.pid, *descendants(job.pid)]:
        with suppress(ProcessLookupError):  # a worker of Python, which has ended
            os.kill(pid, how)


def logs(location: Path) -> dict[str, bytes]:
    """Spark's logs and our records."""
    folders = (location / "offsets", location / "commits", location / "ckpt" / "completed")
    return {str(file): file.read_bytes() for folder in folders for file in folder.iterdir() if file.is_file()}


@pytest.mark.long
@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    ("successor", "error"),
    [
        ("before", "[CONCURRENT_STREAM_LOG_UPDATE]"),
        ("after", "[LogFencedError]"),
    ],
)
def test_a_driver_that_stands_still_before_its_commit(
    jobs: Jobs, rng: random.Random, successor: str, error: str
) -> None:
    """Suspended with SIGSTOP in the sink, after the checkpoint of batch 3. It resumes before its successor starts, or
    after that has committed the batch: then Spark itself finds the entry there."""
    gate = jobs.folder / "gate-is-open"
    for batch in with_duplicates(rng, 6):
        jobs.feed.drop(batch)
    first = jobs.start(name="first", script=JOB, gate=gate, stop_in=3)
    assert first.await_(waiting(gate).exists), first.output()[-6000:]
    suspend(first, signal.SIGSTOP)
    assert back(jobs.location).batches == (2, 3)
    gate.touch()
    if successor == "before":
        jobs.finish(jobs.start(name="second", script=JOB))
    before = logs(jobs.location)
    suspend(first, signal.SIGCONT)
    assert first.wait() == FAILED, first.output()[-6000:]
    assert error in first.output(), first.output()[-6000:]
    assert logs(jobs.location) == before
    if successor == "after":
        assert committed_batches(jobs.location) == [0, BACK_TO]
        jobs.finish(jobs.start(name="second", script=JOB))
    assert verify(LocalStorage(jobs.location), everything=True).is_whole


@pytest.mark.long
@pytest.mark.usefixtures("elsewhere")
def test_a_driver_that_waits_for_input(jobs: Jobs, rng: random.Random) -> None:
    """Its next input comes when its successor has continued, but not as far: the name of its next batch is free."""
    batches = with_duplicates(rng, 11)
    for batch in batches[:5]:
        jobs.feed.drop(batch)
    first = jobs.start(name="first", script=JOB, for_ever="yes")
    # Hadoop renames an entry before its checksum.
    assert first.await_((jobs.location / "commits" / ".4.crc").exists), first.output()[-6000:]
    suspend(first, signal.SIGSTOP)
    assert back(jobs.location).batches == (2, 3, 4)
    second = jobs.start(name="second", script=JOB)
    assert second.wait() == 0, second.output()[-6000:]
    assert committed_batches(jobs.location) == [0, 1, 2]  # the input of all batches taken back
    before = logs(jobs.location)
    jobs.feed.drop(batches[5])
    suspend(first, signal.SIGCONT)
    assert first.wait() == FAILED, first.output()[-6000:]
    assert "[LogFencedError]" in first.output(), first.output()[-6000:]
    assert logs(jobs.location) == before
    for batch in batches[6:]:
        jobs.feed.drop(batch)  # the sink replaces what it has of batches 3 and 4
    jobs.finish(jobs.start(name="third", script=JOB))
    assert verify(LocalStorage(jobs.location), everything=True).is_whole
