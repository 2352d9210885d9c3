"""Injects the fault of one checkpoint location, once.

The file `fault.json` beside the checkpoint location names the fault while it is armed. The process that injects it
first creates `struck` there, so it strikes once, however many processes or restarts of a process reach the point.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from spark_ckpt.storage import Storage
from tests.faults.points import Cell, Kind, Place, point_named
from tests.storage.faulty import Fault, FaultyStorage

PLAN = "fault.json"
STRUCK = "struck"

SLOW_SECONDS = 1.0
"""Delay, in seconds, of something late that nothing can overtake."""

_DELIVERED_AFTER = 3
_FAULTS = {
    Kind.ERROR: Fault.ERROR,
    Kind.DROPPED: Fault.LOST_REQUEST,
    Kind.LOST: Fault.LOST_ANSWER,
    Kind.LATE: Fault.LATE,
}


def arm(folder: Path, cell: Cell) -> None:
    """Arms the fault, unless it has already struck."""
    if not has_struck(folder):
        hidden = folder / f".{PLAN}"
        hidden.write_text(json.dumps({"point": cell.point.name, "kind": cell.kind.name}))
        hidden.rename(folder / PLAN)


def disarm(folder: Path) -> None:
    """Disarms the fault."""
    (folder / PLAN).unlink(missing_ok=True)


def has_struck(folder: Path) -> bool:
    """True if the fault has struck."""
    return (folder / STRUCK).exists()


def kill_this_process() -> None:
    """Kills this process with SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)


def hang_this_process() -> None:
    """Stops this process, which is the side process, as SIGSTOP does."""
    os.kill(os.getpid(), signal.SIGSTOP)


def kill_driver() -> None:
    """Kills the driver's whole process group with SIGKILL: Python, JVM, executors in it, and the side process."""
    os.killpg(0, signal.SIGKILL)


class Injector:
    """The fault of one checkpoint location, as seen by one process. Thread-safe.

    Args:
        folder: the folder of the checkpoint location.
        kill_coordinator: ends the side process.
    """

    def __init__(self, folder: Path, kill_coordinator: Callable[[], None] = kill_this_process) -> None:
        self.folder = folder
        self._kills = {
            Kind.KILL: kill_coordinator,
            Kind.POISON: kill_coordinator,
            Kind.KILL_DRIVER: kill_driver,
            Kind.HANG: hang_this_process,
        }
        self._met = 0
        self._reached = False
        self._lock = threading.Lock()

    def strike(self, place: Place, what: str, name: str = "") -> Kind | None:
        """Fault that strikes at this moment, or None; a kill has already been sent on return."""
        cell = self._cell()
        if cell is None or cell.point.place is not place:
            return None
        with self._lock:
            again = cell.kind is Kind.POISON and self._struck_by() == f"{what} {name}"
            if not again and (not self._is_now(cell, what, name) or not self._take(f"{what} {name}")):
                return None
        if cell.kind in self._kills:
            self._kills[cell.kind]()
        return cell.kind

    def leads_there(self, operation: str, name: str) -> bool:
        """True if the answer to this operation must get lost for the point to be reached."""
        cell = self._cell()
        if cell is None or cell.point.after is None or not _is(cell.point.after, operation, name):
            return False
        with self._lock:
            self._met += 1
            self._reached = self._met == cell.point.skip + 1
            return self._reached

    def _cell(self) -> Cell | None:
        try:
            plan = json.loads((self.folder / PLAN).read_text())
        except FileNotFoundError:
            return None
        return Cell(point_named(plan["point"]), Kind[plan["kind"]])

    def _is_now(self, cell: Cell, what: str, name: str) -> bool:
        if not _is((cell.point.what, cell.point.pattern), what, name):
            return False
        if cell.point.after is not None:
            return self._reached
        self._met += 1
        return self._met == cell.point.skip + 1

    def _take(self, moment: str) -> bool:
        try:
            with (self.folder / STRUCK).open("x") as file:
                file.write(moment)
        except FileExistsError:
            return False
        return True

    def _struck_by(self) -> str | None:
        """The moment at which the fault struck."""
        try:
            return (self.folder / STRUCK).read_text()
        except FileNotFoundError:
            return None


class StruckStorage(FaultyStorage):
    """A storage that the fault strikes. A late change arrives a few operations after its caller gave it up."""

    def __init__(self, inner: Storage, injector: Injector) -> None:
        super().__init__(inner)
        self.before = self._before
        self._injector = injector
        self._until_delivery = 0

    def _before(self, operation: str, name: str) -> None:
        if self._until_delivery:
            self._until_delivery -= 1
            if not self._until_delivery:
                self.deliver()
        if self._injector.leads_there(operation, name):
            self.fail(operation, re.escape(name), Fault.LOST_ANSWER)
        kind = self._injector.strike(Place.STORAGE, operation, name)
        if kind is Kind.LATE and operation not in ("create", "write"):
            time.sleep(SLOW_SECONDS)
        elif kind is not None:
            self.fail(operation, re.escape(name), _FAULTS[kind])
            self._until_delivery = _DELIVERED_AFTER


def _is(moment: tuple[str, str], what: str, name: str) -> bool:
    return moment[0] == what and re.search(moment[1], name) is not None
