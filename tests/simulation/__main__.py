"""Plays one schedule and prints its trace, or very many on all cores and counts what happened in them."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time

from tests.simulation.playing import Tally, play, play_many

CHUNK = 50


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="play this schedule only")
    parser.add_argument("--trace", action="store_true", help="with --seed: print all that happens in it")
    parser.add_argument("--first", type=int, default=0, help="the first of many seeds")
    parser.add_argument("--seeds", type=int, default=2000, help="how many schedules")
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count(), help="processes")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        return _one(arguments.seed, arguments.trace)
    return _many(arguments.first, arguments.seeds, arguments.workers)


def _one(seed: int, trace: bool) -> int:
    played = play(seed)
    if trace:
        print("\n".join(played.log))
    print(played.failure or f"seed {seed}: every invariant holds")
    return played.failure is not None


def _many(first: int, seeds: int, workers: int) -> int:
    started, tally = time.monotonic(), Tally()
    chunks = [range(start, min(start + CHUNK, first + seeds)) for start in range(first, first + seeds, CHUNK)]
    with multiprocessing.Pool(workers) as pool:
        for part in pool.imap_unordered(play_many, chunks):
            tally.add(part)
            if sys.stderr.isatty():
                print(
                    f"\r{tally.schedules} of {seeds} schedules, {len(tally.failures)} failed", end="", file=sys.stderr
                )
    print(tally.table(time.monotonic() - started))
    for failure, (seed, times) in sorted(tally.kinds().items(), key=lambda item: -item[1][1]):
        print(f"{times} times, first with --seed {seed}: {failure}")
    return bool(tally.failures)


if __name__ == "__main__":
    sys.exit(main())
