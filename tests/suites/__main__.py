"""Runs Spark's own suites with our provider. Run it with `make spark-suites`."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from tests.suites.minors import NO_SUITES, WITH_SUITES
from tests.suites.planned import compared
from tests.suites.report import markdown, table
from tests.suites.results import Outcome
from tests.suites.runner import run_suites
from tests.suites.suites import Suite, suites_of
from tests.support.provider import REPOSITORY, provider_under_test
from tests.support.spark_version import MINOR


def main() -> int:
    """Run the streaming and state suites that Spark publishes with the provider of this repository."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # leave no JVM behind
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    work: Path = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    chosen = arguments.suites or [suite for suite in suites_of(MINOR) if suite.fast or arguments.list == "all"]
    console.print(f"{len(chosen)} suites in {work}")
    began = time.monotonic()
    results = []
    planned = _emptied(work / "planned") if arguments.planned else None
    for result in run_suites(chosen, work, provider_under_test(), planned):
        results.append(result)
        result.write(work)
        passed = f"{result.count(Outcome.PASSED)} passed, {result.seconds:.0f} s"
        console.print(f"[{'green' if result.is_good else 'red'}]{len(results):>3}  {result.name}[/]: {passed}")
        for problem in result.problems:
            console.print(f"     {escape(problem)}")
    console.print(table(results))
    (work / "suites.md").write_text(markdown(results), encoding="utf-8")
    if planned is not None:
        return _compare(planned, console)
    bad = sum(not result.is_good for result in results)
    verdict = f"[red]{bad} not as they have to be[/]" if bad else "[green]all as they have to be[/]"
    console.print(f"{len(results)} suites, {time.monotonic() - began:.0f} s, {verdict}: {work}")
    return 1 if bad else 0


def _emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _compare(planned: Path, console: Console) -> int:
    """Compares the queries that were started and planned."""
    done = compared(planned)
    for kind, runs in (("not planned", done.unplanned), ("different", done.different)):
        for run, what in runs.items():
            console.print(f"[red]{kind}[/] {run}: {escape(what[:600])}")
    console.print(
        f"planned as started: files of {done.files} queries, meanings of {done.meanings}; "
        f"{len(done.different)} differ, {len(done.unplanned)} were not planned, {done.gone} had no state or no "
        f"location any more: {planned}"
    )
    return 1 if done.different or done.unplanned or not done.meanings else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.suites", description=main.__doc__)
    parser.add_argument("--list", choices=("fast", "all"), default="all", help="without any names: which suites")
    parser.add_argument(
        "--work", type=Path, default=REPOSITORY / "build" / "suites" / MINOR, help="for results and logs"
    )
    parser.add_argument(
        "--planned", action="store_true", help="plan each new query without a start as well, and judge only the plans"
    )
    parser.add_argument("suites", nargs="*", type=_suite, metavar="SUITE", help="a name without its package")
    if MINOR not in WITH_SUITES:
        parser.error(NO_SUITES)
    return parser.parse_args()


def _suite(name: str) -> Suite:
    there = {suite.name: suite for suite in suites_of(MINOR)}
    if name not in there:
        raise argparse.ArgumentTypeError(f"Spark {MINOR} has no {name}; it has {', '.join(there)}")
    return there[name]


if __name__ == "__main__":
    sys.exit(main())
