"""From records to figures: medians, ratios to the best built-in provider, and differing answers."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.nexmark.plan import BATCH, COMPETITORS, Record
from benchmarks.nexmark.queries import QUERIES
from benchmarks.stores.providers import OURS
from benchmarks.stores.summary import Spread


@dataclass(frozen=True)
class Measure:
    """A measured quantity.

    Args:
        title: name for readers.
        unit: its unit.
        more_is_better: true for a throughput.
    """

    title: str
    unit: str
    more_is_better: bool = False


MEASURES: Mapping[str, Measure] = {
    "events_s": Measure("throughput", "events/s", more_is_better=True),
    "cpu_s": Measure("CPU of driver, executor, background work and side process", "s per million events"),
    "batch_ms": Measure("batch", "ms"),
    "batch_p99_ms": Measure("batch, 99th percentile", "ms"),
    "state_ms": Measure("state: updates, removals and commits, sum over all tasks", "ms"),
    "state_mb": Measure("memory for state, as the provider reports it", "MB"),
    "heap_mb": Measure("heap after a collection", "MB"),
    "stored_mb": Measure("files of the checkpoint location", "MB"),
    "written_mb": Measure("bytes written to disk", "MB per million events"),
    "restart_ms": Measure("restart: from start to the first committed batch", "ms"),
}


class Figures:
    """Figures of a set of records."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = [record for record in records if record.run.provider != BATCH]
        self._expected = {record.run.query: record.answer for record in records if record.run.provider == BATCH}

    def queries(self) -> list[str]:
        """Queries with results, in the order of Nexmark."""
        found = {record.run.query for record in self._records}
        return [name for name in QUERIES if name in found]

    def providers(self, query: str) -> list[str]:
        """Providers with results for a query, ours first."""
        found = {record.run.provider for record in self._records if record.run.query == query}
        return [name for name in COMPETITORS if name in found]

    def spread(self, query: str, provider: str, measure: str) -> Spread | None:
        """Median and quartiles over the samples of all rounds; None without samples."""
        runs = [record for record in self._records if (record.run.query, record.run.provider) == (query, provider)]
        if measure == "batch_p99_ms":
            batches = [sample for record in runs for sample in record.samples["batch_ms"]]
            return _p99(batches) if batches else None
        samples = [sample for record in runs for sample in record.samples.get(measure, ())]
        return Spread.of(samples) if samples else None

    def best_built_in(self, query: str, measure: str) -> str | None:
        """Spark's own provider with the best median."""
        figures = {
            name: found.median
            for name in self.providers(query)
            if COMPETITORS[name].built_in and (found := self.spread(query, name, measure)) is not None
        }
        best = max if MEASURES[measure].more_is_better else min
        return best(figures, key=lambda name: figures[name], default=None)

    def ratio(self, query: str, measure: str, provider: str = OURS.name) -> Spread | None:
        """Our figure relative to the best built-in's: of the medians, and lowest and highest of the rounds."""
        rival = self.best_built_in(query, measure)
        ours = self.spread(query, provider, measure)
        theirs = None if rival is None else self.spread(query, rival, measure)
        if rival is None or ours is None or theirs is None or not theirs.median:
            return None
        mine, others = self._by_round(query, provider, measure), self._by_round(query, rival, measure)
        rounds = [mine[number] / others[number] for number in mine.keys() & others.keys() if others[number]]
        total = ours.median / theirs.median
        return Spread(total, min(rounds, default=total), max(rounds, default=total), len(rounds))

    def mean_ratio(self, measure: str, provider: str = OURS.name) -> float | None:
        """Geometric mean of the ratios of all queries with state."""
        ratios = [
            found.median
            for query in self.queries()
            if QUERIES[query].stateful and (found := self.ratio(query, measure, provider)) is not None
        ]
        return statistics.geometric_mean(ratios) if ratios and min(ratios) > 0 else None

    def differing_answers(self) -> Iterator[str]:
        """Queries whose runs gave different answers; expected to be empty."""
        for query in self.queries():
            if QUERIES[query].by_clock:
                continue
            answers = {name: {str(one.answer) for one in self._of(query, name)} for name in self.providers(query)}
            if query in self._expected:
                answers[BATCH] = {str(self._expected[query])}
            if len(set().union(*answers.values())) > 1:
                yield f"{query}: the answers differ: {answers}"

    def _of(self, query: str, provider: str) -> list[Record]:
        return [record for record in self._records if (record.run.query, record.run.provider) == (query, provider)]

    def _by_round(self, query: str, provider: str, measure: str) -> dict[int, float]:
        found = {}
        for record in self._of(query, provider):
            samples = record.samples.get("batch_ms" if measure == "batch_p99_ms" else measure)
            if samples:
                one = _p99(samples) if measure == "batch_p99_ms" else Spread.of(samples)
                found[record.run.round] = one.median
        return found


def _p99(samples: Sequence[float]) -> Spread:
    place = sorted(samples)[min(len(samples) - 1, int(len(samples) * 0.99))]
    return Spread(place, place, place, len(samples))
