"""The main job, end to end. Run it with `make demo`."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks.demo import data, tables
from benchmarks.demo.changing import ChangingSupervisor
from benchmarks.demo.display import Display
from benchmarks.demo.layout import FLIGHTS, WEATHER, Layout
from benchmarks.demo.queries import QUERIES
from benchmarks.demo.session import PROVIDERS, REPOSITORY
from benchmarks.demo.supervisor import DriverFailedError, Supervisor
from benchmarks.demo.topics import PARTITIONS, Topics
from benchmarks.demo.verdicts import judge, show_verdicts
from benchmarks.object_store import ObjectStore, s3a_class_path
from spark_ckpt.cli.main import main as spark_ckpt
from spark_ckpt.jars import installed_pyspark, supported_minor
from tests.support.kafka import KafkaBroker

INSPECTED = "aircraft"
CONNECTOR_SPARK = "4.2"


def main() -> int:
    """Stream a year of flights through three stateful queries, kill the driver on the way, and check every row."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # leave no driver behind
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    work = arguments.work.resolve()
    shutil.rmtree(work, ignore_errors=True)
    with ExitStack() as servers:
        broker = servers.enter_context(KafkaBroker(work / "kafka")) if arguments.kafka else None
        if not arguments.s3:
            return _run(arguments, console, Layout(work), {}, broker)
        store = servers.enter_context(ObjectStore(0))
        conf = {**store.conf(), "spark.driver.extraClassPath": s3a_class_path()}
        layout = Layout(work, store.location("demo"), conf)
        code = _run(arguments, console, layout, store.environment(), broker)
        if arguments.serve:
            _serve(console, layout, store)
    return code


def _run(
    arguments: argparse.Namespace,
    console: Console,
    layout: Layout,
    environment: Mapping[str, str],
    broker: KafkaBroker | None,
) -> int:
    """Run the demo and return its exit status.

    `environment` holds the variables with which the command line reaches the checkpoint locations. With a broker, the
    queries read topics instead of files.
    """
    began = time.monotonic()
    rows = data.prepare(layout.feed, arguments.days_per_file)
    feed = f"{sum(rows) - 1:,} flights and the weather in {len(rows)} files each"
    console.print(f"{feed}, into {tables.TITLE} below {_shown(str(layout.work))}")
    if broker is not None:
        layout = replace(layout, topics=Topics(broker.bootstrap_servers, rows))
        with console.status("filling the topics"):
            for folder in (layout.flights, layout.weather):
                Topics(broker.bootstrap_servers).fill(folder)
        console.print(f"all of it in the Kafka topics {FLIGHTS} and {WEATHER}, {PARTITIONS} partitions each")
    if layout.elsewhere is not None:
        console.print(f"checkpoint locations below {layout.elsewhere}")
    try:
        with Display(console, rows) as display:
            supervise = partial(ChangingSupervisor, report=console.print) if arguments.evolve else Supervisor
            supervisor = supervise(layout, arguments.provider, len(rows), arguments.kills, display, ui=True)
            kills = supervisor.run()
            layout = supervisor.layout
    except DriverFailedError as error:
        console.print(str(error), markup=False)
        return 1
    verdicts = judge(console, layout)
    show_verdicts(console, verdicts)
    if arguments.provider == "ckpt":
        os.environ.update(environment)  # only now: until here, drivers must get by with Spark's settings alone
        _show_checkpoints(console, layout)
    good = all(verdict.equal for verdict in verdicts) and len(kills) >= arguments.kills
    result = "[bold green]equal[/], to the row" if good else "[bold red]NOT equal[/]"
    console.print(f"\n{len(kills)} kills in the middle of a batch, {time.monotonic() - began:.0f} s: {result}")
    return 0 if good else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.demo", description=main.__doc__)
    parser.add_argument("--work", type=Path, default=REPOSITORY / "build" / "demo", help="is emptied first")
    parser.add_argument("--provider", choices=PROVIDERS, default="ckpt", help="state-store provider (default: ours)")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--days-per-file", type=int, default=21)
    parser.add_argument("--s3", action="store_true", help="checkpoint locations on an S3 server that the demo starts")
    parser.add_argument("--kafka", action="store_true", help="read topics of a Kafka broker that the demo starts")
    parser.add_argument("--evolve", action="store_true", help="change the queries twice, and keep their state")
    parser.add_argument(
        "--serve", action="store_true", help="with --s3: keep the server running at the end, until Ctrl-C"
    )
    arguments = parser.parse_args()
    if arguments.serve and not arguments.s3:
        parser.error("--serve requires --s3")
    if arguments.kafka and supported_minor(installed_pyspark()) != CONNECTOR_SPARK:
        parser.error(f"--kafka requires Spark {CONNECTOR_SPARK}, for which Maven brings Spark's Kafka connector")
    if arguments.evolve and (arguments.kafka or arguments.provider != "ckpt"):
        parser.error("--evolve requires our provider and the files of the feed")
    return arguments


def _show_checkpoints(console: Console, layout: Layout) -> None:
    """Show what the command line reports about the retained checkpoints."""
    commands = [["list", _shown(layout.checkpoint(query.name))] for query in QUERIES]
    commands.append(["inspect", _shown(layout.checkpoint(INSPECTED))])
    for command in commands:
        console.print(f"\n[bold]$ spark-ckpt {' '.join(command)}[/]", soft_wrap=True)
        spark_ckpt(command, prog_name="spark-ckpt", standalone_mode=False)


def _serve(console: Console, layout: Layout, store: ObjectStore) -> None:
    """Keep the object store up until Ctrl-C, and print how to reach it from another shell."""
    variables = " ".join(f"{name}={value}" for name, value in store.environment().items())
    console.print("\nThe object store runs until Ctrl-C. In another shell:", markup=False)
    for line in (f"export {variables}", f"spark-ckpt list {layout.checkpoint(INSPECTED)}"):
        console.print(f"    {line}", markup=False, soft_wrap=True)
    with suppress(KeyboardInterrupt):
        signal.pause()


def _shown(place: str) -> str:
    """Path relative to the working directory; URIs unchanged."""
    return os.path.relpath(place) if Path(place).is_relative_to(Path.cwd()) else place


if __name__ == "__main__":
    sys.exit(main())
