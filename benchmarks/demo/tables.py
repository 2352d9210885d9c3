"""The queries' tables: Delta's, or Parquet files where Delta has no release for the running Spark."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

HAS_DELTA = importlib.util.find_spec("delta") is not None
FORMAT = "delta" if HAS_DELTA else "parquet"
TITLE = "Delta tables" if HAS_DELTA else "Parquet tables"

_READ = {} if HAS_DELTA else {"mergeSchema": "true"}  # a changed query may have added a column

BATCH = "_batch"
"""Column of a Parquet table of changed rows: the batch that wrote them, as a partition."""


def append(writer: DataStreamWriter, table: Path) -> StreamingQuery:
    """Start a query that appends its rows to a table, exactly once."""
    return writer.format(FORMAT).outputMode("append").start(str(table))


def merge(writer: DataStreamWriter, table: Path, schema: StructType, name: str, key: str) -> StreamingQuery:
    """Start a query whose changed rows replace those with the same key, exactly once."""
    if not HAS_DELTA:
        return writer.outputMode("update").foreachBatch(_write_batch(table)).start()
    from delta.tables import DeltaTable

    spark = SparkSession.active()
    DeltaTable.createIfNotExists(spark).location(str(table)).addColumns(schema).execute()
    return writer.outputMode("update").foreachBatch(_merge_into(str(table), name, key)).start()


def read(spark: SparkSession, table: Path, key: str | None) -> DataFrame:
    """Rows of a table; `key` is that of `merge`, and None for a table that was appended to."""
    rows = spark.read.format(FORMAT).options(**_READ).load(str(table))
    if HAS_DELTA or key is None:
        return rows
    newest = Window.partitionBy(key).orderBy(F.col(BATCH).desc())
    return rows.withColumn("_age", F.row_number().over(newest)).where("_age = 1").drop("_age", BATCH)


def _merge_into(table: str, name: str, key: str) -> Callable[[DataFrame, int], None]:
    """Function that merges each batch of changed rows into the Delta table, exactly once."""
    from delta.tables import DeltaTable

    def merge_batch(changes: DataFrame, batch_id: int) -> None:
        spark = changes.sparkSession
        # Delta skips a merge whose transaction version it has already committed ...
        spark.conf.set("spark.databricks.delta.write.txnAppId", name)
        spark.conf.set("spark.databricks.delta.write.txnVersion", str(batch_id))
        # ... and a skipped merge reads nothing, although the batch must still update its state: compute the rows first,
        # and store them where they outlive an executor.
        changes = changes.checkpoint()
        target = DeltaTable.forPath(spark, table).alias("t")
        merged = target.merge(changes.alias("c"), f"t.{key} <=> c.{key}")
        merged.whenMatchedUpdateAll().whenNotMatchedInsertAll().withSchemaEvolution().execute()

    return merge_batch


def _write_batch(table: Path) -> Callable[[DataFrame, int], None]:
    """Function that writes each batch of changed rows to a folder of its own; a repeated batch replaces it."""

    def write_batch(changes: DataFrame, batch_id: int) -> None:
        changes.write.mode("overwrite").parquet(str(table / f"{BATCH}={batch_id}"))

    return write_batch
