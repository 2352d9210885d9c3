"""Race of many clients for the same files: does a storage let one of them win, and only one?"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from spark_ckpt.checkpoint.layout import CKPT
from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.progress import Progress
from spark_ckpt.storage import CreateOutcome, Storage
from spark_ckpt.storage.probing import probe_names

CLIENTS = 16
ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Probe:
    """Result of a race.

    Args:
        location: the location.
        clients: creates of each file at once.
        rounds: number of files.
        won_by_one: files that one create has won.
        won_by_several: files that several creates have won; 0 on a storage that fences drivers.
        won_by_none: files that no create is known to have won.
        most_winners: creates that have won one file, at most.
        unknown: creates without an answer that tells.
        changed: files with other bytes than those of a winner; 0 on a storage that fences drivers.
        median_ms: median duration of a create, in milliseconds.
        slowest_ms: duration of the slowest one.
    """

    location: str
    clients: int
    rounds: int
    won_by_one: int
    won_by_several: int
    won_by_none: int
    most_winners: int
    unknown: int
    changed: int
    median_ms: float
    slowest_ms: float

    @property
    def is_exclusive(self) -> bool:
        """True if no file had several winners or other bytes than its winner's."""
        return not (self.won_by_several or self.changed)


def probe(
    storage: Storage,
    clients: int = CLIENTS,
    rounds: int = ROUNDS,
    progress: Progress = lambda done, of: None,
    clock: Clock | None = None,
) -> Probe:
    """Lets clients create the same files at the same time, and deletes the files.

    A race finds a storage that lets several win by chance: run more rounds, and from several machines at once. The
    probe of a start is run first, which finds some of them each time.

    Args:
        storage: storage of the location.
        clients: creates of each file at once.
        rounds: number of files.
        progress: called with the number of rounds done and the total.
        clock: source of time.

    Raises:
        ExclusiveCreateUnsupportedError: the storage has no exclusive create, or fails the probe of a start.
        StorageError: files cannot be created, read or deleted.
    """
    clock = clock or SystemClock()
    storage.probe(CKPT)
    names = probe_names(CKPT, rounds)
    races = []
    try:
        with ThreadPoolExecutor(clients, "spark-ckpt-probe") as threads:
            for number, name in enumerate(names, 1):
                races.append(_race(storage, name, clients, threads, clock))
                progress(number, rounds)
    finally:
        storage.delete_all(names)
    winners = [race.winners for race in races]
    durations = sorted(duration for race in races for duration in race.durations_ms)
    return Probe(
        storage.location,
        clients,
        rounds,
        winners.count(1),
        sum(number > 1 for number in winners),
        winners.count(0),
        max(winners, default=0),
        sum(race.unknown for race in races),
        sum(race.is_changed for race in races),
        durations[len(durations) // 2] if durations else 0.0,
        durations[-1] if durations else 0.0,
    )


@dataclass(frozen=True, slots=True)
class _Race:
    winners: int
    unknown: int
    is_changed: bool
    durations_ms: tuple[float, ...]


def _race(storage: Storage, name: str, clients: int, threads: ThreadPoolExecutor, clock: Clock) -> _Race:
    start = threading.Barrier(clients)
    contents = [b"%d " % number * 100 for number in range(clients)]

    def create(content: bytes) -> tuple[CreateOutcome, float]:
        start.wait()
        begun = clock.monotonic()
        outcome = storage.create_exclusive(name, content).outcome
        return outcome, (clock.monotonic() - begun) * 1000

    results = list(threads.map(create, contents))
    won = [content for content, (outcome, _) in zip(contents, results, strict=True) if outcome is CreateOutcome.WON]
    unknown = sum(outcome is CreateOutcome.UNKNOWN for outcome, _ in results)
    return _Race(
        len(won), unknown, bool(won) and _content(storage, name) not in won, tuple(duration for _, duration in results)
    )


def _content(storage: Storage, name: str) -> bytes | None:
    try:
        return storage.read(name)
    except StateFileNotFoundError:
        return None
