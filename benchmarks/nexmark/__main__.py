"""`python -m benchmarks.nexmark`, or `make bench-nexmark`: runs Nexmark, stores and shows its results."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from benchmarks.nexmark import tables
from benchmarks.nexmark.figures import Figures
from benchmarks.nexmark.generator import Stream
from benchmarks.nexmark.plan import BATCH, COMPETITORS, Record, Results, Run, plan
from benchmarks.nexmark.queries import QUERIES
from benchmarks.nexmark.running import Runner, Setting
from benchmarks.stores.in_one_session import add_options
from benchmarks.stores.runner import FLOOR_JAR, RunFailedError
from benchmarks.stores.turns import shown


@dataclass(frozen=True)
class Turn:
    """The JVM of a query.

    Args:
        title: name of the query.
    """

    title: str


def main() -> int:
    """Measures Nexmark's queries with ours and Spark's state-store providers, in turns."""
    options = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # leave no run behind
    if not FLOOR_JAR.exists():
        raise SystemExit(f"{FLOOR_JAR} is missing: run 'make bench-nexmark', which builds it")
    console = Console(highlight=False, stderr=options.json, width=None if sys.stdout.isatty() else 160)
    results = Results(options.results.resolve())
    batches = options.warmups + options.measured + 1
    stream = Stream(options.events, batches, options.events // 10, options.seed)
    setting = Setting(stream, options.warmups, options.measured, options.heap, options.busy, options.kafka)
    plans = {query: list(plan(query, options.providers, options.rounds)) for query in options.only}
    good = _run_missing(console, results, plans, Runner(results, options.work.resolve(), setting))
    runs = {run for runs in plans.values() for run in runs}
    records = [record for record in results.records() if record.run in runs]
    figures = Figures(records)
    text = json.dumps(tables.to_json(figures, records), indent=1)
    (results.path / "summary.json").write_text(text + "\n", encoding="utf-8")
    with (results.path / "tables.txt").open("w", encoding="utf-8") as file:
        _show(Console(file=file, highlight=False, width=200), figures, records)
    if options.json:
        print(text)
    else:
        _show(console, figures, records)
    console.print(f"runs.jsonl, summary.json, tables.txt and logs are in {results.path}", soft_wrap=True)
    return 0 if good and not list(figures.differing_answers()) else 1


def _run_missing(console: Console, results: Results, plans: Mapping[str, Sequence[Run]], runner: Runner) -> bool:
    """Executes the queries without results in the folder; returns true if all of them succeeded."""
    kept = {record.run.query for record in results.records()}
    failed = 0
    with shown(console, [Turn(query) for query in plans if query not in kept]) as turns:
        for turn in turns:
            failed += not _succeeds(console, results, runner.run(turn.title, plans[turn.title]))
    return not failed


def _succeeds(console: Console, results: Results, records: Iterator[Record]) -> bool:
    try:
        results.extend(list(records))
    except RunFailedError as error:
        console.print(str(error), markup=False)
        return False
    return True


def _show(console: Console, figures: Figures, records: Sequence[Record]) -> None:
    if records:
        console.print(", ".join(f"{name} {value}" for name, value in records[-1].machine.items()))
    for query in figures.queries():
        form = f" ({QUERIES[query].form})" if QUERIES[query].form else ""
        console.print(f"\n[bold]{query}[/]: {QUERIES[query].title}{form}")
        console.print(tables.figures_table(figures, query))
    console.print("Medians, with the interquartile range; store times are sums over all tasks of a batch.")
    console.print("\n[bold]ours relative to the best built-in provider[/]: in parentheses the range of the rounds")
    console.print(tables.ratios_table(figures))
    checked = sum(1 for record in records if record.run.provider == BATCH)
    console.print(f"Answers compared between all providers, and with a batch query for {checked} queries.")
    for warning in tables.warnings(figures, records):
        console.print(f"[bold red]{warning}[/]")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nexmark", description=main.__doc__)
    parser.add_argument("--only", nargs="+", choices=QUERIES, default=list(QUERIES), metavar="QUERY")
    parser.add_argument("--providers", nargs="+", choices=COMPETITORS, default=list(COMPETITORS), metavar="PROVIDER")
    parser.add_argument("--events", type=int, default=100_000, help="events per batch (default: 100,000)")
    parser.add_argument("--warmups", type=int, default=6, help="batches before the measured ones (default: 6)")
    parser.add_argument("--measured", type=int, default=12, help="measured batches (default: 12)")
    parser.add_argument("--busy", type=int, default=0, help="busy threads beside each run (default: 0)")
    parser.add_argument("--kafka", action="store_true", help="events as JSON from a topic instead of Parquet files")
    add_options(parser, "nexmark", heap="4g")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
