"""The checkpoint is durable before Spark commits the batch: if it cannot be written, the batch is not committed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import StreamingQueryException

from spark_ckpt.checkpoint.layout import metadata_path
from tests.support.checkpoints import committed_batches, log_records, numbers
from tests.support.counts import RunningCount
from tests.support.provider import ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.tmpfs import SmallDisk, small_disk


@pytest.fixture(autouse=True)
def ours_only(provider: ProviderUnderTest) -> None:
    """Skips Spark's own providers, which have no checkpoint that could be late."""
    if not provider.is_ours:
        pytest.skip("about our checkpoints")


def test_metadata_that_cannot_be_written(count: RunningCount) -> None:
    """Files block every directory that is tried: no `_metadata`, therefore no commit, and nothing is lost."""
    count.drain()
    following = log_records(count.location)[-1]["id"] + 1
    paths = [metadata_path(number, attempt) for number in range(following, following + 4) for attempt in range(1, 9)]
    obstacles = [(count.location / "ckpt" / path).parent for path in paths]
    for obstacle in obstacles:
        obstacle.write_text("in the way")
    count.drop(1)
    count.fails("[TooManyFailuresError]", str(count.location / "ckpt" / "chk-"), "_metadata")
    assert numbers(count.location / "offsets")[-1] == committed_batches(count.location)[-1] + 1, "no batch was begun"
    for obstacle in obstacles:
        obstacle.unlink()
    count.recovers()


@pytest.fixture
def full_disk(runner: QueryRunner) -> Iterator[SmallDisk]:
    """Puts only `ckpt/` on a small disk, so that Spark's own files can still be written."""
    with small_disk(runner.location / "ckpt") as disk:
        yield disk


def test_disk_full(count: RunningCount, full_disk: SmallDisk) -> None:
    """No space for the checkpoint: the batch is not committed; once there is space again, the query continues."""
    count.drain()
    full_disk.fill()
    count.drop(1)
    count.fails("[StorageError]", str(count.location / "ckpt"), "No space left on device")
    full_disk.free()
    count.recovers()


def test_disk_read_only(count: RunningCount, full_disk: SmallDisk) -> None:
    """The checkpoints' file system becomes read-only: the batch is not committed."""
    count.drain()
    full_disk.read_only(True)
    count.drop(1)
    count.fails("[StorageError]", str(count.location / "ckpt"), "Read-only file system")
    full_disk.read_only(False)
    count.recovers()


def test_disk_full_while_running(count: RunningCount, full_disk: SmallDisk) -> None:
    """The disk fills up under a running query: it fails at that batch, and earlier batches remain."""
    query = count.runner.start(count.stream(), count.sink)
    query.processAllAvailable()
    committed = committed_batches(count.location)
    full_disk.fill()
    count.drop(1)
    with pytest.raises(StreamingQueryException, match="No space left on device"):
        query.processAllAvailable()
    assert committed_batches(count.location) == committed
    full_disk.free()
    count.recovers()
