"""The main job under random kills. Run it with `make soak`."""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.demo import data
from benchmarks.demo.display import Display
from benchmarks.demo.layout import Layout, read_batches
from benchmarks.demo.queries import QUERIES
from benchmarks.demo.session import REPOSITORY
from benchmarks.demo.supervisor import DriverFailedError
from benchmarks.demo.verdicts import judge, show_verdicts
from spark_ckpt import config
from spark_ckpt.spark_files.logs import SparkLog
from tests.soak.killer import VICTIMS, Killer
from tests.support.session import use_this_python
from tests.support.standalone_cluster import StandaloneCluster
from tests.support.uncaught import all_caught

FILES_PER_KILL = 2
"""Minimum number of files of each feed per kill, so that work remains to be interrupted."""

HANGS_FOR = "10s"
"""Silence after which a driver replaces a coordinator that hangs."""

FEWEST_FILES = 18


def main() -> int:
    """Run the main job on a cluster under random kills of drivers, executors and coordinators, and check every row."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # leave no process behind
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    began = time.monotonic()
    conf = {config.MEMORY_BUDGET.key: arguments.memory_budget, config.BRIDGE_SILENCE.key: HANGS_FOR}
    layout = Layout(arguments.work.resolve(), conf=conf)
    shutil.rmtree(layout.work, ignore_errors=True)
    rows = data.prepare(layout.feed, max(1, 365 // max(FEWEST_FILES, FILES_PER_KILL * arguments.kills)))
    budget = f"memory budget {arguments.memory_budget}"
    console.print(f"{len(rows)} files in each feed, {arguments.kills} kills, {budget}, seed {arguments.seed}")
    use_this_python()
    try:
        with (
            all_caught(layout.work / "uncaught"),
            StandaloneCluster(layout.work / "cluster") as cluster,
            Display(console, rows) as display,
        ):
            killer = Killer(
                layout,
                "ckpt",
                len(rows),
                arguments.kills,
                display,
                master=cluster.url,
                executors=cluster.executors,
                rng=random.Random(arguments.seed),
            )
            killer.run()
    except DriverFailedError as error:
        console.print(str(error), markup=False)
        return 1
    verdicts = judge(console, layout)
    show_verdicts(console, verdicts)
    killer.inspect()
    for violation in killer.violations:
        console.print(violation, markup=False)
    _show_summary(console, layout, killer)
    good = all(verdict.equal for verdict in verdicts) and not killer.violations and len(killer.done) == arguments.kills
    result = "[bold green]equal[/], to the row" if good else "[bold red]NOT equal[/]"
    console.print(f"{len(killer.done)} kills, {time.monotonic() - began:.0f} s, seed {arguments.seed}: {result}")
    return 0 if good else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=main.__doc__)
    parser.add_argument("--work", type=Path, default=REPOSITORY / "build" / "soak", help="is emptied first")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument(
        "--memory-budget", default="1", help="of each executor; 1 (default): state is on the local disk"
    )
    return parser.parse_args()


def _show_summary(console: Console, layout: Layout, killer: Killer) -> None:
    by_victim = Counter(kill.victim for kill in killer.done)
    met = Counter(kill.victim for kill in killer.done if kill.interrupted)
    table = Table(title="Kills", title_justify="left")
    for heading in ("victim", "kills", "in the middle of a batch"):
        table.add_column(heading, justify="left" if heading == "victim" else "right")
    for victim in VICTIMS:
        table.add_row(victim, str(by_victim[victim]), str(met[victim]))
    console.print(table)
    batches = sum(read_batches(SparkLog(layout.storage(query.name))).committed + 1 for query in QUERIES)
    console.print(f"{killer.starts - 1} restarts of the driver, {batches} batches")


if __name__ == "__main__":
    sys.exit(main())
