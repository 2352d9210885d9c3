"""Where the demo keeps its things, and what the checkpoint locations tell about the queries' progress."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Layout:
    """The folders below the demo's work folder."""

    work: Path

    @property
    def feed(self) -> Path:
        """The input."""
        return self.work / "feed"

    @property
    def flights(self) -> Path:
        """The flights' files."""
        return self.feed / "flights"

    @property
    def weather(self) -> Path:
        """The weather's files."""
        return self.feed / "weather"

    def checkpoint(self, query: str) -> Path:
        """Checkpoint location of a query."""
        return self.work / "checkpoints" / query

    def table(self, query: str) -> Path:
        """Delta table of a query."""
        return self.work / "tables" / query

    @property
    def changes(self) -> Path:
        """Rows that have been computed and wait to be merged into a table."""
        return self.work / "changes"

    @property
    def verdicts(self) -> Path:
        """What the judge found."""
        return self.work / "verdicts.json"

    @property
    def judge_log(self) -> Path:
        """What the judge printed."""
        return self.work / "compare.log"

    def driver_log(self, start: int) -> Path:
        """What the driver printed, by the number of its start."""
        return self.work / f"driver-{start}.log"


@dataclass(frozen=True)
class Batches:
    """What Spark's own logs in a checkpoint location say: the last batch planned, and the last committed."""

    planned: int
    committed: int

    @property
    def running(self) -> bool:
        """Whether a batch has been planned and not committed."""
        return self.planned > self.committed


def read_batches(checkpoint: Path) -> Batches:
    """The state of a query's logs; -1 where there is none yet. The commits first: they follow the plans."""
    committed = _last(checkpoint / "commits")
    return Batches(_last(checkpoint / "offsets"), committed)


def files_done(checkpoint: Path, batch: int) -> int:
    """How many files of each feed are behind a batch, as Spark's offset log has it."""
    if batch < 0:
        return 0
    offsets = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[2:]
    return max((json.loads(line)["logOffset"] + 1 for line in offsets if line.startswith("{")), default=0)


def _last(log: Path) -> int:
    try:
        return max((int(entry.name) for entry in log.iterdir() if entry.name.isdecimal()), default=-1)
    except FileNotFoundError:
        return -1
