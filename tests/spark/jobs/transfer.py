"""Driver program of the transfer tests: a query in and out of spark-ckpt, on one location and to another.

It runs with a provider of Spark, is imported, continues, is exported, and continues with Spark's provider. The output
of each batch goes to `rows.json` in the folder given.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import spark_ckpt
from tests.migrate.queries import ALL, BEFORE, PROVIDERS, offer, ours_like, run, state_format
from tests.support.provider import CKPT
from tests.support.session import open_session

MIDDLE = BEFORE + 1
"""Files of input before the export."""


def main() -> int:
    """Runs the query."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--query", required=True)
    parser.add_argument("--provider", required=True)
    parser.add_argument("--location", required=True, help="checkpoint location: a path or URL")
    parser.add_argument("--exported", required=True, help="location of the export")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    folder, theirs = given.folder, PROVIDERS[given.provider]
    conf = dict(pair.split("=", 1) for pair in given.conf)
    spark = open_session(CKPT, folder, master=given.master, conf=conf)
    offer(folder, BEFORE)
    rows = dict(run(spark, given.query, folder, given.location, theirs))
    spark_ckpt.import_location(spark, given.location, force=True)
    offer(folder, MIDDLE)
    rows |= run(spark, given.query, folder, given.location, ours_like(given.provider))
    spark_ckpt.export_location(spark, given.location, given.exported, state_format(given.provider))
    offer(folder, ALL)
    rows |= run(spark, given.query, folder, given.exported, theirs)
    (folder / "rows.json").write_text(json.dumps(rows))
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
