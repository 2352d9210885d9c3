"""State carried in the acknowledgements of a running query."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.support.feeds import at
from tests.support.jobs import Jobs
from tests.support.provider import CKPT_PREFIX, ProviderUnderTest
from tests.support.sinks import BatchLog, assert_same_rows

PARTITIONS = 4
"""Partitions of the driver program, with one store each."""


@pytest.mark.parametrize(("memory", "in_files"), [(0, True), pytest.param(128 << 20, False, marks=pytest.mark.long)])
def test_with_little_memory_tasks_write_files_in_every_batch(
    jobs: Jobs, rng: random.Random, provider: ProviderUnderTest, memory: int, in_files: bool
) -> None:
    """The first task of a batch learns the limit from `locate`; so do later ones, even with their state in memory."""
    if not provider.is_ours:
        pytest.skip("Spark's own providers have no acknowledgements")
    for batch in range(4):
        jobs.feed.drop([(at(batch), f"key-{n}", rng.randrange(100)) for n in range(200)])
    job = jobs.start(conf=[f"{CKPT_PREFIX}ackMemory={memory}", f"{CKPT_PREFIX}retained=20"])
    assert job.wait() == 0, job.output()[-6000:]
    assert_same_rows(BatchLog(jobs.folder / "out", "update").rows(), jobs.answer())
    kinds = Counter(file.name.partition("-")[0] for file in (Path(jobs.location) / "ckpt" / "shared").glob("*-*"))
    assert (kinds["delta"] >= 4) == in_files, kinds
    assert (kinds["merged"] == 0) == in_files, kinds
