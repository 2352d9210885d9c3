"""The schemas that a Delta source tracks below a checkpoint location go with its copies."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_ckpt.operations.restore import restore
from spark_ckpt.operations.savepoint import take_savepoint
from spark_ckpt.storage import LocalStorage
from tests.support.delta import needs_delta
from tests.support.provider import ProviderUnderTest


@needs_delta
def test_a_restored_query_knows_the_schemas_of_its_table(
    spark: SparkSession, provider: ProviderUnderTest, tmp_path: Path
) -> None:
    """Without them, Delta reads a renamed column by the schema that the table has by then."""
    if not provider.is_ours:
        pytest.skip("no checkpoints of spark-ckpt")
    table = tmp_path / "table"
    mapped = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"
    spark.sql(f"CREATE TABLE delta.`{table}` (id LONG, name STRING) USING delta TBLPROPERTIES ({mapped})")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, 'a'), (2, 'b')")

    def run(location: Path) -> None:
        reader = spark.readStream.format("delta").option("schemaTrackingLocation", str(location / "schemas"))
        counted = reader.load(str(table)).groupBy("id").count()
        sink = counted.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(location))
        sink.trigger(availableNow=True).start().awaitTermination()

    run(tmp_path / "location")
    tracked = sorted(file for file in (tmp_path / "location/schemas").rglob("[0-9]*") if file.is_file())
    assert tracked
    take_savepoint(LocalStorage(tmp_path / "location"), LocalStorage(tmp_path / "savepoint"))
    restore(LocalStorage(tmp_path / "savepoint"), LocalStorage(tmp_path / "restored"))
    for file in tracked:  # with the path of the source in it
        copy = tmp_path / "restored" / file.relative_to(tmp_path / "location")
        assert copy.read_text() == file.read_text().replace(f"{tmp_path}/location/", f"{tmp_path}/restored/")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (3, 'c')")
    run(tmp_path / "restored")
    assert (tmp_path / "restored/commits/1").exists()
