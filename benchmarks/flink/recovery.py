"""Recovery after SIGKILL, of Flink and of Structured Streaming: from the kill to the next durable checkpoint, with as
many partitions as before or with twice as many.

python -m benchmarks.flink.recovery, or `make bench-recovery`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.flink import continuing
from benchmarks.flink.inputs import Files, flattened
from benchmarks.flink.releases import DEFAULT
from benchmarks.flink.running import BACKENDS, command_of, write_order
from benchmarks.flink.sql import QUERIES
from benchmarks.nexmark.generator import Stream, prepare
from benchmarks.nexmark.plan import COMPETITORS
from benchmarks.nexmark.running import APPLICATION, PARTITIONS
from benchmarks.stores import machine
from benchmarks.stores.driver import Driver
from benchmarks.stores.in_one_session import add_options
from benchmarks.stores.plan import turned
from benchmarks.stores.providers import OURS
from benchmarks.stores.runner import FLOOR_JAR, spark_submit
from spark_ckpt import jar_path

SYSTEMS = ("ckpt", "hdfs", "rocksdb-changelog", *BACKENDS)
"""Providers of Structured Streaming, and set-ups of Flink."""

_LOOK_SECONDS = 0.01
_PATIENCE_SECONDS = 120.0
_CHECKPOINT = re.compile(r"chk-(\d+)")


@dataclass(frozen=True)
class Subject:
    """A query on a system.

    Args:
        command: command that starts it, or lets it continue from what is durable.
        newest: number of the newest durable checkpoint or batch; -1 before the first.
        log: file for its output.
        between: what has to be done before it continues.
    """

    command: Callable[[], Sequence[str]]
    newest: Callable[[], int]
    log: Path
    between: Callable[[], None] = lambda: None


def recovery_seconds(subject: Subject, enough: int) -> float:
    """Seconds from SIGKILL to the next durable checkpoint.

    Args:
        subject: a query that has not begun.
        enough: number of the checkpoint after which it is killed.

    Raises:
        RunFailedError: it ended by itself, or has no checkpoint for two minutes.
    """
    with _started(subject) as driver:
        _await(subject, driver, enough)
    killed = time.monotonic()
    subject.between()
    before = subject.newest()
    with _started(subject) as driver:
        _await(subject, driver, before + 1)
        return time.monotonic() - killed


@contextmanager
def _started(subject: Subject) -> Iterator[Driver]:
    """Starts it, and kills it with all of its processes at the end."""
    name, patience, look = subject.log.stem, _PATIENCE_SECONDS, _LOOK_SECONDS
    driver = Driver(name, subject.command(), subject.log, patience=patience, look_seconds=look)
    try:
        yield driver
    finally:
        driver.kill()


def _await(subject: Subject, driver: Driver, number: int) -> None:
    driver.await_(lambda: subject.newest() >= number, f"continued: no checkpoint {number}")


def flink(
    query: str, backend: str, feed: Path, files: int, heap: str, work: Path, log: Path, *, doubles: bool = False
) -> Subject:
    """A query on Flink, in one JVM.

    Args:
        query: its name.
        backend: a key of `BACKENDS`.
        feed: folder of Parquet files with events, as `flattened` returns it.
        files: number of files to read.
        heap: heap of the JVM in Java's notation.
        work: empty folder for its checkpoints.
        log: file for its output.
        doubles: whether it continues with twice as many subtasks.
    """
    checkpoints = work / "checkpoints"
    events = Files(feed, files)

    def found() -> Mapping[int, Path]:
        complete = checkpoints.glob("*/chk-*/_metadata")
        return {int(match[1]): file.parent for file in complete if (match := _CHECKPOINT.fullmatch(file.parent.name))}

    def command() -> Sequence[str]:
        restored = found()
        settings = {"execution.state-recovery.path": restored[max(restored)].as_uri()} if restored else {}
        subtasks = 2 * (os.cpu_count() or 1) if restored and doubles else None
        order = write_order(work, query, backend, events, 0, settings, is_checked=False, parallelism=subtasks)
        return command_of(DEFAULT, heap, order)

    return Subject(command, lambda: max(found(), default=-1), log)


def spark(query: str, provider: str, feed: Path, heap: str, work: Path, log: Path, *, doubles: bool = False) -> Subject:
    """A query on Structured Streaming, in one JVM.

    Args:
        query: its name.
        provider: a key of `COMPETITORS`.
        feed: folder of Parquet files with events.
        heap: heap of the JVM in Java's notation.
        work: empty folder for its checkpoints.
        log: file for its output.
        doubles: whether it continues with twice as many partitions, from the last file of the first half. `rescale`
            wants a query that was stopped between two batches.
    """
    commits = work / "checkpoint" / "commits"
    conf = {**APPLICATION, **COMPETITORS[provider].conf()}
    program = spark_submit(continuing.__file__, conf, [jar_path(), FLOOR_JAR], heap, work)
    location = (work / "checkpoint").as_uri()
    files = sorted(feed.iterdir())
    half = len(files) // 2
    read = _linked(files[:half], work / "feed") if doubles else feed
    command = [*program, query, str(read), location]

    def newest() -> int:
        names = os.listdir(commits) if commits.exists() else []
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def rescale() -> None:
        _linked(files[half:], read)
        command = [sys.executable, "-m", "spark_ckpt", "rescale", location, "--partitions", str(2 * PARTITIONS)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # our own output may be JSON

    return Subject(lambda: command, newest, log, rescale) if doubles else Subject(lambda: command, newest, log)


def _linked(files: Sequence[Path], folder: Path) -> Path:
    """Adds files to a folder, as links."""
    folder.mkdir(exist_ok=True)
    for file in files:
        (folder / file.name).hardlink_to(file)
    return folder


def main() -> int:
    """Kills queries of Nexmark by SIGKILL on Flink and on Structured Streaming, starts them again, and prints the
    seconds until the next durable checkpoint: the start of a JVM, the restore and the next batch or interval. With
    --rescale they continue with twice as many partitions, on Flink and with spark-ckpt."""
    options = _arguments()
    for needed in (FLOOR_JAR, DEFAULT.folder / "classpath.txt"):
        if not needed.exists():
            raise SystemExit(f"{needed} is missing: run 'make bench-recovery', which builds it")
    console = Console(highlight=False, stderr=options.json, width=None if sys.stdout.isatty() else 160)
    work, results = options.work.resolve(), options.results.resolve()
    results.mkdir(parents=True, exist_ok=True)
    feed = prepare(work / "input", Stream(options.events, options.files, options.events // 10, options.seed))
    flat = flattened(feed)
    found: dict[tuple[str, str], list[float]] = {}
    for query in options.only:
        for number in range(options.rounds):
            for system in turned(_systems(options), number):
                folder, log = work / "recovery", results / f"{query}.{system}.{number}.log"
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                doubles = options.rescale
                if system in BACKENDS:
                    enough = 5
                    subject = flink(query, system, flat, options.files, options.heap, folder, log, doubles=doubles)
                else:
                    enough = options.files // 2 - 1 if doubles else options.files // 3
                    subject = spark(query, system, feed, options.heap, folder, log, doubles=doubles)
                with console.status(f"{query}, {system}, round {number + 1}"):
                    found.setdefault((query, system), []).append(recovery_seconds(subject, enough))
                shutil.rmtree(folder)
    facts = {**machine.facts(), "heap": options.heap, "files": options.files, "events": options.events}
    text = json.dumps(_to_json(found, facts), indent=1)
    (results / "recovery.json").write_text(text + "\n", encoding="utf-8")
    if options.json:
        print(text)
    else:
        console.print(_table(found))
    return 0


def _systems(options: argparse.Namespace) -> list[str]:
    """Spark's own providers keep the number of partitions."""
    return [one for one in options.systems if one in BACKENDS or one == OURS.name or not options.rescale]


def _to_json(found: Mapping[tuple[str, str], Sequence[float]], facts: Mapping[str, object]) -> dict[str, object]:
    rows = [
        {"query": query, "system": system, "seconds": statistics.median(times), "low": min(times), "high": max(times)}
        for (query, system), times in found.items()
    ]
    return {"machine": dict(facts), "figures": rows}


def _table(found: Mapping[tuple[str, str], Sequence[float]]) -> Table:
    made = Table()
    for title in ("query", "system", "seconds to the next checkpoint", "range"):
        made.add_column(title, justify="left" if title in ("query", "system") else "right")
    for (query, system), times in found.items():
        made.add_row(query, system, f"{statistics.median(times):.1f}", f"{min(times):.1f} to {max(times):.1f}")
    return made


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flink.recovery", description=main.__doc__)
    parser.add_argument("--only", nargs="+", choices=QUERIES, default=["q17", "q20"], metavar="QUERY")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), metavar="SYSTEM")
    parser.add_argument("--events", type=int, default=100_000, help="events per file (default: 100,000)")
    parser.add_argument("--files", type=int, default=60, help="files of events (default: 60)")
    parser.add_argument("--rescale", action="store_true", help="continue with twice as many partitions")
    add_options(parser, "recovery", heap="4g")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
