"""Driver program of the tests of owners in the tab: one query, whose second batch may wait.

With `--hold`, batch 1 waits on the driver until the file `go` appears: Spark has written its offsets, and no task of it
has begun. A second driver on the same location can then take over for certain. The address of Spark's UI goes to the
file `ui`. It ends when the file `stop` appears.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from tests.support.processes import PATIENCE
from tests.support.provider import CKPT
from tests.support.session import open_session, write_ui_address
from tests.support.waiting import eventually

NAME = "contested"
HELD = 1
"""Batch that waits."""


def main(arguments: list[str]) -> int:
    """Runs the query."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--location", type=Path, required=True)
    parser.add_argument("--hold", action="store_true")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args(arguments)
    folder: Path = options.folder

    def write(frame: DataFrame, batch_id: int) -> None:
        if options.hold and batch_id == HELD:
            (folder / "held").touch()
            eventually((folder / "go").exists, PATIENCE)
        frame.write.format("noop").mode("overwrite").save()

    spark = open_session(CKPT, folder, conf=dict(pair.split("=", 1) for pair in options.conf))
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load().groupBy("value").count()
    writer = rows.writeStream.outputMode("update").queryName(NAME).foreachBatch(write)
    query = (
        writer.option("checkpointLocation", str(options.location)).trigger(processingTime="500 milliseconds").start()
    )
    eventually(lambda: query.lastProgress is not None)
    write_ui_address(spark, folder)
    eventually((folder / "stop").exists, PATIENCE)
    with suppress(StreamingQueryException):
        query.stop()
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
