"""The runs of a benchmark and their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.stores.workloads import Workload


@dataclass(frozen=True)
class Run:
    """One JVM: one provider on one workload.

    Args:
        workload: the workload, already scaled.
        provider: name of the provider.
        round: number of the round, from 0.
    """

    workload: Workload
    provider: str
    round: int

    @property
    def name(self) -> str:
        """Short name, unique within a plan; used for files."""
        return f"{self.workload.name}.{self.provider}.{self.round}"

    @property
    def title(self) -> str:
        """Name for a progress bar."""
        return f"{self.workload.name}, {self.provider}, round {self.round}"


def turned(names: Sequence[str], by: int) -> Sequence[str]:
    """The same names, with a different one first in each round."""
    first = by % max(len(names), 1)
    return [*names[first:], *names[:first]]


def plan(workloads: Iterable[Workload], providers: Iterable[str], rounds: int) -> Iterator[Run]:
    """All runs: workload by workload, round by round, with a different provider first in each round.

    Compared runs are close together in time, and no provider gains from a machine that slows down or speeds up.
    """
    chosen = list(providers)
    for workload in workloads:
        taking_part = [name for name in workload.providers if name in chosen]
        for number in range(rounds):
            for provider in turned(taking_part, number):
                yield Run(workload, provider, number)
