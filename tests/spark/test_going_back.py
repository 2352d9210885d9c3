"""Queries produce the batch answer after a rollback, and on locations restored from savepoints."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from spark_ckpt.operations.restore import restore
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.operations.savepoint import take_savepoint
from spark_ckpt.operations.verify import verify
from spark_ckpt.storage import LocalStorage
from tests.support.checkpoints import CheckpointJudge, committed_batches, log_records, numbers
from tests.support.cli import run
from tests.support.counts import RunningCount
from tests.support.formats import mainly_with_ids
from tests.support.provider import ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog

pytestmark = pytest.mark.usefixtures("checkpoint_format")


@pytest.fixture(autouse=True)
def ours(provider: ProviderUnderTest) -> None:
    if not provider.is_ours:
        pytest.skip("only our provider has checkpoints")


def checkpoint_of(location: Path, batch: int) -> int:
    return next(int(r["id"]) for r in log_records(location) if r.get("batch_id") == batch)


@mainly_with_ids
def test_a_query_goes_back_and_on(count: RunningCount) -> None:
    count.drop(2)
    count.drain()
    storage = LocalStorage(count.location)
    assert verify(storage, everything=True).is_whole
    last = committed_batches(count.location)[-1]
    # Forced: the query's session is in this process, which is alive.
    roll_back(storage, checkpoint_of(count.location, 1), force=True)
    assert committed_batches(count.location) == [0, 1]
    count.drop(last)
    count.drain()
    assert committed_batches(count.location)[-1] >= last
    count.is_right()
    assert verify(storage, everything=True).is_whole


@mainly_with_ids
def test_a_fork_and_the_query_both_go_on(
    count: RunningCount, spark: SparkSession, tmp_path: Path, judge: CheckpointJudge
) -> None:
    count.drop(2)
    count.drain()
    savepoint = LocalStorage(tmp_path / "savepoint")
    take_savepoint(LocalStorage(count.location), savepoint)
    assert verify(savepoint).is_whole
    rows = [run("read", place, "--limit", 0, "--json").json["rows"] for place in (savepoint.location, count.location)]
    assert rows[0] == rows[1] != []
    fork = QueryRunner(spark, tmp_path / "fork", judge)
    restore(savepoint, LocalStorage(fork.location))
    shutil.copytree(tmp_path / "out", tmp_path / "fork" / "out")
    count.drop(2)
    count.drain()
    count.is_right()
    query, count.runner, count.sink = count.runner, fork, BatchLog(tmp_path / "fork" / "out", "update")
    count.drain()
    count.is_right()
    assert committed_batches(query.location)[-1] == committed_batches(fork.location)[-1]


def test_a_query_that_starts_on_a_savepoint_changes_nothing_in_it(
    count: RunningCount, spark: SparkSession, tmp_path: Path, judge: CheckpointJudge
) -> None:
    count.drain()
    on_savepoint = QueryRunner(spark, tmp_path / "fork", judge)
    take_savepoint(LocalStorage(count.location), LocalStorage(on_savepoint.location))
    before = everything_in(on_savepoint.location)
    count.drop(1)
    with pytest.raises(Exception, match="SavepointLocationError") as raised:
        on_savepoint.drain(count.stream(), count.sink)
    assert f"spark-ckpt restore {on_savepoint.location} NEW_LOCATION" in str(raised.value).replace("file:", "")
    assert everything_in(on_savepoint.location) == before


def everything_in(location: Path) -> dict[str, bytes | None]:
    """Content of each file, and None for each directory, including hidden ones."""
    return {
        str(path.relative_to(location)): None if path.is_dir() else path.read_bytes() for path in location.rglob("*")
    }


def test_a_second_start_leaves_a_run_its_fence(count: RunningCount) -> None:
    """Spark looks at the location of a second start in the driver, and refuses it only then."""
    count.spark.conf.set("spark.sql.streaming.stopActiveRunOnRestart", "false")
    count.drop(2)
    first = count.runner.start(count.stream(), count.sink)
    first.processAllAvailable()
    last = committed_batches(count.location)[-1]
    roll_back(LocalStorage(count.location), checkpoint_of(count.location, 1), force=True)
    with pytest.raises(Exception, match=r"already active|CONCURRENT_QUERY"):
        count.runner.start(count.stream(), count.sink)
    count.drop(1)
    with pytest.raises(StreamingQueryException, match="LogFencedError"):
        first.processAllAvailable()
    assert numbers(count.location / "offsets") == committed_batches(count.location) == [0, 1]
    count.drop(last)  # the sink replaces what it has of later batches
    count.drain()
    assert committed_batches(count.location)[-1] >= last
    count.is_right()
