"""`python -m benchmarks.transfer`, or `make bench-import`: runs the benchmark, stores and shows its results."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from benchmarks.stores.in_one_session import add_options, run_missing, session, show, write_summary
from benchmarks.stores.plan import plan
from benchmarks.stores.results import ResultFolder
from benchmarks.stores.runner import FLOOR_JAR
from benchmarks.stores.summary import Summary
from benchmarks.transfer.running import Transfers, workloads
from spark_ckpt import jar_path


def main() -> int:
    """Measures imports and exports beside a plain read of the same state; writes JSON and a table."""
    options = _arguments()
    console = Console(highlight=False, stderr=options.json, width=None if sys.stdout.isatty() else 160)
    folder = ResultFolder(options.results.resolve())
    chosen = {workload.name: workload for workload in workloads(options.keys, options.partitions)}
    runs = [run for workload in chosen.values() for run in plan([workload], workload.providers, options.rounds)]
    work = options.work.resolve()
    run_missing(
        console,
        folder,
        runs,
        lambda: Transfers(session(options.heap, work, [jar_path(), FLOOR_JAR]), work, options.seed).run,
    )
    records = [record for record in folder.records() if record.run in runs]
    summary = Summary(records)
    text = write_summary(folder, summary, records)
    if options.json:
        print(text)
    else:
        show(console, summary, records)
    console.print(f"runs.jsonl, summary.json and tables.txt are in {folder.path}", soft_wrap=True)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transfer", description=main.__doc__)
    parser.add_argument("--keys", nargs="+", type=int, default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--partitions", type=int, default=16)
    add_options(parser, "transfer", "4g")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
