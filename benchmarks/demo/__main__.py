"""The main job, end to end. Run it with `make demo`."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from rich.console import Console

from benchmarks.demo import data
from benchmarks.demo.display import Display
from benchmarks.demo.layout import Layout
from benchmarks.demo.queries import QUERIES
from benchmarks.demo.session import PROVIDERS, REPOSITORY
from benchmarks.demo.supervisor import DriverFailedError, Supervisor
from benchmarks.demo.verdicts import judge, show_verdicts
from spark_ckpt.cli.main import main as spark_ckpt

INSPECTED = "aircraft"


def main() -> int:
    """Stream a year of flights through three stateful queries, kill the driver on the way, and check every row."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # leave no driver behind
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    began = time.monotonic()
    layout = Layout(arguments.work.resolve())
    shutil.rmtree(layout.work, ignore_errors=True)
    rows = data.prepare(layout.feed, arguments.days_per_file)
    feed = f"{sum(rows) - 1:,} flights and the weather in {len(rows)} files each"
    console.print(f"{feed}, into Delta tables below {_shown(layout.work)}")
    try:
        with Display(console, rows) as display:
            supervisor = Supervisor(layout, arguments.provider, len(rows), arguments.kills, display)
            kills = supervisor.run()
    except DriverFailedError as error:
        console.print(str(error), markup=False)
        return 1
    verdicts = judge(console, layout)
    show_verdicts(console, verdicts)
    if arguments.provider == "ckpt":
        _show_checkpoints(console, layout)
    good = all(verdict.equal for verdict in verdicts) and len(kills) >= arguments.kills
    result = "[bold green]equal[/], to the row" if good else "[bold red]NOT as it has to be[/]"
    console.print(f"\n{len(kills)} kills in the middle of a batch, {time.monotonic() - began:.0f} s: {result}")
    return 0 if good else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.demo", description=main.__doc__)
    parser.add_argument("--work", type=Path, default=REPOSITORY / "build" / "demo", help="is emptied first")
    parser.add_argument("--provider", choices=PROVIDERS, default="ckpt", help="state-store provider (default: ours)")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--days-per-file", type=int, default=21)
    return parser.parse_args()


def _show_checkpoints(console: Console, layout: Layout) -> None:
    """What the command line shows of the checkpoints that are left."""
    commands = [["list", _shown(layout.checkpoint(query.name))] for query in QUERIES]
    commands.append(["inspect", _shown(layout.checkpoint(INSPECTED))])
    for command in commands:
        console.print(f"\n[bold]$ spark-ckpt {' '.join(command)}[/]", soft_wrap=True)
        spark_ckpt(command, prog_name="spark-ckpt", standalone_mode=False)


def _shown(path: Path) -> str:
    """The path as one would type it here."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


if __name__ == "__main__":
    sys.exit(main())
