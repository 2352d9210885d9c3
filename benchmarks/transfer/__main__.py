"""`python -m benchmarks.transfer`, or `make bench-import`: runs the benchmark, stores and shows its results."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from rich.console import Console

from benchmarks.stores import machine, tables
from benchmarks.stores.plan import Run, plan
from benchmarks.stores.results import Record, ResultFolder
from benchmarks.stores.summary import Summary
from benchmarks.stores.turns import shown
from benchmarks.transfer.running import Transfers, session, workloads


def main() -> int:
    """Measures imports and exports beside a plain read of the same state; writes JSON and a table."""
    options = _arguments()
    console = Console(highlight=False, stderr=options.json, width=None if sys.stdout.isatty() else 160)
    folder = ResultFolder(options.results.resolve())
    chosen = {workload.name: workload for workload in workloads(options.keys, options.partitions)}
    runs = [run for workload in chosen.values() for run in plan([workload], workload.providers, options.rounds)]
    _run_all(console, folder, runs, options)
    records = [record for record in folder.records() if record.run in runs]
    summary = Summary(records)
    text = json.dumps(tables.to_json(summary, records), indent=1)
    (folder.path / "summary.json").write_text(text + "\n", encoding="utf-8")
    with (folder.path / "tables.txt").open("w", encoding="utf-8") as file:
        _show(Console(file=file, highlight=False, width=160), summary, records)
    if options.json:
        print(text)
    else:
        _show(console, summary, records)
    console.print(f"runs.jsonl, summary.json and tables.txt are in {folder.path}", soft_wrap=True)
    return 0


def _run_all(console: Console, folder: ResultFolder, runs: Sequence[Run], options: argparse.Namespace) -> None:
    """Executes the runs without a result in the folder."""
    kept = {record.run for record in folder.records()}
    missing = [run for run in runs if run not in kept]
    if not missing:
        return
    work = options.work.resolve()
    transfers = Transfers(session(options.heap, work), work, options.seed)
    with shown(console, missing) as turns:
        for run in turns:
            folder.append(transfers.run(run))


def _show(console: Console, summary: Summary, records: Sequence[Record]) -> None:
    if records:
        console.print(", ".join(f"{name} {value}" for name, value in records[-1].machine.items()))
    titles = {record.run.workload.name: record.run.workload.title for record in records}
    for workload in summary.workloads():
        console.print(f"\n[bold]{titles[workload]}[/]")
        console.print(tables.figures_table(summary, workload))
    console.print("Medians, with the interquartile range.")
    for warning in tables.warnings(summary, records):
        console.print(f"[bold red]{warning}[/]")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transfer", description=main.__doc__)
    parser.add_argument("--keys", nargs="+", type=int, default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3, help="rounds per provider (default: 3)")
    parser.add_argument("--heap", default="4g", help="of the driver (default: 4g)")
    parser.add_argument("--seed", type=int, default=2013)
    results = machine.REPOSITORY / "benchmarks" / "results" / f"transfer-{datetime.now(timezone.utc):%Y-%m-%dT%H%M%S}"
    parser.add_argument(
        "--results", type=Path, default=results, help="results folder; finished runs in it are not repeated"
    )
    work = machine.REPOSITORY / "build" / "benchmarks" / "transfer"
    parser.add_argument("--work", type=Path, default=work, help="scratch folder; input found in it is reused")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON instead of tables")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
