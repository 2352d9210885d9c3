"""Runs the judge on the streams' tables and shows its verdicts."""

from __future__ import annotations

import json
import subprocess
import sys

from rich.console import Console
from rich.table import Table

from benchmarks.demo.compare import Verdict
from benchmarks.demo.layout import Layout
from benchmarks.demo.queries import QUERIES
from benchmarks.demo.session import REPOSITORY


def judge(console: Console, layout: Layout) -> list[Verdict]:
    """Compare all tables with the batch answer, in a separate process."""
    command = [sys.executable, "-m", "benchmarks.demo.compare", "--work", str(layout.work)]
    command += ["--result", str(layout.verdicts)]
    command += [] if layout.stage is None else ["--stage", str(layout.stage)]
    with layout.judge_log.open("wb") as log, console.status("comparing with the batch answer"):
        code = subprocess.run(command, cwd=REPOSITORY, stdout=log, stderr=subprocess.STDOUT).returncode
    if code != 0:
        raise SystemExit(f"the comparison failed: see {layout.judge_log}")
    return [Verdict(**verdict) for verdict in json.loads(layout.verdicts.read_text(encoding="utf-8"))]


def show_verdicts(console: Console, verdicts: list[Verdict]) -> None:
    """Print a row per query, and examples of the differences."""
    titles = {query.name: query.title for query in QUERIES}
    table = Table(title="Stream against batch", title_justify="left")
    table.add_column("result")
    for heading in ("rows streamed", "rows of the batch answer", "missing", "surplus"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for verdict in verdicts:
        counts = (verdict.streamed, verdict.expected, verdict.missing, verdict.surplus)
        mark = "[green]equal[/]" if verdict.equal else "[red]DIFFERENT[/]"
        table.add_row(titles[verdict.query], *(f"{count:,}" for count in counts), mark)
    console.print(table)
    for verdict in verdicts:
        for example in verdict.examples:
            console.print(f"{verdict.query}: {example}", markup=False)
