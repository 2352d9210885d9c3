"""State on a local disk that is full, where a small file system can be mounted.

Elsewhere, the fault table (`tests/faults`) has the same faults in the middle of each operation, by other means.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.support.checkpoints import committed_batches
from tests.support.counts import RunningCount
from tests.support.feeds import at
from tests.support.provider import ProviderUnderTest
from tests.support.tmpfs import SmallDisk, small_disk
from tests.support.waiting import eventually

NEW_KEYS = 3000
"""More keys than the space of the old rows has room for, which is used again."""

LOST = r"State on the local disk is lost, in {}/.*No space left on device"


@pytest.fixture
def local_disk(spark: SparkSession, provider: ProviderUnderTest, small_budget: None) -> Iterator[SmallDisk]:
    """Puts only the files of evicted pages on a small disk, so that Spark can still write its own beside them."""
    if not provider.is_ours:
        pytest.skip("about our local files")
    jvm: Any = spark.sparkContext._jvm
    parent = jvm.org.apache.spark.util.Utils.getLocalDir(spark.sparkContext._jsc.sc().conf())
    disk_of_jvm = getattr(getattr(jvm.org.apache.spark.sql.ckpt.store, "LocalDisk$"), "MODULE$")
    with small_disk(Path(disk_of_jvm.directoryIn(parent).getPath())) as disk:
        yield disk


@pytest.mark.long
def test_a_full_disk_at_the_start_of_a_run(count: RunningCount, local_disk: SmallDisk) -> None:
    """The state cannot be loaded, so no batch is committed; once there is space again, the query continues."""
    count.drain()
    eventually(lambda: not any(local_disk.folder.iterdir()), what="the files go with their stores")
    local_disk.fill()
    count.drop(1)
    count.fails("State on the local disk is lost", str(local_disk.folder), "No space left on device")
    local_disk.free()
    count.recovers()


def test_a_disk_that_becomes_full_under_a_running_query(count: RunningCount, local_disk: SmallDisk) -> None:
    """A batch is complete before its rows are evicted; a task fails where its state has to be loaded again."""
    query = count.runner.start(count.stream(), count.sink)
    query.processAllAvailable()
    committed = len(committed_batches(count.location))
    local_disk.fill()
    count.feed.drop([(at(0), f"new-{number}", number) for number in range(NEW_KEYS)])
    count.drop(2)
    with pytest.raises(StreamingQueryException, match=LOST.format(local_disk.folder)):
        query.processAllAvailable()
    assert committed <= len(committed_batches(count.location)) < committed + 3
    local_disk.free()
    count.recovers()
