"""Positions of real sources, as the commands show them."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.cli import run
from tests.support.delta import needs_delta
from tests.support.provider import ProviderUnderTest


@needs_delta
def test_the_positions_of_a_query_with_several_sources(
    spark: SparkSession, provider: ProviderUnderTest, tmp_path: Path
) -> None:
    """A change of the offsets that Delta and Spark write would leave a source without its kind."""
    if not provider.is_ours:
        pytest.skip("no checkpoints of spark-ckpt")
    table, files, location = (str(tmp_path / name) for name in ("table", "files", "checkpoint"))
    spark.range(3).coalesce(1).write.format("delta").save(table)
    spark.range(2).coalesce(1).write.parquet(files)
    reader = spark.readStream
    frames = [
        reader.format("delta").load(table),
        reader.schema("id long").parquet(files),
        spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load().selectExpr("value as id"),
        spark.readStream.format("rate").load().selectExpr("value as id"),
    ]
    counted = reduce(DataFrame.union, frames).groupBy("id").count()
    sink = counted.writeStream.format("noop").outputMode("update").option("checkpointLocation", location)
    sink.trigger(availableNow=True).start().awaitTermination()

    shown = run("inspect", location, "--json").json
    sources = [operator["source"] for operator in shown["operator_states"] if operator["source"] is not None]
    assert [(source["name"], source["kind"]) for source in sources] == [
        ("0", "delta"),
        ("1", "file"),
        ("2", "rate-micro-batch"),
        ("3", "number"),
    ]
    ((delta,), (file,), (rate,), (number,)) = (source["positions"] for source in sources)
    table_id = spark.sql(f"DESCRIBE DETAIL delta.`{table}`").collect()[0]["id"]
    assert (delta["table_id"], file["log_offset"]) == (table_id, 0)
    assert (delta["version"], delta["index"], delta["is_initial_snapshot"]) in ((0, 0, True), (1, -1, False))
    assert (rate["offset"], rate["timestamp_ms"]) == (5, 1000)
    assert number["offset"] >= 0
