"""foreachBatch with the DataFrame used once, twice or in part, and with Delta tables."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from queue import Queue

import pytest
from pyspark import InheritableThread
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import LongType

from tests.support.checkpoints import committed_batches, completed_checkpoints
from tests.support.delta import needs_delta
from tests.support.events import SCHEMA, events
from tests.support.feeds import Feed
from tests.support.formats import mainly_with_ids
from tests.support.provider import ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, Rows, assert_same_rows


def by_key(frame: DataFrame) -> DataFrame:
    """A running count and sum per key."""
    return frame.groupBy("key").agg(sf.count("*").alias("n"), sf.sum("value").alias("total"))


def answer(feed: Feed, spark: SparkSession) -> Rows:
    """The batch answer."""
    return [tuple(row) for row in by_key(feed.table(spark)).collect()]


class TwiceLog(BatchLog):
    """Runs the stateful stages of each batch twice, the second time after its checkpoint is complete."""

    def write(self, frame: DataFrame, batch_id: int) -> None:
        count = frame.count()
        super().write(frame, batch_id)
        kept = self.batches()[batch_id]
        assert len(kept) == count, f"batch {batch_id}: {count} rows the first time, {len(kept)} the second"


class PartialLog(BatchLog):
    """Reads only the first rows of a batch, so that some of its partitions never run."""

    partial = True

    def write(self, frame: DataFrame, batch_id: int) -> None:
        if self.partial:
            frame.head(1)
        else:
            super().write(frame, batch_id)


@sf.udf(LongType())
def dawdle(value: int) -> int:
    """The value, after a delay that lets a second job reach the same store."""
    time.sleep(0.1)
    return value


class Threads:
    """Runs functions concurrently, each on a new thread of the given kind."""

    def __init__(self, kind: type[threading.Thread]) -> None:
        self.kind = kind

    def run(self, bodies: Sequence[Callable[[], None]]) -> None:
        """Returns when all have ended; raises the error of the first one that failed."""
        errors: list[BaseException] = []

        def run(body: Callable[[], None]) -> None:
            try:
                body()
            except BaseException as e:
                errors.append(e)

        threads = [self.kind(target=run, args=(body,)) for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]


class Pool:
    """Runs functions concurrently, on threads started in the first batch that inherited its Spark local properties."""

    def __init__(self) -> None:
        self._work: list[Queue[Callable[[], None]]] = []

    def run(self, bodies: Sequence[Callable[[], None]]) -> None:
        """Returns when all have ended; raises an error of one that failed."""
        while len(self._work) < len(bodies):
            self._work.append(Queue())
            InheritableThread(target=self._serve, args=(self._work[-1],), daemon=True).start()
        futures: list[Future[None]] = []
        for queue, body in zip(self._work, bodies, strict=False):
            future: Future[None] = Future()
            futures.append(future)
            queue.put(partial(self._settle, future, body))
        for future in futures:
            future.result()

    @staticmethod
    def _serve(work: Queue[Callable[[], None]]) -> None:
        while True:
            work.get()()

    @staticmethod
    def _settle(future: Future[None], body: Callable[[], None]) -> None:
        try:
            body()
            future.set_result(None)
        except BaseException as e:
            future.set_exception(e)


class TwoJobs(BatchLog):
    """Writes each batch to two places concurrently with two jobs, one of which waits for the stores of the other."""

    def __init__(self, folder: Path, threads: Threads | Pool) -> None:
        super().__init__(folder / "first", "update")
        self.other = BatchLog(folder / "second", "update")
        self.threads = threads

    def write(self, frame: DataFrame, batch_id: int) -> None:
        slow = frame.withColumn("total", dawdle("total"))
        self.threads.run([partial(super().write, slow, batch_id), partial(self.other.write, slow, batch_id)])


class DeltaMerge:
    """Merges each batch into a Delta table by key."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        return writer.outputMode("update").foreachBatch(self.write)

    def write(self, frame: DataFrame, batch_id: int) -> None:
        from delta.tables import DeltaTable

        spark = frame.sparkSession
        if not DeltaTable.isDeltaTable(spark, self.folder):
            frame.limit(0).write.format("delta").save(self.folder)
        table = DeltaTable.forPath(spark, self.folder).alias("t")
        merge = table.merge(frame.alias("s"), "t.key = s.key").whenMatchedUpdateAll().whenNotMatchedInsertAll()
        merge.execute()

    def rows(self, spark: SparkSession) -> Rows:
        return [tuple(row) for row in spark.read.format("delta").load(self.folder).collect()]


class DeltaAppend(DeltaMerge):
    """Appends each batch to a Delta table once: Delta skips a batch that it already has."""

    def write(self, frame: DataFrame, batch_id: int) -> None:
        writer = frame.withColumn("batch", sf.lit(batch_id)).write.format("delta").mode("append")
        writer.option("txnAppId", "test").option("txnVersion", batch_id).save(self.folder)


@mainly_with_ids
def test_data_frame_used_twice(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    """Both uses see the same rows, and the state is that of a single use."""
    feed = runner.feed("events", SCHEMA)
    sink = TwiceLog(tmp_path / "out", "update")
    rows = runner.run(lambda: by_key(feed.stream(spark)), sink, {feed: events(rng)})
    assert_same_rows(rows, answer(feed, spark))


@mainly_with_ids
@pytest.mark.parametrize(
    "threads",
    [partial(Threads, InheritableThread), partial(Threads, threading.Thread), Pool],
    ids=["inheritable", "plain", "pool"],
)
def test_two_jobs_at_once(
    runner: QueryRunner,
    spark: SparkSession,
    rng: random.Random,
    tmp_path: Path,
    checkpoint_format: None,
    threads: Callable[[], Threads | Pool],
) -> None:
    """Two jobs run concurrently on each batch: both write the whole batch, and the state is that of a single job.

    This holds on threads that lack Spark's local properties, which name the query and the batch, or have outdated ones.
    """
    feed = runner.feed("events", SCHEMA)
    sink = TwoJobs(tmp_path / "out", threads())
    rows = runner.run(lambda: by_key(feed.stream(spark)), sink, {feed: events(rng, 3)})
    assert_same_rows(rows, answer(feed, spark))
    assert_same_rows(sink.other.rows(), rows)


class PartlyUsed:
    """A query whose first start uses part of its first batch and fails, with an error that matches `error` if given."""

    def __init__(
        self, runner: QueryRunner, spark: SparkSession, rng: random.Random, folder: Path, error: str | None = None
    ) -> None:
        self.spark, self.runner = spark, runner
        self.feed = runner.feed("events", SCHEMA)
        self.sink = PartialLog(folder / "out", "update")
        for batch in events(rng, 2):
            self.feed.drop(batch)
        with pytest.raises(StreamingQueryException, match=error):
            self.drain()
        assert not completed_checkpoints(runner.location)
        self.sink.partial = False

    def drain(self) -> None:
        """Runs until all available input is processed."""
        self.runner.drain(by_key(self.feed.stream(self.spark)), self.sink)

    def runs_as_a_whole(self) -> None:
        """The batch runs again with all its partitions, and the result is correct."""
        self.drain()
        assert_same_rows(self.runner.finish(self.sink), answer(self.feed, self.spark))


def test_data_frame_used_in_part(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path, checkpoint_ids: None
) -> None:
    """A batch with subtasks that never ran has neither a commit nor a checkpoint; rerun as a whole, it gets both."""
    query = PartlyUsed(runner, spark, rng, tmp_path)
    assert not committed_batches(runner.location)
    query.runs_as_a_whole()


@pytest.mark.parametrize("check", ["true", "false"], ids=["checked", "unchecked"])
def test_data_frame_used_in_part_without_ids(
    runner: QueryRunner,
    spark: SparkSession,
    rng: random.Random,
    tmp_path: Path,
    provider: ProviderUnderTest,
    check: str,
) -> None:
    """Without ids Spark checks only after the commit, or never; then our provider checks before the next batch.

    Our error names what is missing. A restart is rejected instead of running on half a state. Once the commit and the
    offsets of the next batch are removed by hand, the batch runs again.
    """
    if not provider.is_ours and check == "false":
        pytest.skip("nobody looks")
    spark.conf.set("spark.sql.streaming.stateStore.commitValidation.enabled", check)
    error = None if check == "true" else r"IncompleteCheckpointError.*of 3 subtasks \(operator 0"
    query = PartlyUsed(runner, spark, rng, tmp_path, error)
    assert committed_batches(runner.location) == [0]
    with pytest.raises(StreamingQueryException, match="VersionNotFoundError" if provider.is_ours else ""):
        query.drain()
    for file in [*(runner.location / "commits").glob("*0*"), *(runner.location / "offsets").glob("*1*")]:
        file.unlink()
    query.runs_as_a_whole()


@needs_delta
def test_merge_into_delta(runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path) -> None:
    """The usual upsert; Delta's merge itself reads its source twice."""
    feed = runner.feed("events", SCHEMA)
    sink = DeltaMerge(tmp_path / "table")
    rows = runner.run(lambda: by_key(feed.stream(spark)), sink, {feed: events(rng, 4)}, (2,))
    assert_same_rows(rows, answer(feed, spark))


@needs_delta
@pytest.mark.long
def test_append_to_delta(runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path) -> None:
    """The table has the updates of every batch once, and the newest update of each key is the batch answer."""
    feed = runner.feed("events", SCHEMA)
    sink = DeltaAppend(tmp_path / "table")
    rows = runner.run(lambda: by_key(feed.stream(spark)), sink, {feed: events(rng, 4)}, (2,))
    assert len({(row[0], row[3]) for row in rows}) == len(rows), "a batch was appended twice"
    newest = {row[0]: row[:3] for row in sorted(rows, key=lambda row: int(str(row[3])))}
    assert_same_rows(list(newest.values()), answer(feed, spark))
