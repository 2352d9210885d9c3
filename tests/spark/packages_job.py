"""A query of a user who has the jar only from `--packages`: python packages_job.py FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession


def main() -> int:
    """Counts two files, each in a run of its own."""
    folder = Path(sys.argv[1])
    spark = SparkSession.builder.getOrCreate()
    (folder / "in").mkdir(exist_ok=True)
    for number in range(2):
        (folder / "in" / f"{number}.txt").write_text("a\nb\na\n")
        counts = spark.readStream.text(str(folder / "in")).groupBy("value").count()
        writer = counts.writeStream.format("noop").outputMode("update").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        query.awaitTermination()
    return 0


if __name__ == "__main__":
    sys.exit(main())
