"""Topics of a real broker: administration, records in and out, and the topic as a stream or a table of Spark."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.support.feeds import Row
from tests.support.waiting import eventually

PATIENCE_MS = 600_000


@dataclass(frozen=True)
class Record:
    """A record of a topic; `value` is the decoded JSON object."""

    partition: int
    offset: int
    key: str | None
    value: dict[str, object]


@dataclass(frozen=True)
class Topic:
    """A topic whose records are JSON objects with the columns of `schema`.

    Args:
        servers: address of the broker, which must be up for each call.
        schema: DDL of the columns, without commas in types.
        name: name of the topic.
        key: column that is also the key of each record.
    """

    servers: str
    schema: str
    name: str
    key: str = "key"

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [column.split()[0] for column in self.schema.split(",")]

    def create(self, partitions: int) -> Topic:
        """Creates the topic."""
        with self._admin() as admin:
            admin.create_topics({self.name: {"num_partitions": partitions}}, wait_for_metadata=True)
        return self

    def add_partitions(self, total: int) -> None:
        """Raises the number of partitions to `total`."""
        with self._admin() as admin:
            admin.create_partitions({self.name: total})
        eventually(lambda: len(self.partitions()) == total, what=f"{self.name} has {total} partitions")

    def delete(self) -> None:
        """Deletes the topic."""
        with self._admin() as admin:
            admin.delete_topics([self.name])
            eventually(lambda: self.name not in admin.list_topics(), what=f"{self.name} is gone")

    def delete_records(self, before: int) -> None:
        """Deletes the records of each partition below an offset, as retention does."""
        ends = self.end_offsets()
        with self._admin() as admin:
            limits = {TopicPartition(self.name, number): min(before, end) for number, end in ends.items()}
            admin.delete_records(limits)

    def partitions(self) -> list[int]:
        """Numbers of the partitions."""
        with self._admin() as admin:
            (description,) = admin.describe_topics([self.name])
        return sorted(partition["partition_index"] for partition in description["partitions"])

    def end_offsets(self) -> dict[int, int]:
        """Offset of the next record of each partition."""
        with self._consumer() as consumer:
            ends = consumer.end_offsets(self._partitions())
        return {partition.partition: offset for partition, offset in ends.items()}

    def beginning_offsets(self) -> dict[int, int]:
        """Offset of the first retained record of each partition."""
        with self._consumer() as consumer:
            begins = consumer.beginning_offsets(self._partitions())
        return {partition.partition: offset for partition, offset in begins.items()}

    def send(self, rows: Iterable[Row], partitions: Sequence[int] | None = None) -> None:
        """Appends rows, in turn to each of the partitions (all by default), and waits until the broker has them."""
        targets = list(partitions) if partitions is not None else self.partitions()
        producer = KafkaProducer(bootstrap_servers=self.servers, acks="all")
        try:
            sent = []
            for number, row in enumerate(rows):
                fields = dict(zip(self.columns, row, strict=True))
                value = json.dumps(fields, default=_text).encode()
                key = str(fields[self.key]).encode() if self.key in fields else None
                target = targets[number % len(targets)]
                sent.append(producer.send(self.name, value, key=key, partition=target))
            for future in sent:
                future.get(PATIENCE_MS / 1000)
        finally:
            producer.close()

    def records(self) -> list[Record]:
        """All retained records, by partition and offset."""
        with self._consumer() as consumer:
            partitions = self._partitions()
            ends = consumer.end_offsets(partitions)
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            found: list[Record] = []

            def has_all() -> bool:
                for partition, polled in consumer.poll(timeout_ms=200).items():
                    found.extend(
                        Record(partition.partition, record.offset, _decoded(record.key), json.loads(record.value))
                        for record in polled
                    )
                return all(consumer.position(partition) >= ends[partition] for partition in partitions)

            eventually(has_all, what=lambda: f"all records of {self.name}; {len(found)} read, ends {ends}")
        return sorted(found, key=lambda record: (record.partition, record.offset))

    def rows(self) -> list[tuple[object, ...]]:
        """All retained records as tuples of the columns; times remain text."""
        return [tuple(record.value[column] for column in self.columns) for record in self.records()]

    def stream(self, spark: SparkSession, **options: object) -> DataFrame:
        """The topic as a stream from its earliest offset, with the columns of the schema."""
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.servers)
        reader = reader.option("subscribe", self.name).option("startingOffsets", "earliest")
        for name, value in options.items():
            reader = reader.option(name, str(value))
        return self._parsed(reader.load())

    def table(self, spark: SparkSession) -> DataFrame:
        """The retained records as a table, for the batch answer."""
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", self.servers)
        return self._parsed(reader.option("subscribe", self.name).load())

    def _parsed(self, frame: DataFrame) -> DataFrame:
        return frame.select(sf.from_json(sf.col("value").cast("string"), self.schema).alias("v")).select("v.*")

    def _partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, number) for number in self.partitions()]

    @contextmanager
    def _admin(self) -> Iterator[KafkaAdminClient]:
        admin = KafkaAdminClient(bootstrap_servers=self.servers)
        try:
            yield admin
        finally:
            admin.close()

    @contextmanager
    def _consumer(self) -> Iterator[KafkaConsumer]:
        consumer = KafkaConsumer(bootstrap_servers=self.servers, auto_offset_reset="earliest")
        try:
            yield consumer
        finally:
            consumer.close()


def unique_name(prefix: str) -> str:
    """Name of a topic that no other test has."""
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def _decoded(key: bytes | None) -> str | None:
    return None if key is None else key.decode()


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    raise TypeError(f"no JSON for {value!r}")
