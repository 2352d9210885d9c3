"""Simulates the checkpoint lifecycle under many schedules, or replays one of them. Run it with `make simulate`."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from tests.simulation.schedules import Tally, play, play_many

CHUNK = 50
MAX_SEEDS_SHOWN = 10


def main() -> int:
    """Play schedules of the life of checkpoints, in which everything fails that can, and check every invariant."""
    arguments = _arguments()
    if arguments.seed is not None:
        return _one(arguments.seed, arguments.trace)
    return _many(arguments.first, arguments.seeds, arguments.workers)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=main.__doc__)
    parser.add_argument("--seed", type=int, help="play this schedule only")
    parser.add_argument("--trace", action="store_true", help="with --seed: print all that happens in it")
    parser.add_argument("--first", type=int, default=0, help="the first of many seeds")
    parser.add_argument("--seeds", type=int, default=2000, help="how many schedules")
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count(), help="processes")
    return parser.parse_args()


def _one(seed: int, trace: bool) -> int:
    played = play(seed)
    if trace:
        print("\n".join(played.log))
    print(played.failure or f"seed {seed}: every invariant holds")
    return played.failure is not None


def _many(first: int, seeds: int, workers: int) -> int:
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    began, tally = time.monotonic(), Tally()
    chunks = [range(start, min(start + CHUNK, first + seeds)) for start in range(first, first + seeds, CHUNK)]
    columns = TextColumn("schedules"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    with (
        multiprocessing.Pool(workers) as pool,
        Progress(*columns, TextColumn("{task.description}"), console=console, disable=not console.is_terminal) as bar,
    ):
        task = bar.add_task("", total=seeds)
        for part in pool.imap_unordered(play_many, chunks):
            tally.add(part)
            for seed, failure in part.failures.items():  # at once: all of them take hours
                console.print(f"seed {seed}: {failure}", markup=False)
            failed = f"[bold red]{len(tally.failures)} failed[/]" if tally.failures else ""
            bar.update(task, completed=tally.schedules, description=failed)
            if (
                not console.is_terminal
                and tally.schedules * 10 // seeds > (tally.schedules - part.schedules) * 10 // seeds
            ):
                console.print(f"{tally.schedules} of {seeds} schedules, {time.monotonic() - began:.0f} s {failed}")
    _show(console, tally)
    result = f"[bold red]{len(tally.failures)} failed[/]" if tally.failures else "[bold green]every invariant holds[/]"
    console.print(f"{tally.schedules} schedules from seed {first} on, {time.monotonic() - began:.0f} s: {result}")
    return bool(tally.failures)


def _show(console: Console, tally: Tally) -> None:
    happened = Table("what happened", title_justify="left")
    happened.add_column("times", justify="right")
    for what, times in sorted(tally.counts.items()):
        happened.add_row(what, f"{times:,}")
    console.print(happened)
    for failure, seeds in tally.kinds():
        named = ", ".join(map(str, seeds[:MAX_SEEDS_SHOWN])) + (", ..." if len(seeds) > MAX_SEEDS_SHOWN else "")
        console.print(f"[bold red]{len(seeds)} times[/], with seeds {named}:")
        console.print(f"    {failure}", markup=False)
        console.print(f"    play it again: make simulate SEED={seeds[0]}")


if __name__ == "__main__":
    sys.exit(main())
