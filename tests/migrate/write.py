"""Writes locations of queries with the providers of one release of Spark: `python -m tests.migrate.write`.

Run it in an environment with that release of PySpark, and pandas and pyarrow: spark-ckpt is not needed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from tests.migrate.golden import EXPECTED, LOCATIONS, PLACE
from tests.migrate.queries import ALL, BEFORE, PROVIDERS, offer, run

EACH = {
    "hdfs": ("count", "sessions", "within-watermark", "outer-join", "limit", "pandas-state", "total", "distinct"),
    "rocksdb": ("windows",),
    "changelog": ("chain", "sessions", "outer-join", "pandas-state"),
}
"""Queries that every release writes, by provider."""

SINCE_4_0 = {"changelog": ("processor", "processor-ttl"), "ids": ("count", "inner-join", "processor")}
SINCE_4_1 = {"changelog": ("outer-join-3",), "avro": ("processor",)}
SINCE_4_2 = {"changelog": ("outer-join-4",), "checksums": ("windows",), "hdfs-checksums": ("count",)}


def matrix() -> Iterator[tuple[str, str]]:
    """Query and provider of each location that this release writes."""
    minor = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    for since, each in (((3, 5), EACH), ((4, 0), SINCE_4_0), ((4, 1), SINCE_4_1), ((4, 2), SINCE_4_2)):
        if minor >= since:
            for provider, names in each.items():
                yield from ((name, provider) for name in names)
    yield ("inner-join", "hdfs")


def write(spark: SparkSession, name: str, provider: str, work: Path, out: Path) -> None:
    """Runs a query, stores its location, and continues it for the expected output."""
    location, conf = work / "location", PROVIDERS[provider]
    offer(work, BEFORE)
    rows = dict(run(spark, name, work, location, conf))
    stopped = work / "stopped"
    shutil.copytree(location, stopped, ignore=shutil.ignore_patterns(".*.crc"))
    offer(work, ALL)
    rows |= run(spark, name, work, location, conf)
    last = max(int(path.name) for path in (stopped / "commits").iterdir() if path.name.isdecimal())
    assert max(rows) > last
    target = out / pyspark.__version__ / f"{name}--{provider}.zip"
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(stopped.rglob("*")):
            if path.is_dir():
                archive.writestr(f"{path.relative_to(stopped)}/", b"")
            else:
                archive.writestr(str(path.relative_to(stopped)), _without_place(path.read_bytes(), work))
        archive.writestr(EXPECTED, json.dumps({str(batch): rows[batch] for batch in sorted(rows)}))
    print(target.relative_to(out), target.stat().st_size, flush=True)


def _without_place(data: bytes, work: Path) -> bytes:
    for old, new in ((str(work / "location"), f"{PLACE}/location"), (str(work), PLACE)):
        if old.encode() in data:
            data.decode()  # must be text: a change of length is safe
            data = data.replace(old.encode(), new.encode())
    return data


def main() -> int:
    """Writes the locations of this release."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=LOCATIONS)
    parser.add_argument("--only", action="append", help="QUERY--PROVIDER; all unless given")
    arguments = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.stateStore.minDeltasForSnapshot", "3")
        .config("spark.sql.streaming.stateStore.maintenanceInterval", "1s")
        .config("spark.sql.streaming.minBatchesToRetain", "3")
        .getOrCreate()
    )
    failed = 0
    for name, provider in matrix():
        if arguments.only and f"{name}--{provider}" not in arguments.only:
            continue
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
            try:
                write(spark, name, provider, Path(work), arguments.out)
            except Exception as error:
                failed += 1
                print(f"{name}--{provider} FAILED: {str(error)[:600]}", flush=True)
    spark.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
