"""Measures a running count with our provider and with Spark's own, in turns: `python -m benchmarks.first_figures`.

For each number of partitions every provider gets the same input. In each round every provider's query is started once,
one after the other: its first batch restores the state, the batches after it are measured. The first round is warm-up.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.first_figures.workload import CONTENDERS, Counting, Input, Run
from spark_ckpt import configure

MAINTENANCE = "10s"


@dataclass(frozen=True)
class Figures:
    """Medians of one provider with one number of partitions.

    Args:
        batch_ms: duration of a batch.
        state_ms: updates and commits of a batch, the sum over all tasks.
        objects_per_batch: mean number of new files, with those that are written in the background.
        restore_ms: from the start of the query to the commit of its first batch.
        batch_range_ms: shortest and longest batch.
        batches: how many were measured.
    """

    provider: str
    partitions: int
    batch_ms: float
    state_ms: float
    objects_per_batch: float
    restore_ms: float
    batch_range_ms: tuple[int, int]
    batches: int


def main() -> int:
    """Measures and prints a table; with --output writes everything as JSON too."""
    options = _arguments()
    spark = _session(options.memory)
    results: list[Figures] = []
    with tempfile.TemporaryDirectory(prefix="first-figures-", dir=options.work) as folder:
        for partitions in options.partitions:
            results += _measure(spark, Path(folder) / str(partitions), partitions, options)
    spark.stop()
    setting = {
        "keys": options.keys,
        "changed": options.changed,
        "seed": options.seed,
        "cores": os.cpu_count(),
        "memory": options.memory,
        "spark": pyspark.__version__,
        "python": platform.python_version(),
        "maintenance": MAINTENANCE,
    }
    _print(results, setting)
    if options.output is not None:
        report = {"setting": setting, "figures": [asdict(figures) for figures in results]}
        options.output.write_text(json.dumps(report, indent=1) + "\n")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_figures", description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--changed", type=int, default=10_000, help="keys that change in a batch")
    parser.add_argument("--partitions", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--rounds", type=int, default=4, help="measured starts of each query")
    parser.add_argument("--batches", type=int, default=3, help="measured batches of each start")
    parser.add_argument("--memory", default="4g", help="heap of the driver")
    parser.add_argument("--seed", type=int, default=2013)
    parser.add_argument("--work", type=Path, help="where the checkpoint locations go; the system's temporary folder")
    parser.add_argument("--output", type=Path, help="JSON file for the figures")
    return parser.parse_args()


def _session(memory: str) -> SparkSession:
    builder = SparkSession.builder.master("local[*]").appName("first figures")
    settings = {
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.streaming.stateStore.maintenanceInterval": MAINTENANCE,
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _measure(spark: SparkSession, folder: Path, partitions: int, options: argparse.Namespace) -> list[Figures]:
    source = Input(options.keys, options.changed, options.seed)
    queries = [
        Counting(spark, contender, partitions, folder / str(number)) for number, contender in enumerate(CONTENDERS)
    ]
    runs: dict[str, list[Run]] = {contender.name: [] for contender in CONTENDERS}
    for round_number in range(options.rounds + 1):
        tables = [source.next() for _ in range(options.batches + 1)]
        # Each round another provider goes first.
        turn = round_number % len(queries)
        for query in queries[turn:] + queries[:turn]:
            for table in tables:
                query.drop(table)
            run = query.run()
            print(f"{partitions} partitions, round {round_number}, {query.contender.name}", file=sys.stderr, flush=True)
            if round_number:
                runs[query.contender.name].append(run)
    for query in queries:
        query.check()
    return [_figures(name, partitions, measured) for name, measured in runs.items()]


def _figures(name: str, partitions: int, runs: list[Run]) -> Figures:
    batches = [batch for run in runs for batch in run.batches[1:]]
    durations = [batch.duration_ms for batch in batches]
    return Figures(
        provider=name,
        partitions=partitions,
        batch_ms=statistics.median(durations),
        state_ms=statistics.median(batch.state_ms for batch in batches),
        objects_per_batch=sum(run.objects for run in runs) / sum(len(run.batches) for run in runs),
        restore_ms=statistics.median(run.restore_ms for run in runs),
        batch_range_ms=(min(durations), max(durations)),
        batches=len(batches),
    )


def _print(results: list[Figures], setting: dict[str, object]) -> None:
    table = Table(title=", ".join(f"{name} {value}" for name, value in setting.items()))
    for heading in ("partitions", "provider", "batch ms", "shortest to longest", "state ms", "objects", "restore ms"):
        table.add_column(heading, justify="left" if heading == "provider" else "right")
    for one in results:
        shortest, longest = one.batch_range_ms
        table.add_row(
            str(one.partitions),
            one.provider,
            f"{one.batch_ms:.0f}",
            f"{shortest} to {longest}",
            f"{one.state_ms:.0f}",
            f"{one.objects_per_batch:.1f}",
            f"{one.restore_ms:.0f}",
        )
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    console.print(table)
    console.print("Medians; objects is the mean of new files per batch; state ms sums over all tasks of a batch.")


if __name__ == "__main__":
    sys.exit(main())
