"""Storage of results: a folder with one line of JSON per run, so that an interrupted plan can be resumed."""

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
    """Result of one run.

    Args:
        run: the run.
        samples: its measurements.
        rows: rows of state at the end; 0 for runs without a count.
        load: one-minute load average of the machine before the run.
        machine: cores, memory, versions (`benchmarks.stores.machine`), heap and seed.
    """

    run: Run
    samples: Samples
    rows: int
    load: float
    machine: Mapping[str, Any]

    def to_json(self) -> str:
        """The record as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, line: str) -> Record:
        """Parses the output of `to_json`."""
        found = json.loads(line)
        workload = Workload.of_json(found["run"]["workload"])
        return cls(**found | {"run": Run(**found["run"] | {"workload": workload})})


class ResultFolder:
    """Results of one plan."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._lines = path / "runs.jsonl"

    def append(self, record: Record) -> None:
        """Appends a record."""
        with self._lines.open("a", encoding="utf-8") as file:
            file.write(record.to_json() + "\n")

    def records(self) -> list[Record]:
        """All stored records, in order of arrival."""
        if not self._lines.exists():
            return []
        return [Record.of_json(line) for line in self._lines.read_text(encoding="utf-8").splitlines()]

    def log(self, run: Run) -> Path:
        """Log file of a run."""
        folder = self.path / "logs"
        folder.mkdir(exist_ok=True)
        return folder / f"{run.name}.log"
