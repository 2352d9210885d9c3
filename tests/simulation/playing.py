"""Plays schedules and sums up what happened in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.simulation.world import Profile, World

_PARTICULAR = re.compile(r"[0-9a-f]{12,}|[0-9]+")
_ID = re.compile(r"\b([0-9a-f]{4})[0-9a-f]{28}\b")
_LONGEST = 160


@dataclass
class Played:
    """How a schedule went: what was counted, what happened, and what did not hold, if anything."""

    seed: int
    counts: Counter[str]
    log: list[str]
    failure: str | None


def play(seed: int, profile: Profile | None = None) -> Played:
    """Plays a schedule. An invariant that does not hold is a failure, and so is an error that nobody expects."""
    world, failure = World(seed, profile), None
    try:
        world.play()
    except Exception as e:
        failure = f"{type(e).__name__}: {e}"
    return Played(seed, world.counts, [_ID.sub(r"\1", line) for line in world.log], failure)


@dataclass
class Tally:
    """What happened in many schedules."""

    schedules: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: dict[int, str] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        self.schedules += other.schedules
        self.counts.update(other.counts)
        self.failures.update(other.failures)

    def kinds(self) -> dict[str, tuple[int, int]]:
        """For each kind of failure the first seed that shows it, and how many do."""
        kinds: dict[str, tuple[int, int]] = {}
        for seed, failure in sorted(self.failures.items()):
            kind = _PARTICULAR.sub("#", failure)[:_LONGEST]
            first, times = kinds.get(kind, (seed, 0))
            kinds[kind] = (first, times + 1)
        return kinds

    def table(self, seconds: float) -> str:
        """The sums, for people."""
        lines = [("schedules", self.schedules), ("failed", len(self.failures))]
        lines += sorted(self.counts.items())
        width = max(len(name) for name, _ in lines)
        rows = [f"{name:<{width}}  {number:>9}" for name, number in lines]
        return "\n".join([*rows, f"{'seconds':<{width}}  {seconds:>9.1f}"])


def play_many(seeds: Iterable[int]) -> Tally:
    """Plays schedules one after the other."""
    tally = Tally()
    for seed in seeds:
        played = play(seed)
        tally.schedules += 1
        tally.counts.update(played.counts)
        if played.failure is not None:
            tally.failures[seed] = played.failure
    return tally
