"""Short stateful query whose classes are archived for the tests' JVMs."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.provider import provider_under_test
from tests.support.session import open_session


def main(folder: Path) -> None:
    """Counts a few rows by key, in two batches."""
    spark = open_session(provider_under_test(), folder)
    feed = str(folder / "feed")
    for _ in range(2):
        spark.range(100).selectExpr("id", "id % 7 AS key").coalesce(1).write.mode("append").parquet(feed)
    events = spark.readStream.schema("id long, key long").option("maxFilesPerTrigger", 1).parquet(feed)
    query = (
        events.groupBy("key")
        .count()
        .writeStream.outputMode("update")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .foreachBatch(lambda rows, _: rows.foreach(lambda _: None))
        .start()
    )
    query.processAllAvailable()
    query.stop()
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    spark.stop()
    # The JVM exits at the end of its standard input, and then writes the archive. PySpark does not wait for it.
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        main(Path(directory))
