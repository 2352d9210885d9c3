"""Many batches, and many one-batch runs, in one driver. Run it with `make endurance`."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.endurance.runs import SAMPLES, many_batches, many_runs, open_driver
from tests.endurance.samples import Sample
from tests.endurance.verdicts import FEWEST, Verdict, judge
from tests.support.provider import REPOSITORY


def main() -> int:
    """Let one driver make many batches and many runs of one batch, and judge whether what it uses is flat."""
    arguments = _arguments()
    console = Console(highlight=False, stderr=arguments.json, width=None if sys.stdout.isatty() else 120)
    shutil.rmtree(arguments.work, ignore_errors=True)
    arguments.work.mkdir(parents=True)
    spark = open_driver(arguments.work)
    began, verdicts = time.monotonic(), []
    kept: dict[str, Sequence[Sample]] = {}

    def progress(phase: str, done: int, sample: Sample) -> None:
        figures = ", ".join(f"{key} {value:.0f}" for key, value in sample.items())
        console.print(f"{time.monotonic() - began:6.0f} s  {done} {phase}: {figures}")

    try:
        for phase, count, play in (("batches", arguments.batches, many_batches), ("runs", arguments.runs, many_runs)):
            if count:
                kept[phase] = play(spark, arguments.work.resolve(), count, progress)
                verdicts += judge(phase, kept[phase])
    finally:
        spark.stop()
    if arguments.json:
        print(json.dumps({"verdicts": [asdict(verdict) for verdict in verdicts], "samples": kept}))
    else:
        _show(console, verdicts)
    return any(not verdict.is_flat for verdict in verdicts)


def _show(console: Console, verdicts: Sequence[Verdict]) -> None:
    table = Table("run", "what", title_justify="left")
    for column in ("first", "middle third", "last third", "most"):
        table.add_column(column, justify="right")
    table.add_column("")
    for verdict in verdicts:
        values = (f"{value:,.0f}" for value in (verdict.first, verdict.middle, verdict.last, verdict.most))
        table.add_row(
            verdict.phase, verdict.figure.name, *values, "[green]flat[/]" if verdict.is_flat else "[bold red]grows[/]"
        )
    console.print(table)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.endurance", description=main.__doc__)
    parser.add_argument("--batches", type=int, default=5000, help="of one query; 0 for none")
    parser.add_argument("--runs", type=int, default=1000, help="of one batch each; 0 for none")
    parser.add_argument("--json", action="store_true", help="all samples on standard output")
    parser.add_argument("--work", type=Path, default=REPOSITORY / "build" / "endurance", help="is emptied first")
    arguments = parser.parse_args()
    for what in ("batches", "runs"):
        if 0 < vars(arguments)[what] < FEWEST:
            parser.error(f"--{what}: at least {FEWEST}, or 0; {SAMPLES} samples are taken")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
