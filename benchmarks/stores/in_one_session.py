"""Benchmarks whose runs share one Spark session: their execution, and the display of their results."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.stores import machine, tables
from benchmarks.stores.plan import Run
from benchmarks.stores.results import Record, ResultFolder
from benchmarks.stores.runner import CONF
from benchmarks.stores.summary import Summary
from benchmarks.stores.turns import shown


def add_options(parser: argparse.ArgumentParser, name: str, heap: str) -> None:
    """Adds the options that these benchmarks share.

    Args:
        parser: the parser.
        name: name of the benchmark, in folders.
        heap: default heap of the driver.
    """
    parser.add_argument("--rounds", type=int, default=3, help="rounds per provider (default: 3)")
    parser.add_argument("--heap", default=heap, help=f"of the driver (default: {heap})")
    parser.add_argument("--seed", type=int, default=2013)
    results = machine.REPOSITORY / "benchmarks" / "results" / f"{name}-{datetime.now(timezone.utc):%Y-%m-%dT%H%M%S}"
    parser.add_argument(
        "--results", type=Path, default=results, help="results folder; finished runs in it are not repeated"
    )
    work = machine.REPOSITORY / "build" / "benchmarks" / name
    parser.add_argument("--work", type=Path, default=work, help="scratch folder; input found in it is reused")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON instead of tables")


def session(heap: str, work: Path, jars: Sequence[Path]) -> SparkSession:
    """The JVM for all runs.

    Args:
        heap: its heap, as Spark writes it.
        work: scratch folder.
        jars: jars on its class path.
    """
    builder = SparkSession.builder.master(f"local[{os.cpu_count()}]")
    places = {"spark.sql.warehouse.dir": str(work / "warehouse"), "spark.local.dir": str(work / "spark")}
    settings = {**CONF, **places, "spark.driver.memory": heap, "spark.jars": ",".join(map(str, jars))}
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def run_missing(
    console: Console, folder: ResultFolder, runs: Sequence[Run], start: Callable[[], Callable[[Run], Record]]
) -> None:
    """Executes the runs without a result in the folder.

    Args:
        console: for the progress bar.
        folder: the results.
        runs: all runs.
        start: starts the session, and returns the function that executes a run.
    """
    kept = {record.run for record in folder.records()}
    if missing := [run for run in runs if run not in kept]:
        execute = start()
        with shown(console, missing) as turns:
            for run in turns:
                folder.append(execute(run))


def write_summary(folder: ResultFolder, summary: Summary, records: Sequence[Record]) -> str:
    """Writes `summary.json` and `tables.txt`; returns the JSON."""
    text = json.dumps(tables.to_json(summary, records), indent=1)
    (folder.path / "summary.json").write_text(text + "\n", encoding="utf-8")
    with (folder.path / "tables.txt").open("w", encoding="utf-8") as file:
        show(Console(file=file, highlight=False, width=160), summary, records)
    return text


def show(console: Console, summary: Summary, records: Sequence[Record]) -> None:
    """Prints the machine, a table for each workload, and warnings."""
    if records:
        console.print(", ".join(f"{name} {value}" for name, value in records[-1].machine.items()))
    titles = {record.run.workload.name: record.run.workload.title for record in records}
    for workload in summary.workloads():
        console.print(f"\n[bold]{titles[workload]}[/]")
        console.print(tables.figures_table(summary, workload))
    console.print("Medians, with the interquartile range.")
    for warning in tables.warnings(summary, records):
        console.print(f"[bold red]{warning}[/]")
