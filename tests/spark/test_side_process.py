"""An unsuitable Python for the coordinator: the error names it, what it lacks, and the setting that selects another."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.jobs.running_count import FAILED
from tests.support.checkpoints import committed_batches, completed_checkpoints
from tests.support.jobs import Jobs, with_duplicates
from tests.support.provider import CKPT_PREFIX, ProviderUnderTest

SETTING = CKPT_PREFIX + "python"


@pytest.fixture(autouse=True)
def ours_only(provider: ProviderUnderTest) -> None:
    """Skips Spark's own providers, which have no side process."""
    if not provider.is_ours:
        pytest.skip("about our side process")


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """A Python without packages and without access to this repository."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    program = tmp_path / "bare-python"
    program.write_text(f'#!/bin/sh\nexec "{tmp_path}/bare/bin/python" -I "$@"\n')
    program.chmod(0o755)
    return program


@pytest.mark.long
def test_python_without_spark_ckpt(jobs: Jobs, rng: random.Random, bare_python: Path) -> None:
    """The batch fails with an error that names the Python and the setting; with the right one the query continues."""
    for batch in with_duplicates(rng, 3):
        jobs.feed.drop(batch)
    job = jobs.start(conf=f"{SETTING}={bare_python}")
    assert job.wait() == FAILED, job.output()[-6000:]
    for words in ("[BridgeError]", str(bare_python), "spark_ckpt", SETTING):
        assert words in job.output(), f"no {words!r} in:\n{job.output()[-6000:]}"
    assert not committed_batches(jobs.location)
    assert not completed_checkpoints(jobs.location)
    jobs.finish(jobs.start())


def test_python_that_does_not_exist(jobs: Jobs, rng: random.Random, tmp_path: Path) -> None:
    """The error names the program that cannot be started and the setting."""
    for batch in with_duplicates(rng, 1):
        jobs.feed.drop(batch)
    job = jobs.start(conf=f"{SETTING}={tmp_path / 'no-such-python'}")
    assert job.wait() == FAILED, job.output()[-6000:]
    for words in ("[BridgeError]", str(tmp_path / "no-such-python"), SETTING):
        assert words in job.output(), f"no {words!r} in:\n{job.output()[-6000:]}"
    assert not committed_batches(jobs.location)
