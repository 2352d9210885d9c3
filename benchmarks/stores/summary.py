"""From samples to figures: medians, spread, ratios, and verdicts on the targets."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.stores.figures import Samples
from benchmarks.stores.providers import OURS, PROVIDERS
from benchmarks.stores.results import Record
from benchmarks.stores.workloads import BEST_BUILT_IN, Target


@dataclass(frozen=True)
class Spread:
    """A figure and its spread.

    Args:
        median: median of all samples, or the ratio of two such medians.
        low: lower quartile of the samples, or the lowest ratio of a round.
        high: upper quartile of the samples, or the highest ratio of a round.
        count: number of samples or rounds.
    """

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread:
        """Median and quartiles of the samples."""
        if len(samples) == 1:
            return cls(samples[0], samples[0], samples[0], 1)
        low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
        return cls(median, low, high, len(samples))


@dataclass(frozen=True)
class Verdict:
    """Verdict on a target.

    Args:
        target: the target.
        measured: the ratio, or the figure for a target without a rival.
        rival: title of the divisor, or None.
    """

    target: Target
    measured: Spread
    rival: str | None

    @property
    def met(self) -> bool:
        """True if the measured value is within the limit."""
        return self.measured.median <= self.target.limit


class Summary:
    """Summary of a set of records."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._samples: dict[tuple[str, str], dict[int, Samples]] = defaultdict(dict)
        self._rows: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for record in records:
            workload = record.run.workload.name
            self._samples[workload, record.run.provider][record.run.round] = record.samples
            if record.run.provider == OURS.name or PROVIDERS[record.run.provider].built_in:
                self._rows[workload][record.run.provider].add(record.rows)

    def workloads(self) -> list[str]:
        """Workloads with results, in the order of the records."""
        return list(dict.fromkeys(workload for workload, _ in self._samples))

    def providers(self, workload: str) -> list[str]:
        """Providers with results, in the order of `PROVIDERS`."""
        return [name for name in PROVIDERS if (workload, name) in self._samples]

    def measures(self, workload: str) -> list[str]:
        """Measures taken for a workload."""
        found = (m for name in self.providers(workload) for run in self._runs(workload, name).values() for m in run)
        return list(dict.fromkeys(found))

    def figure(self, workload: str, provider: str, measure: str) -> Spread | None:
        """Spread over the samples of all rounds; None without samples."""
        samples = [sample for run in self._runs(workload, provider).values() for sample in run.get(measure, ())]
        return Spread.of(samples) if samples else None

    def best_built_in(self, workload: str, measure: str) -> str | None:
        """Built-in provider of Spark with the lowest median."""
        figures = {
            name: found.median
            for name in self.providers(workload)
            if PROVIDERS[name].built_in and (found := self.figure(workload, name, measure)) is not None
        }
        return min(figures, key=lambda name: figures[name], default=None)

    def ratio(self, measure: str, one: tuple[str, str], other: tuple[str, str]) -> Spread | None:
        """Quotient of two (workload, provider) pairs: ratio of the medians overall, and per round."""
        figures = self.figure(*one, measure), self.figure(*other, measure)
        if figures[0] is None or figures[1] is None or not figures[1].median:
            return None
        mine, theirs = (_medians(self._runs(*which), measure) for which in (one, other))
        rounds = [mine[number] / theirs[number] for number in mine.keys() & theirs.keys() if theirs[number]]
        total = figures[0].median / figures[1].median
        return Spread(total, min(rounds, default=total), max(rounds, default=total), len(rounds))

    def verdict(self, target: Target) -> Verdict | None:
        """Verdict on a target; None while a figure for it is missing."""
        ours = (target.workload, OURS.name)
        if target.against is None:
            figure = self.figure(*ours, target.measure)
            return None if figure is None else Verdict(target, figure, None)
        other = self._rival(target)
        ratio = None if other is None else self.ratio(target.measure, ours, other)
        if other is None or ratio is None:
            return None
        workload, provider = other
        return Verdict(target, ratio, f"ours in {workload}" if provider == OURS.name else PROVIDERS[provider].title)

    def allowed(self, target: Target) -> float | None:
        """The figure that just meets a target; None while a figure for it is missing."""
        if target.against is None:
            return target.limit
        other = self._rival(target)
        figure = None if other is None else self.figure(*other, target.measure)
        return None if figure is None else target.limit * figure.median

    def disagreements(self) -> Mapping[str, Mapping[str, list[int]]]:
        """Workloads whose runs end with different numbers of state rows, by provider; expected to be empty."""
        return {
            workload: {provider: sorted(rows) for provider, rows in found.items()}
            for workload, found in self._rows.items()
            if len(set().union(*found.values())) > 1
        }

    def _rival(self, target: Target) -> tuple[str, str] | None:
        """The (workload, provider) pair whose figure is the divisor."""
        if target.against not in (None, BEST_BUILT_IN):
            return target.against, OURS.name
        best = self.best_built_in(target.workload, target.measure)
        return None if best is None else (target.workload, best)

    def _runs(self, workload: str, provider: str) -> Mapping[int, Samples]:
        return self._samples.get((workload, provider), {})


def _medians(runs: Mapping[int, Samples], measure: str) -> dict[int, float]:
    return {number: statistics.median(run[measure]) for number, run in runs.items() if run.get(measure)}
