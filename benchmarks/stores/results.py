"""Where results are kept: a folder with one line of JSON per run, so that a plan can be broken off and gone on with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.stores.figures import Samples
from benchmarks.stores.plan import Run
from benchmarks.stores.workloads import Workload


@dataclass(frozen=True)
class Record:
    """What one run left.

    Args:
        run: which.
        samples: what it measured.
        rows: rows of state at its end; 0 where there are none to count.
        load: load average of the machine over a minute, before the run.
        machine: cores, memory, versions (`benchmarks.stores.machine`), heap and seed.
    """

    run: Run
    samples: Samples
    rows: int
    load: float
    machine: Mapping[str, Any]

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, line: str) -> Record:
        """Reads what `to_json` has written."""
        found = json.loads(line)
        workload = Workload.of_json(found["run"]["workload"])
        return cls(**found | {"run": Run(**found["run"] | {"workload": workload})})


class ResultFolder:
    """The results of one plan."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._lines = path / "runs.jsonl"

    def append(self, record: Record) -> None:
        """Keeps one more."""
        with self._lines.open("a", encoding="utf-8") as file:
            file.write(record.to_json() + "\n")

    def records(self) -> list[Record]:
        """All that have been kept, in the order in which they were."""
        if not self._lines.exists():
            return []
        return [Record.of_json(line) for line in self._lines.read_text(encoding="utf-8").splitlines()]

    def log(self, run: Run) -> Path:
        """What the run printed."""
        folder = self.path / "logs"
        folder.mkdir(exist_ok=True)
        return folder / f"{run.name}.log"
