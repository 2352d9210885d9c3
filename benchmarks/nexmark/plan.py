"""The runs of the benchmark, their order and their results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.nexmark.job import WARM_UP
from benchmarks.nexmark.queries import QUERIES
from benchmarks.stores.figures import Samples
from benchmarks.stores.plan import turned
from benchmarks.stores.providers import OURS, PROVIDERS, Provider
from spark_ckpt.config import MEMORY_BUDGET

DISK = replace(OURS, name="ckpt-disk", title="spark-ckpt, three quarters on disk", memory={MEMORY_BUDGET.key: "{mb}m"})
"""Ours with a memory budget of a quarter of the state."""

BATCH = "batch"
"""In place of a provider: the answer of a batch query, computed once."""

COMPETITORS: Mapping[str, Provider] = {
    name: provider
    for name, provider in {**PROVIDERS, DISK.name: DISK}.items()
    if name in (OURS.name, "ckpt-none", DISK.name, "hdfs", "rocksdb", "rocksdb-changelog", "rocksdb-ids")
}
"""Providers by name, ours first."""


@dataclass(frozen=True)
class Run:
    """One provider on one query.

    Args:
        query: name of the query.
        provider: name of the provider, or `BATCH`.
        round: number of the round, from 0, or `WARM_UP`.
    """

    query: str
    provider: str
    round: int


@dataclass(frozen=True)
class Record:
    """Result of one run.

    Args:
        run: the run.
        samples: its measurements, by the names of `benchmarks.nexmark.figures`.
        rows: rows of state after the last measured batch.
        answer: number of rows and two sums of their hashes; of the whole output, or of each batch with output.
        load: cores that other work kept busy before the query's JVM started.
        machine: cores, memory, versions, heap and stream.
    """

    run: Run
    samples: Samples
    rows: int
    answer: list[list[int]]
    load: float
    machine: Mapping[str, Any]


class Results:
    """Results: a folder with one line of JSON per run, so that an interrupted benchmark can be resumed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._lines = path / "runs.jsonl"

    def extend(self, records: Iterable[Record]) -> None:
        """Appends the records of a query."""
        with self._lines.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(record)) + "\n" for record in records)

    def records(self) -> list[Record]:
        """All stored records, in order of arrival."""
        if not self._lines.exists():
            return []
        lines = map(json.loads, self._lines.read_text(encoding="utf-8").splitlines())
        return [Record(**line | {"run": Run(**line["run"])}) for line in lines]

    def log(self, query: str) -> Path:
        """Log file of a query's JVM."""
        folder = self.path / "logs"
        folder.mkdir(exist_ok=True)
        return folder / f"{query}.log"


def plan(query: str, providers: Iterable[str], rounds: int) -> Iterator[Run]:
    """The runs of a query, round by round, with a different provider first in each; a first round warms up the JVM.

    Compared runs are close together in time. The batch answer comes first, where rows are final.
    """
    able = [one for one in providers if one != "hdfs" or not QUERIES[query].needs_families]
    if DISK.name in able and OURS.name in able:  # its budget follows from ours
        able = [OURS.name, *(one for one in able if one != OURS.name)]
    if able and not QUERIES[query].key:
        yield Run(query, BATCH, 0)
    for number in range(WARM_UP, rounds):
        for provider in turned(able, max(number, 0)):
            yield Run(query, provider, number)
