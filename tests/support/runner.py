"""Runs a streaming query over feeds with restarts in between, and judges the resulting checkpoint location."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.support.checkpoints import CheckpointJudge, committed_batches, numbers
from tests.support.feeds import Feed, Row
from tests.support.sinks import Rows, Sink
from tests.support.waiting import eventually

PATIENCE = 1500.0
"""Time without progress after which a query fails its test, in seconds."""

WORKER_GIVEN_UP = "Python worker failed to connect back"
"""Part of the error of a query whose Python worker took more than ten seconds to start, a limit of Spark's
PythonWorkerFactory."""

Batches: TypeAlias = Sequence[Sequence[Row]]
Trigger: TypeAlias = Callable[[DataStreamWriter], DataStreamWriter]


class QueryRunner:
    """One streaming query on one checkpoint location, started any number of times.

    Each `finish` judges the checkpoint location: the invariants hold, and there is one completed checkpoint per
    committed batch.
    """

    def __init__(self, spark: SparkSession, folder: Path, judge: CheckpointJudge) -> None:
        self.spark = spark
        self.folder = folder
        self.judge = judge
        self.location = folder / "checkpoint"

    def feed(self, name: str, schema: str) -> Feed:
        """A new feed in the test's folder."""
        return Feed(self.folder / "feeds" / name, schema)

    def start(self, frame: DataFrame, sink: Sink, trigger: Trigger | None = None) -> StreamingQuery:
        """Starts the query; the caller stops it."""
        writer = sink.attach(frame.writeStream).option("checkpointLocation", str(self.location))
        return (trigger(writer) if trigger else writer).start()

    def drain(self, frame: DataFrame, sink: Sink, done: Callable[[], bool] | None = None) -> None:
        """Runs until all input is processed and nothing is left to evict, or until `done`; then stops.

        Starts the query again if Spark gives up on a Python worker, which happens on a busy machine.
        """
        query = self.start(frame, sink)
        try:
            if done is None:
                query.processAllAvailable()
            else:
                self.await_(done, query=query)
            return
        except StreamingQueryException as error:
            if WORKER_GIVEN_UP not in str(error):
                raise
        finally:
            query.stop()
        self.drain(frame, sink, done)

    def interrupt(self, frame: DataFrame, sink: Sink) -> None:
        """Stops the query in the middle of a batch, if it can be caught there."""
        query = self.start(frame, sink)
        try:
            self.await_(lambda: self._batch_under_way() or not query.isActive)
        finally:
            query.stop()

    def run(
        self,
        plan: Callable[[], DataFrame],
        sink: Sink,
        inputs: Mapping[Feed, Batches],
        cuts: Sequence[int] | None = None,
    ) -> Rows:
        """Feeds all inputs and returns the final content of the sink.

        The query stops when the batches before each cut are done; after each cut it is first interrupted in the middle
        of a batch. Each start makes a new plan, as a new driver would. By default, there is one cut, in the middle.
        """
        total = max(len(batches) for batches in inputs.values())
        cuts = (total // 2,) if cuts is None else cuts
        assert any(0 < cut < total for cut in cuts), "no restart in the middle"
        edges = [0, *(cut for cut in cuts if cut < total), total]
        for begin, end in pairwise(edges):
            for feed, batches in inputs.items():
                for batch in batches[begin:end]:
                    feed.drop(batch)
            if begin:
                self.interrupt(plan(), sink)
            self.drain(plan(), sink)
        return self.finish(sink)

    def finish(self, sink: Sink) -> Rows:
        """Judges the location and returns the rows of the sink."""
        self.judge.check(self.location)
        return sink.rows(self.spark)

    def await_(self, condition: Callable[[], bool], *, query: StreamingQuery | None = None) -> None:
        """Waits for `condition`; fails with the query's own error if the query ends first."""

        def holds() -> bool:
            if condition():
                return True
            if query is not None and not query.isActive:
                error = query.exception()
                raise error if error is not None else AssertionError("the query has ended by itself")
            return False

        eventually(holds, PATIENCE, lambda: f"the query makes headway; committed {committed_batches(self.location)}")

    def _batch_under_way(self) -> bool:
        started = numbers(self.location / "offsets")
        return bool(started) and started[-1] not in committed_batches(self.location)
