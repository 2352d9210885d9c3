"""The feeds as Kafka topics: filled from the files, and read by the driver in batches of the size of a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
from kafka import KafkaAdminClient, KafkaProducer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

PARTITIONS = 3


@dataclass(frozen=True)
class Topics:
    """Topics with the names of the folders of the feeds.

    Args:
        servers: address of the broker.
        rows: number of rows of each file of flights.
    """

    servers: str
    rows: tuple[int, ...] = ()

    def fill(self, folder: Path) -> None:
        """Create the topic of a feed and write the rows of all files to it, in order, to each partition in turn."""
        admin = KafkaAdminClient(bootstrap_servers=self.servers)
        admin.create_topics({folder.name: {"num_partitions": PARTITIONS}}, wait_for_metadata=True)
        admin.close()
        producer = KafkaProducer(bootstrap_servers=self.servers, acks="all", linger_ms=50)
        sent: list[Any] = []
        for file in _files(folder):
            for row in pq.read_table(file).to_pylist():
                sent.append(producer.send(folder.name, msgspec.json.encode(row), partition=len(sent) % PARTITIONS))
        producer.flush()
        for future in sent:
            future.get()  # raises the error of a record that the broker does not have
        producer.close()

    def read(self, spark: SparkSession, folder: Path) -> DataFrame:
        """The topic of a feed as a stream with the columns of its files; a batch has as many rows as a file."""
        schema = spark.read.parquet(str(folder)).schema
        sizes = [pq.read_metadata(file).num_rows for file in _files(folder)]
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.servers)
        reader = reader.option("subscribe", folder.name).option("startingOffsets", "earliest")
        records = reader.option("maxOffsetsPerTrigger", -(-sum(sizes) // len(sizes))).load()
        return records.select(F.from_json(F.col("value").cast("string"), schema).alias("row")).select("row.*")


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))
