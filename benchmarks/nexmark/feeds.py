"""The events of a run: files that appear one by one, or a topic of Kafka that has them already."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.nexmark.queries import Events, read

PARTITIONS = 2
"""Partitions of a topic. Each has every second event, so that batches have the same events as the files."""

_LOOK_SECONDS = 0.05


class Feed(ABC):
    """Events of one run, batch by batch.

    Args:
        files: prepared files, one per batch; the last one closes all windows.
        warmups: batches before the measured ones.
        measured: measured batches.
    """

    def __init__(self, files: Sequence[Path], warmups: int, measured: int) -> None:
        self._files = files
        self._warmups = warmups
        self._measured = measured

    @abstractmethod
    def events(self, spark: SparkSession) -> Events:
        """The stream, a batch per trigger."""

    @abstractmethod
    def warm_up(self, query: StreamingQuery) -> None:
        """Lets a query process the first batches, and returns at their end."""

    @abstractmethod
    def measure(self, query: StreamingQuery) -> None:
        """Lets it process the measured batches, and returns at their end."""

    def restart(self) -> None:
        """Adds the batch of the restart."""
        self._add(self._files[self._warmups + self._measured :][:1])

    def end(self) -> None:
        """Adds the event that closes all windows."""
        self._add(self._files[-1:])

    @abstractmethod
    def _add(self, files: Sequence[Path]) -> None: ...


class Files(Feed):
    """A folder in which files appear.

    Args:
        files: see `Feed`.
        folder: the folder.
        warmups: see `Feed`.
        measured: see `Feed`.
    """

    def __init__(self, files: Sequence[Path], folder: Path, warmups: int, measured: int) -> None:
        super().__init__(files, warmups, measured)
        self._folder = folder
        folder.mkdir(parents=True)

    def events(self, spark: SparkSession) -> Events:
        """The stream of files."""
        return read(spark, str(self._folder), str(self._files[0].parent))

    def warm_up(self, query: StreamingQuery) -> None:
        """Adds the first files."""
        self._add(self._files[: self._warmups])
        query.processAllAvailable()

    def measure(self, query: StreamingQuery) -> None:
        """Adds the measured files."""
        self._add(self._files[self._warmups : self._warmups + self._measured])
        query.processAllAvailable()

    def _add(self, files: Sequence[Path]) -> None:
        for file in files:
            os.link(file, self._folder / file.name)


@dataclass(frozen=True)
class Topics:
    """Topics of a broker.

    Args:
        servers: address of the broker.
        spark: session that writes them.
        schema: folder of files with the columns of an event.
    """

    servers: str
    spark: SparkSession
    schema: Path

    def write(self, topic: str, files: Sequence[Path]) -> None:
        """Appends the events of files to a topic, as JSON."""
        for file in files:
            rows = self.spark.read.parquet(str(file)).coalesce(1)
            records = rows.select(
                F.to_json(F.struct("*")).alias("value"),
                (F.monotonically_increasing_id() % PARTITIONS).cast("int").alias("partition"),
            )
            writer = records.write.format("kafka").option("kafka.bootstrap.servers", self.servers)
            writer.option("topic", topic).save()

    def stream(self, spark: SparkSession, topics: Sequence[str], per_batch: int) -> DataFrame:
        """The events of topics in a session, from the first on."""
        schema = spark.read.parquet(str(self.schema)).schema
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.servers)
        reader = reader.option("subscribe", ",".join(topics)).option("startingOffsets", "earliest")
        records = reader.option("maxOffsetsPerTrigger", per_batch).load()
        return records.select(F.from_json(F.col("value").cast("string"), schema).alias("event")).select("event.*")


class Kafka(Feed):
    """A topic that has the events of all runs, and one for the events that a run adds.

    Args:
        topics: topics of the broker.
        files: see `Feed`.
        shared: topic that has the batches until the restart.
        own: topic for the rest.
        events: events per batch.
        warmups: see `Feed`.
        measured: see `Feed`.
    """

    def __init__(
        self, topics: Topics, files: Sequence[Path], shared: str, own: str, events: int, warmups: int, measured: int
    ) -> None:
        super().__init__(files, warmups, measured)
        self._topics = topics
        self._shared = shared
        self._own = own
        self._events = events

    def events(self, spark: SparkSession) -> Events:
        """The stream of both topics."""
        return self._topics.stream(spark, [self._shared, self._own], self._events)

    def warm_up(self, query: StreamingQuery) -> None:
        """Waits for the first batches; the others follow without a pause."""
        while query.isActive:
            progress = query.lastProgress
            if progress is not None and progress.batchId >= self._warmups - 1:
                return
            time.sleep(_LOOK_SECONDS)

    def measure(self, query: StreamingQuery) -> None:
        """Waits for the others."""
        query.processAllAvailable()

    def _add(self, files: Sequence[Path]) -> None:
        self._topics.write(self._own, files)
