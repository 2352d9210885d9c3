"""A running count by key over a Kafka topic, for tests of one query in the shared Spark driver."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.storage import LocalStorage
from tests.support.checkpoints import log_records
from tests.support.events import SCHEMA, Event, events
from tests.support.kafka import KafkaBroker
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, assert_same_rows
from tests.support.topics import Topic, unique_name

ROWS = 40
"""Number of rows that `send` appends."""


class KafkaCount:
    """A query over a topic of its own.

    Args:
        spark: session of the query.
        runner: runner of the query.
        broker: the broker of the topic.
        folder: folder of the sink.
        rng: source of the events.
        partitions: number of partitions of the topic at the beginning.
    """

    def __init__(
        self,
        spark: SparkSession,
        runner: QueryRunner,
        broker: KafkaBroker,
        folder: Path,
        rng: random.Random,
        partitions: int = 2,
    ) -> None:
        self.spark = spark
        self.runner = runner
        self.location = runner.location
        self.topic = Topic(broker.bootstrap_servers, SCHEMA, unique_name("count")).create(partitions)
        self.sink = BatchLog(folder / "out", "update")
        self.expected: list[Event] = []
        """Rows that the result must count."""
        self._rng = rng

    def send(
        self, partitions: Sequence[int] | None = None, *, count: int = ROWS, is_expected: bool = True
    ) -> list[Event]:
        """Appends new rows, in turn to each of the partitions, and returns them."""
        (rows,) = events(self._rng, 1, per_batch=count)
        self.topic.send(rows, partitions)
        self.expected += rows if is_expected else []
        return rows

    def stream(self, **options: object) -> DataFrame:
        """The query over the topic, with these options of the source."""
        counted = self.topic.stream(self.spark, **options).groupBy("key")
        return counted.agg(sf.count("*").alias("n"), sf.sum("value").alias("total"))

    def drain(self, **options: object) -> None:
        """Runs until all records are processed."""
        self.runner.drain(self.stream(**options), self.sink)

    @contextmanager
    def running(self, **options: object) -> Iterator[StreamingQuery]:
        """Runs in this context."""
        query = self.runner.start(self.stream(**options), self.sink)
        try:
            yield query
        finally:
            query.stop()

    def roll_back(self, batch: int) -> None:
        """Rolls the stopped query back to the checkpoint of a batch, and its sink too."""
        record = next(record for record in log_records(self.location) if record.get("batch_id") == batch)
        # Forced: the query's session is in this process, which is alive.
        roll_back(LocalStorage(self.location), int(record["id"]), force=True)
        for later in self.sink.batches():
            if later > batch:
                (self.sink.folder / f"{later:010}").unlink()

    def await_result(self, query: StreamingQuery) -> None:
        """Waits until the running query has counted all expected rows."""
        self.runner.await_(lambda: self.counted() >= len(self.expected), query=query)

    def counted(self) -> int:
        """Number of rows counted so far."""
        return sum(int(str(row[1])) for row in self.sink.rows())

    def is_right(self) -> None:
        """Asserts that the result is the batch answer over the expected rows and that the location is in order."""
        result = self.runner.finish(self.sink)
        assert_same_rows(result, running_counts_of(self.expected))


def running_counts_of(rows: Sequence[Event]) -> list[tuple[object, ...]]:
    """Batch answer over all rows, repeated ones included."""
    figures: dict[object, list[int]] = {}
    for _, key, value in rows:
        figures.setdefault(key, []).append(int(str(value)))
    return [(key, len(values), sum(values)) for key, values in figures.items()]
