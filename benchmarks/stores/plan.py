"""Which runs there are, in which order, and which of them are still to be done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchmarks.stores.workloads import Workload


@dataclass(frozen=True)
class Run:
    """One JVM: one provider on one workload.

    Args:
        workload: what is measured, as it is scaled.
        provider: name of the provider.
        round: number of the turn, from 0.
    """

    workload: Workload
    provider: str
    round: int

    @property
    def name(self) -> str:
        """Short and unlike that of every other run of a plan; for files."""
        return f"{self.workload.name}.{self.provider}.{self.round}"


def plan(workloads: Iterable[Workload], providers: Iterable[str], rounds: int) -> Iterator[Run]:
    """All runs: workload by workload, and within it round by round, each round with another provider first.

    What is compared lies close together in time, and a machine that gets slower or faster favours nobody.
    """
    chosen = list(providers)
    for workload in workloads:
        taking_part = [name for name in workload.providers if name in chosen]
        for number in range(rounds):
            turn = number % max(len(taking_part), 1)
            for provider in taking_part[turn:] + taking_part[:turn]:
                yield Run(workload, provider, number)
