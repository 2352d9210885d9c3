"""Runs the cells of the fault table and judges the outcome, the answer and the checkpoints of each."""

from __future__ import annotations

import random
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_ckpt.storage import LocalStorage
from tests.faults.driver import SIDE_PROCESS
from tests.faults.folder import CellFolder
from tests.faults.injection import has_struck
from tests.faults.points import RESTARTED, RETRIED, WENT_ON, Cell, Kind, Place, failed
from tests.support.checkpoints import CheckpointJudge, completed_checkpoints
from tests.support.invariants import Findings, inspect
from tests.support.java import compile_java_jar
from tests.support.jobs import running_counts
from tests.support.processes import DriverJob
from tests.support.provider import CKPT
from tests.support.sinks import BatchLog, assert_same_rows

HERE = Path(__file__).parent

_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)


@dataclass(frozen=True)
class Result:
    """Result of one cell.

    Args:
        cell: the fault.
        outcome: the query's reaction to the fault.
        restarts: number of restarts of the query because of the fault.
        checkpoints: number of checkpoints at the end.
        wrong: the error in the answer or the checkpoints, or None.
    """

    cell: Cell
    outcome: str
    restarts: int
    checkpoints: int
    wrong: str | None

    @property
    def is_good(self) -> bool:
        """True if the outcome is the expected one and nothing is wrong."""
        return self.wrong is None and self.cell.expects(self.outcome)


class FaultTable:
    """Cells with a folder each, run by consecutive drivers.

    Args:
        work: an empty folder.
        cells: the cells to run; those that kill the driver should come last.
        seed: seed of the input.
    """

    def __init__(self, work: Path, cells: Sequence[Cell], seed: int) -> None:
        self._work = work
        self._judge = CheckpointJudge(CKPT, work / "metadata")
        self._python = faulty_python(work)
        on_disk = any(cell.point.place is Place.LOCAL_DISK for cell in cells)
        self._disk = compile_java_jar(HERE / "java", work / "java") if on_disk else None
        self._folders = []
        for number, cell in enumerate(cells):
            folder = CellFolder(work / f"{number:03}")
            folder.prepare(cell, random.Random(seed + number))
            self._folders.append(folder)

    def results(self) -> Iterator[Result]:
        """Runs the cells and judges each of them after its last run.

        Raises:
            RuntimeError: a driver ended by itself before all cells were done.
        """
        waiting = list(self._folders)
        kills, left = 0, Findings()
        while waiting:
            driver = self._start(waiting)
            try:
                while waiting and driver.await_(lambda: waiting[0].is_done):
                    yield self._judged(waiting.pop(0), kills, left)
                    kills, left = 0, Findings()
                status = driver.wait()
            finally:
                driver.kill()
            if waiting and status not in _KILLED:
                raise RuntimeError(f"the driver ended with status {status}:\n{driver.output()[-6000:]}")
            if waiting:
                kills += 1
                left = inspect(LocalStorage(waiting[0].location), orphans=True)

    def _start(self, folders: Sequence[CellFolder]) -> DriverJob:
        arguments = ["--python", str(self._python), *(str(folder.folder) for folder in folders)]
        if self._disk is not None:
            arguments += ["--disk", str(self._disk)]
        return DriverJob(str(HERE / "driver.py"), self._work, arguments)

    def _judged(self, folder: CellFolder, kills: int, left: Findings) -> Result:
        """Result of a cell; `left` is the state of its location after the last kill of its driver."""
        runs = folder.runs()
        errors = [run.error for run in runs if run.error is not None]
        if kills:
            outcome = RESTARTED
        elif errors:
            outcome = failed(errors[0])
        else:
            outcome = RETRIED if any(run.failed_tasks for run in runs) else WENT_ON
        checkpoints = len(completed_checkpoints(folder.location))
        wrong = "\n".join(left.violations) or self._wrong(folder)
        return Result(folder.cell, outcome, kills + len(errors), checkpoints, wrong)

    def _wrong(self, folder: CellFolder) -> str | None:
        if not has_struck(folder.folder):
            return "the fault has not struck"
        if folder.cell.point.place is Place.LOCAL_DISK and any(run.failed_tasks for run in folder.runs()):
            failures = folder.failures()
            if not failures or not all(name.endswith(".LocalStateException") for name in failures):
                return f"tasks failed with {failures or 'unknown exceptions'}"
        try:
            assert_same_rows(BatchLog(folder.out, "update").rows(), running_counts(folder.feed.rows()))
            self._judge.check(folder.location, all_retained="retained" not in folder.cell.point.settings)
            if folder.cell.point.beside:
                assert_same_rows(BatchLog(folder.out_beside, "update").rows(), running_counts(folder.feed.rows()))
                self._judge.check(folder.location_beside)
        except AssertionError as error:
            return str(error)
        return None


def faulty_python(folder: Path) -> Path:
    """Makes an executable that runs the side process with faults, whatever its arguments."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {SIDE_PROCESS}\n')
    python.chmod(0o755)
    return python


def markdown(results: Sequence[Result]) -> str:
    """The table in Markdown: one row per point, one column per kind of fault."""
    by_point: dict[str, dict[Kind, Result]] = {}
    for result in results:
        by_point.setdefault(result.cell.point.name, {})[result.cell.kind] = result
    lines = [
        "| point | " + " | ".join(kind.value for kind in Kind) + " | checkpoints |",
        "|---|" + "---|" * len(Kind) + "---:|",
    ]
    for name, row in by_point.items():
        counts = "/".join(str(count) for count in sorted({result.checkpoints for result in row.values()}))
        lines.append(f"| {name} | " + " | ".join(_text(row.get(kind)) for kind in Kind) + f" | {counts} |")
    return "\n".join(lines) + "\n"


def _text(result: Result | None) -> str:
    if result is None:
        return ""
    if result.wrong is not None:
        return f"**WRONG**: {result.wrong.splitlines()[0]}"
    return result.outcome if result.is_good else f"**{result.outcome}**, not: {result.cell.expected}"
