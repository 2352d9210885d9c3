"""`python -m benchmarks.real_time`, or `make bench-latency`: runs the benchmark, stores and shows its results."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import pyspark
from rich.console import Console

from benchmarks.real_time import plots, tables
from benchmarks.real_time.running import PROVIDERS, LatencyRunner, Load, workloads
from benchmarks.stores import machine
from benchmarks.stores.plan import Run, plan
from benchmarks.stores.results import Record, ResultFolder
from benchmarks.stores.summary import Summary
from benchmarks.stores.tables import warnings
from benchmarks.stores.turns import shown
from spark_ckpt.jars import supported_minor
from tests.support.kafka import KafkaBroker

SPARK = (4, 3)
"""First Spark with state in real-time mode."""

SMOKE = Load(seconds=6, warm_up=3, rate=20, keys=10, interval_ms=1000)
"""The rows of `--smoke`: enough for some batch boundaries, too few for figures."""


def main() -> int:
    """Measures the latency of rows in real-time mode, ours and RocksDB's in turns; writes JSON, tables and plots."""
    options = _arguments()
    if tuple(map(int, supported_minor(pyspark.__version__).split("."))) < SPARK:
        raise SystemExit(
            f"state in real-time mode needs Spark 4.3, this is {pyspark.__version__}: 'make bench-latency'"
        )
    console = Console(highlight=False, stderr=options.json, width=None if sys.stdout.isatty() else 160)
    folder = ResultFolder(options.results.resolve())
    load = SMOKE if options.smoke else _load(options)
    runs = [
        run
        for workload in workloads(load)
        if workload.query in options.queries
        for run in plan([workload], options.providers, 1 if options.smoke else options.rounds)
    ]
    _run_all(console, folder, runs, load, options)
    records = [record for record in folder.records() if record.run in runs]
    text = json.dumps(tables.to_json(records), indent=1)
    (folder.path / "summary.json").write_text(text + "\n", encoding="utf-8")
    with (folder.path / "tables.txt").open("w", encoding="utf-8") as file:
        _show(Console(file=file, highlight=False, width=160), records)
    drawn = ", ".join(path.name for path in plots.draw(records, folder.path))
    if options.json:
        print(text)
    else:
        _show(console, records)
    console.print(f"runs.jsonl, summary.json, tables.txt, {drawn} and logs are in {folder.path}", soft_wrap=True)
    return 0


def _run_all(
    console: Console, folder: ResultFolder, runs: Sequence[Run], load: Load, options: argparse.Namespace
) -> None:
    """Executes the runs without a result in the folder."""
    kept = {record.run for record in folder.records()}
    missing = [run for run in runs if run not in kept]
    if not missing:
        return
    work = options.work.resolve()
    shutil.rmtree(work / "kafka", ignore_errors=True)
    with KafkaBroker(work / "kafka") as broker, shown(console, missing) as turns:
        runner = LatencyRunner(folder, work, broker.bootstrap_servers, load, options.heap)
        for run in turns:
            folder.append(runner.run(run))


def _show(console: Console, records: Sequence[Record]) -> None:
    if records:
        console.print(", ".join(f"{name} {value}" for name, value in records[-1].machine.items()))
        console.print(f"load average before each run: {', '.join(str(record.load) for record in records)}")
    titles = {record.run.workload.name: record.run.workload.title for record in records}
    summary = Summary(records)
    for workload in summary.workloads():
        console.print(f"\n[bold]{titles[workload]}[/]")
        console.print(tables.figures_table(records, workload))
    console.print("Ratio: our median to the provider's, with the range of the rounds. In a pause a batch is committed.")
    for warning in warnings(summary, records):
        console.print(f"[bold red]{warning}[/]")


def _load(options: argparse.Namespace) -> Load:
    return Load(options.seconds, options.warm_up, options.rate, options.keys, round(options.interval * 1000))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_time", description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="measured per run (default: 60)")
    parser.add_argument("--warm-up", type=float, default=20, help="seconds before, not measured (default: 20)")
    parser.add_argument("--rate", type=float, default=100, help="rows per second (default: 100)")
    parser.add_argument("--keys", type=int, default=1000, help="number of keys (default: 1000)")
    parser.add_argument("--interval", type=float, default=5, help="seconds of a batch (default: 5)")
    parser.add_argument("--queries", nargs="+", choices=("count", "dedup"), default=["count", "dedup"])
    ours, rocksdb, _ = PROVIDERS
    parser.add_argument("--providers", nargs="+", choices=PROVIDERS, default=[ours, rocksdb])
    parser.add_argument("--rounds", type=int, default=2, help="rounds per provider (default: 2)")
    parser.add_argument("--smoke", action="store_true", help="one short round, with its own rows: does it run?")
    parser.add_argument("--heap", default="1g", help="of the driver (default: 1g)")
    results = machine.REPOSITORY / "benchmarks" / "results" / f"latency-{datetime.now(timezone.utc):%Y-%m-%dT%H%M%S}"
    parser.add_argument(
        "--results", type=Path, default=results, help="results folder; finished runs in it are not repeated"
    )
    work = machine.REPOSITORY / "build" / "benchmarks" / "latency"
    parser.add_argument("--work", type=Path, default=work, help="scratch folder, the broker's data included")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON instead of tables")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
