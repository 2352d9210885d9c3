"""Whether a series of samples is flat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tests.endurance.samples import FIGURES, Figure, Sample

FEWEST = 6
"""Samples, below which thirds say nothing."""


@dataclass(frozen=True)
class Verdict:
    """What became of one figure.

    Args:
        phase: which run.
        key: of the figure.
        first: the first sample.
        middle: of the middle third the median, or of memory the lower quartile.
        last: the same of the last third.
        most: the highest sample.
        is_flat: whether the last third uses no more than the middle one, but for the figure's slack.
    """

    phase: str
    key: str
    first: float
    middle: float
    last: float
    most: float
    is_flat: bool

    @property
    def figure(self) -> Figure:
        """What was measured."""
        return FIGURES[self.key]


def judge(phase: str, samples: Sequence[Sample]) -> list[Verdict]:
    """Compares the last third of a run with its middle third: the first one fills caches and pools.

    Medians bear single outliers, and need no assumption about the noise. A sample of memory can only be too high, by
    what a batch uses that is under way; what leaks is in the lowest ones, too.

    Raises:
        ValueError: there are too few samples.
    """
    if len(samples) < FEWEST:
        raise ValueError(f"{phase}: {len(samples)} samples are too few; at least {FEWEST} are needed")
    verdicts = []
    for key, figure in FIGURES.items():
        values = [sample[key] for sample in samples if key in sample]
        if len(values) < FEWEST:
            raise ValueError(f"{phase}: '{figure.name}' was measured {len(values)} times of {len(samples)}")
        third = len(values) // 3
        typical = median if figure.is_exact else _lower_quartile
        middle, last = typical(values[third : 2 * third]), typical(values[-third:])
        is_flat = last <= middle + max(figure.slack, figure.ratio * middle)
        verdicts.append(Verdict(phase, key, values[0], middle, last, max(values), is_flat))
    return verdicts


def _lower_quartile(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 4]
