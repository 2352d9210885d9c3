"""Program for `spark-submit` on a cluster: a running count by key over the files of a folder, after de-duplication.

It imports nothing of this project: settings, jar and environment come from the command line. Each batch goes to a file
in `--out` that names the attempt of the application. Tasks that reach the gate's key wait until `--gates` has a file
`open-<attempt>`, and touch `waiting-<attempt>` there. It ends when all input is processed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

GATE = "gate"


def parse() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--feed", required=True, help="URL of the folder with the input")
    parser.add_argument("--location", required=True, help="checkpoint location")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gates", type=Path, required=True)
    return parser.parse_args()


def attempt() -> int:
    """Attempt of the application in cluster mode, from 1; 0 in client mode, where the driver is no container."""
    match = re.search(r"_(\d+)_\d+$", os.environ.get("CONTAINER_ID", ""))
    return int(match[1]) if match else 0


def main() -> None:
    """Runs the query to the end of its input."""
    options = parse()
    number = attempt()
    opened, waiting, gate = options.gates / f"open-{number}", options.gates / f"waiting-{number}", GATE

    def wait(key: str) -> str:
        while key == gate and not opened.exists():
            waiting.touch()
            time.sleep(0.02)
        return key

    def write(frame: DataFrame, batch_id: int) -> None:
        rows = [[row["key"], row["n"], row["total"]] for row in frame.collect()]
        hidden = options.out / f".{batch_id}-{number}"
        hidden.write_text(json.dumps({"attempt": number, "rows": rows}))
        hidden.rename(options.out / f"{batch_id:06}.json")

    spark = SparkSession.builder.getOrCreate()
    stream = spark.readStream.schema("ts timestamp, key string, value long").option("maxFilesPerTrigger", 1)
    events = stream.json(options.feed).dropDuplicates(["ts", "key", "value"])
    held = events.withColumn("key", sf.udf(wait, "string")("key"))
    counts = held.groupBy("key").agg(sf.count("*").alias("n"), sf.sum("value").alias("total"))
    writer = counts.writeStream.outputMode("update").foreachBatch(write).trigger(availableNow=True)
    writer.option("checkpointLocation", options.location).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
