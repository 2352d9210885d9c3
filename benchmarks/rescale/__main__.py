"""`python -m benchmarks.rescale`, or `make bench-rescale`: runs the benchmark, stores and shows its results."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from benchmarks.rescale.running import Rescaler, workloads
from benchmarks.stores import plots
from benchmarks.stores.in_one_session import add_options, run_missing, session, show, write_summary
from benchmarks.stores.plan import plan
from benchmarks.stores.results import ResultFolder
from benchmarks.stores.summary import Summary
from spark_ckpt import jar_path


def main() -> int:
    """Measures our rescale and Spark's own repartition of RocksDB state in turns; writes JSON, a table and a plot."""
    options = _arguments()
    console = Console(highlight=False, stderr=options.json, width=None if sys.stdout.isatty() else 160)
    folder = ResultFolder(options.results.resolve())
    chosen = {workload.name: workload for workload in workloads(options.keys, options.partitions)}
    runs = [run for workload in chosen.values() for run in plan([workload], workload.providers, options.rounds)]
    work = options.work.resolve()
    run_missing(
        console, folder, runs, lambda: Rescaler(session(options.heap, work, [jar_path()]), work, options.seed).run
    )
    records = [record for record in folder.records() if record.run in runs]
    summary = Summary(records)
    text = write_summary(folder, summary, records)
    for partitions in options.partitions:
        points = {run.workload.name: run.workload.keys for run in runs if run.workload.partitions == partitions}
        title = f"a running count gets {partitions} partitions"
        plots.save(plots.rescaling(summary, points, title), folder.path / f"to-{partitions}.png")
    if options.json:
        print(text)
    else:
        show(console, summary, records)
    console.print(f"runs.jsonl, summary.json, tables.txt and plots are in {folder.path}", soft_wrap=True)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rescale", description=main.__doc__)
    parser.add_argument("--keys", nargs="+", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--partitions", nargs="+", type=int, default=[16, 12], help="of 8, a multiple and none")
    add_options(parser, "rescale", "3g")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
