"""The folder of one cell: its input, held back for later runs, and the driver's notes on its runs."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.faults.points import Cell, Kind, point_named
from tests.support.events import SCHEMA, Event
from tests.support.feeds import Feed, at
from tests.support.jobs import with_duplicates


@dataclass(frozen=True)
class Run:
    """One run of the query in a cell.

    Args:
        failed_tasks: number of failed task attempts.
        error: the error that ended the query, or None if it reached the end of its input.
    """

    failed_tasks: int
    error: str | None


class CellFolder:
    """Paths and notes of one cell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.location = folder / "checkpoint"
        self.out = folder / "out"
        self.location_beside = folder / "beside" / "checkpoint"
        self.out_beside = folder / "beside" / "out"
        self.feed = Feed(folder / "feed", SCHEMA)
        self._later = folder / "later"
        self._runs = folder / "runs.jsonl"
        self._done = folder / "done"

    def prepare(self, cell: Cell, rng: random.Random) -> None:
        """Creates the input, and holds all of it back."""
        self._later.mkdir()
        (self.folder / "cell.json").write_text(json.dumps({"point": cell.point.name, "kind": cell.kind.name}))
        first: list[Event] = [(at(0), f"other-{number}", number) for number in range(cell.point.rows)]
        for batch in with_duplicates(rng, sum(cell.point.runs)):
            self.feed.drop(first + batch)
            first = []
        for file in self.feed.folder.glob("*.json"):
            file.rename(self._later / file.name)

    @property
    def cell(self) -> Cell:
        """The cell stored in the folder."""
        fields = json.loads((self.folder / "cell.json").read_text())
        return Cell(point_named(fields["point"]), Kind[fields["kind"]])

    def stages(self) -> Iterable[int]:
        """Numbers of the remaining runs, each with its input in place."""
        files = 0
        for number, more in enumerate(self.cell.point.runs):
            files += more
            there = len(list(self.feed.folder.glob("*.json")))
            if there > files:
                continue
            for file in sorted(self._later.iterdir())[: files - there]:
                file.rename(self.feed.folder / file.name)
            yield number

    def note(self, run: Run) -> None:
        """Records a run that ended by itself."""
        with self._runs.open("a") as file:
            file.write(json.dumps(asdict(run)) + "\n")

    def runs(self) -> list[Run]:
        """Runs that ended by themselves."""
        lines = self._runs.read_text().splitlines() if self._runs.exists() else []
        return [Run(**json.loads(line)) for line in lines]

    def failures(self) -> list[str]:
        """Classes of the exceptions of failed tasks, noted while a fault of the local disk is armed."""
        noted = self.folder / "failures"
        return noted.read_text().split() if noted.exists() else []

    def finish(self) -> None:
        """Marks all runs as ended."""
        self._done.touch()

    @property
    def is_done(self) -> bool:
        """True if all runs have ended."""
        return self._done.exists()
