"""The location of a running query is lost, with its driver and its mirror's process: it continues on the mirror."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys

import pytest

from spark_ckpt.operations.verify import verify
from spark_ckpt.storage import LocalStorage
from tests.spark.jobs.running_count import GATE, waiting
from tests.support.checkpoints import committed_batches
from tests.support.cli import run
from tests.support.feeds import at
from tests.support.jobs import Jobs, with_duplicates
from tests.support.provider import REPOSITORY, ProviderUnderTest
from tests.support.waiting import eventually

BATCHES = 10
GATED = 6
"""The batch in which the first driver is killed."""


def test_a_query_continues_on_its_mirror(jobs: Jobs, rng: random.Random, provider: ProviderUnderTest) -> None:
    """SIGKILL of the driver amid a batch, and of the mirror's process before; then the first location disappears."""
    if not provider.is_ours:
        pytest.skip("only our checkpoints have mirrors")
    mirror, gate = jobs.folder / "mirror", jobs.folder / "gate-is-open"
    batches = with_duplicates(rng, BATCHES)
    batches[GATED].append((at(0), GATE, 1))
    for batch in batches:
        jobs.feed.drop(batch)
    driver = jobs.start("first", gate=gate)
    assert driver.await_batches(2), driver.output()[-6000:]
    command = [sys.executable, "-m", "spark_ckpt", "mirror", str(jobs.location), str(mirror), "--follow"]
    command += ["--every", "100ms"]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline().startswith("batch ")
        assert driver.await_(waiting(gate).exists), driver.output()[-6000:]
        eventually(lambda: GATED - 1 in committed_batches(mirror), what=lambda: "the mirror has the last whole batch")
        follower.kill()
    assert verify(LocalStorage(mirror), everything=True).is_whole
    driver.kill()
    assert run("failover", mirror).status == 0
    shutil.rmtree(jobs.location)
    gate.touch()
    second = jobs.start("second", location=str(mirror), gate=gate)
    assert second.wait() == 0, second.output()[-6000:]
    assert committed_batches(mirror)[-1] == BATCHES - 1
    shutil.copytree(mirror, jobs.location)
    jobs.finish(second)
