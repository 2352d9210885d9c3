"""The complete fault table. Run it with `make faults`; with SPARK=4.3 that of real-time mode."""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape

from tests.faults.points import POINTS, REAL_TIME_POINTS, Cell, Kind, cells
from tests.faults.real_time import run_cells
from tests.faults.table import FaultTable, Result, markdown
from tests.support.checkpoints import CheckpointJudge
from tests.support.kafka import KafkaBroker
from tests.support.provider import CKPT, REPOSITORY
from tests.support.spark_version import MINOR, order
from tests.support.uncaught import all_caught

IN_REAL_TIME = order(MINOR) >= order("4.3")
"""True if the table is that of real-time mode."""


def main() -> int:
    """Strike a running query at every point with every kind of fault, and say what came of it."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # leave no driver behind
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    chosen = [cell for cell in cells(REAL_TIME_POINTS if IN_REAL_TIME else POINTS) if arguments.only in cell.name]
    # A dying driver takes its Spark along: the cells that can share a driver come first.
    chosen.sort(key=lambda cell: cell.kind is Kind.KILL_DRIVER)
    shutil.rmtree(arguments.work, ignore_errors=True)
    arguments.work.mkdir(parents=True)
    console.print(f"{len(chosen)} faults, seed {arguments.seed}, in {arguments.work}")
    began = time.monotonic()
    results = []
    with all_caught(arguments.work / "uncaught"):
        for result in _results(arguments, chosen):
            results.append(result)
            wrong = escape(result.wrong or f"not {result.cell.expected}")
            mark = "[green]as expected[/]" if result.is_good else f"[red]{wrong}[/]"
            console.print(f"{len(results):>3}  {result.cell.name:<70} {result.outcome}: {mark}")
    table = markdown(results)
    (arguments.work / "faults.md").write_text(table, encoding="utf-8")
    console.print(Markdown(table))
    bad = sum(not result.is_good for result in results)
    verdict = f"[red]{bad} not as expected[/]" if bad else "[green]all as expected[/]"
    console.print(f"{len(results)} faults, {time.monotonic() - began:.0f} s, {verdict}: {arguments.work / 'faults.md'}")
    return 1 if bad else 0


def _results(arguments: argparse.Namespace, chosen: list[Cell]) -> Iterator[Result]:
    work = arguments.work.resolve()
    if not IN_REAL_TIME:
        yield from FaultTable(work, chosen, arguments.seed).results()
        return
    judge = CheckpointJudge(CKPT, work / "metadata")
    with KafkaBroker(work / "kafka") as broker:
        yield from run_cells(broker, work, chosen, random.Random(arguments.seed), judge)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=main.__doc__)
    parser.add_argument("--work", type=Path, default=REPOSITORY / "build" / "faults", help="is emptied first")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--only", default="", help="a part of the names of the faults to run")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
