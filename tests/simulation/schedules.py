"""Plays schedules and summarizes their events."""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.simulation.profile import Profile
from tests.simulation.world import World

_PARTICULAR = re.compile(r"[0-9a-f]{12,}|[0-9]+")
_ID = re.compile(r"\b([0-9a-f]{4})[0-9a-f]{28}\b")
_MAX_FAILURE = 160


@dataclass
class Played:
    """Result of a schedule: counts, trace, and the violated invariant, if any."""

    seed: int
    counts: Counter[str]
    log: list[str]
    failure: str | None


def play(seed: int, profile: Profile | None = None) -> Played:
    """Plays a schedule. A violated invariant is a failure, and so is any unexpected error."""
    world, failure = World(seed, profile), None
    try:
        world.play()
    except Exception as e:
        failure = f"{type(e).__name__}: {e}"
    if world.checks.first is not None:
        failure = f"{type(world.checks.first).__name__}: {world.checks.first}"
    return Played(seed, world.counts, [_ID.sub(r"\1", line) for line in world.log], failure)


@dataclass
class Tally:
    """Totals over many schedules."""

    schedules: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: dict[int, str] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        self.schedules += other.schedules
        self.counts.update(other.counts)
        self.failures.update(other.failures)

    def kinds(self) -> list[tuple[str, list[int]]]:
        """Each kind of failure with the seeds that show it, the most frequent first."""
        kinds: dict[str, list[int]] = {}
        for seed, failure in sorted(self.failures.items()):
            kinds.setdefault(_PARTICULAR.sub("#", failure)[:_MAX_FAILURE], []).append(seed)
        return sorted(kinds.items(), key=lambda item: -len(item[1]))


def play_many(seeds: Iterable[int]) -> Tally:
    """Plays schedules one after the other."""
    tally = Tally()
    with _garbage_is_collected_seldom():
        for seed in seeds:
            played = play(seed)
            tally.schedules += 1
            tally.counts.update(played.counts)
            if played.failure is not None:
                tally.failures[seed] = played.failure
    return tally


@contextmanager
def _garbage_is_collected_seldom() -> Iterator[None]:
    """Reduces Python's garbage collection: a world's many cycles live as long as it does, and the search for others
    takes a tenth of the time."""
    thresholds = gc.get_threshold()
    gc.set_threshold(100_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
