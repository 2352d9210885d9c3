"""A source for real-time mode, taken from Spark's own tests."""

from __future__ import annotations

from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 2


class RealTimeStream:
    """Spark's `LowLatencyMemoryStream` of integers; also readable in micro-batches."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm = cast(Any, spark.sparkContext._jvm)
        sources = self._jvm.org.apache.spark.sql.execution.streaming.sources
        companion = getattr(getattr(sources, "LowLatencyMemoryStream$"), "MODULE$")
        integers = self._jvm.org.apache.spark.sql.Encoders.INT()
        self._stream = companion.apply(spark._jsparkSession, PARTITIONS, integers)

    def frame(self) -> DataFrame:
        """The stream, with one column `value`."""
        return DataFrame(self._stream.toDF(), self._spark)

    def add(self, *values: int) -> None:
        """Adds values to the stream."""
        rows = self._jvm.java.util.ArrayList()
        for value in values:
            rows.add(value)
        self._stream.addData(self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(rows))
