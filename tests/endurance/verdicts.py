"""Judges a series of samples for growth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tests.endurance.samples import FIGURES, Figure, Sample

FEWEST = 6
"""Minimum number of samples for meaningful thirds."""


@dataclass(frozen=True)
class Verdict:
    """Verdict on one figure.

    Args:
        phase: name of the phase.
        key: key of the figure.
        first: the first sample.
        middle: median of the middle third; for memory, its lower quartile.
        last: median of the last third; for memory, its lower quartile.
        most: the highest sample.
        is_flat: whether the last third exceeds the middle one by no more than the figure's slack.
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
        """The measured figure."""
        return FIGURES[self.key]


def judge(phase: str, samples: Sequence[Sample]) -> list[Verdict]:
    """Compares the last third of a run with the middle third; the first third fills caches and pools.

    Medians tolerate outliers and need no assumption about the noise. A memory sample can only be too high, by the usage
    of a batch in progress, whereas a leak also shows in the lowest samples.

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
