"""`python -m benchmarks.scale`, or `make bench-scale`: the coordinator's cost with up to 40,000 stores."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from benchmarks.scale.cluster import ClusterPoint, measure_cluster
from benchmarks.scale.playing import measure, measure_queries
from benchmarks.scale.tables import table, table_of_cluster, table_of_queries, to_json
from benchmarks.stores import machine

PARTITIONS = (8, 64, 200, 1000, 4000, 10_000)
QUERIES = (1, 10, 50)
ON_CLUSTER = (8, 64, 200)

_EXECUTORS = 4


def main() -> int:
    """Plays batches of a join with four stores in each partition, and of many such joins in one driver: synthetic
    acknowledgements through the real side process, without Spark. To check them, runs such joins on a standalone
    cluster of four executors. Prints CPU time per batch, durations of starts and listings, and memory."""
    options = _arguments()
    console = Console(highlight=False, stderr=options.json, width=None if sys.stdout.isatty() else 160)
    points, queries = [], []
    cluster: list[ClusterPoint] = []
    with tempfile.TemporaryDirectory(prefix="scale-", dir=options.work) as folder:
        for partitions in options.partitions:
            with console.status(f"{partitions:,} partitions"):
                points.append(measure(partitions, options.executors, options.batches, Path(folder)))
        for number in options.queries:
            with console.status(f"{number} queries"):
                queries.append(measure_queries(number, options.batches, Path(folder)))
        if options.on_cluster:
            with console.status(f"cluster of {_EXECUTORS} executors"):
                cluster = list(measure_cluster(options.on_cluster, _EXECUTORS, options.batches, Path(folder)))
    found = json.dumps(to_json(points, queries, cluster, machine.facts()), indent=1)
    if options.json:
        print(found)
    else:
        console.print(table(points), table_of_queries(queries), table_of_cluster(cluster))
    if options.output is not None:
        options.output.write_text(found + "\n", encoding="utf-8")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=main.__doc__)
    parser.add_argument("--partitions", nargs="*", type=int, default=PARTITIONS)
    parser.add_argument("--queries", nargs="*", type=int, default=QUERIES, help="queries in one driver")
    parser.add_argument("--on-cluster", nargs="*", type=int, default=ON_CLUSTER, help="partitions on 4 real executors")
    parser.add_argument("--executors", type=int, default=1000, help="executors that share the partitions")
    parser.add_argument("--batches", type=int, default=10, help="batches that count")
    parser.add_argument("--work", type=Path, help="folder for the locations; by default one for temporary files")
    parser.add_argument("--output", type=Path, help="file for the figures as JSON")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
