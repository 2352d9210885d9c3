"""`python -m benchmarks.stores`, or `make bench`: runs the benchmark, stores and shows its results."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from rich.console import Console

from benchmarks.stores import machine, plots, tables
from benchmarks.stores.plan import Run, plan
from benchmarks.stores.providers import PROVIDERS
from benchmarks.stores.results import Record, ResultFolder
from benchmarks.stores.runner import FLOOR_JAR, RunFailedError, Runner
from benchmarks.stores.summary import Summary
from benchmarks.stores.turns import shown
from benchmarks.stores.workloads import WORKLOADS

RESULTS = machine.REPOSITORY / "benchmarks" / "results"


def main() -> int:
    """Measures all state-store providers on all workloads, in turns, and writes JSON, tables and plots."""
    options = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # leave no run behind
    if not FLOOR_JAR.exists():
        raise SystemExit(f"{FLOOR_JAR} is missing: run 'make bench', which builds it")
    console = Console(highlight=False, stderr=options.json, width=None if sys.stdout.isatty() else 160)
    folder = ResultFolder(options.results.resolve())
    workloads = [WORKLOADS[name].scaled(options.scale, options.batches) for name in options.only]
    runs = list(plan(workloads, options.providers, options.rounds))
    done = _run_all(console, folder, runs, Runner(folder, options.work.resolve(), options.heap, options.seed))
    records = [record for record in folder.records() if record.run in runs]
    _report(console, folder, records, as_json=options.json)
    return 0 if done else 1


def _run_all(console: Console, folder: ResultFolder, runs: Sequence[Run], runner: Runner) -> bool:
    """Executes the runs without a result in the folder; returns true if all of them succeeded."""
    kept = {record.run for record in folder.records()}
    good = True
    with shown(console, runs) as turns:
        for run in turns:
            if run not in kept:
                try:
                    folder.append(runner.run(run))
                except RunFailedError as error:
                    console.print(str(error), markup=False)
                    good = False
    return good


def _report(console: Console, folder: ResultFolder, records: list[Record], *, as_json: bool) -> None:
    summary = Summary(records)
    text = json.dumps(tables.to_json(summary, records), indent=1)
    (folder.path / "summary.json").write_text(text + "\n", encoding="utf-8")
    with (folder.path / "tables.txt").open("w", encoding="utf-8") as file:
        _show(Console(file=file, highlight=False, width=160), summary, records)
    drawn = plots.draw(summary, folder.path)
    if as_json:
        print(text)
    else:
        _show(console, summary, records)
    names = ", ".join(path.name for path in drawn)
    console.print(f"runs.jsonl, summary.json, tables.txt, {names} are in {folder.path}", soft_wrap=True)


def _show(console: Console, summary: Summary, records: list[Record]) -> None:
    if records:
        console.print(", ".join(f"{name} {value}" for name, value in records[-1].machine.items()))
    for workload in summary.workloads():
        console.print(f"\n[bold]{workload}[/]: {WORKLOADS[workload].title}")
        console.print(tables.figures_table(summary, workload))
    console.print("Medians, with the interquartile range; store times are sums over all tasks of a batch.")
    console.print("\n[bold]targets[/]: the spread of a ratio is from the lowest to the highest round")
    console.print(tables.verdicts_table(tables.verdicts(summary)))
    for warning in tables.warnings(summary, records):
        console.print(f"[bold red]{warning}[/]")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stores", description=main.__doc__)
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, default=list(WORKLOADS), metavar="WORKLOAD")
    parser.add_argument("--providers", nargs="+", choices=PROVIDERS, default=list(PROVIDERS), metavar="PROVIDER")
    parser.add_argument("--rounds", type=int, default=3, help="rounds per provider (default: 3)")
    parser.add_argument("--scale", type=float, default=1.0, help="share of keys and changes, for a quick look")
    parser.add_argument("--batches", type=int, help="measured batches per run (default: the workload's number)")
    parser.add_argument("--heap", default="6g", help="of the driver (default: 6g)")
    parser.add_argument("--seed", type=int, default=2013)
    now = f"{datetime.now(timezone.utc):%Y-%m-%dT%H%M%S}"
    parser.add_argument(
        "--results", type=Path, default=RESULTS / now, help="results folder; finished runs in it are not repeated"
    )
    parser.add_argument("--work", type=Path, default=machine.REPOSITORY / "build" / "benchmarks", help="scratch folder")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON instead of tables")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
