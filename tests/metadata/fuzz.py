"""Damages metadata and state streams at random for a given time, and stops at the first wrong outcome.

python -m tests.metadata.fuzz --seconds 600

Metadata must be read or refused by the rules of `tests.metadata.invariants`, and as by Flink's own loader. A stream
must be read, or refused with an error that names the position. A checkpoint or savepoint with a damaged file must be
read as tables, or refused with an error of ours.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tests.flink.streams.cases import CASES
from tests.flink.tables import damaged_savepoints as tables
from tests.flink.tables.damaged_savepoints import damaged_copy
from tests.flink.tables.planner_savepoints import savepoints
from tests.metadata.deviations import outcomes, unexplained
from tests.metadata.invariants import judge, judge_memory
from tests.metadata.mutations import mutated, seeds
from tests.support.flink_check import class_path

ROUND = 2000
"""Number of files per call of Flink, because each call needs a JVM."""


class Fuzzing:
    """Fuzzer that runs rounds of random damage.

    Args:
        seed: seed of the random choices; round n of a seed is always the same.
        found: directory of files with a wrong result.
    """

    def __init__(self, seed: int, found: Path) -> None:
        self.seed = seed
        self.found = found
        self.counts: Counter[str] = Counter()
        self._undamaged = seeds()
        self._savepoints = [*tables.VECTORS, *(savepoint.directory for savepoint in savepoints())]

    def round(self, number: int) -> str | None:
        """Runs a round; returns a description of the first wrong result, or None."""
        rng = random.Random(f"{self.seed}/{number}")
        contents = [mutated(rng, rng.choice(self._undamaged), self._undamaged) for _ in range(ROUND)]
        return next(self._wrong(rng, contents), None)

    def _wrong(self, rng: random.Random, contents: list[bytes]) -> Iterator[str]:
        for content in contents:
            try:
                read = judge(content) is not None
                judge_memory(content)
            except Exception as error:  # every exception here is a bug
                yield self._kept("metadata", content, f"{type(error).__name__}: {error}")
            self.counts["metadata, still read" if read else "metadata, refused"] += 1
        for content, reason in against_flink(contents):
            yield self._kept("metadata", content, reason)
        self.counts["metadata, judged by Flink"] += len(contents)
        for _ in range(ROUND // 4):
            case = rng.choice(CASES)
            content = mutated(rng, case.content, [case.content])
            try:
                read = case.damaged(content) is not None
            except Exception as error:
                yield self._kept("stream", content, f"{case}: {type(error).__name__}: {error}")
            self.counts["streams, still read" if read else "streams, refused"] += 1
        yield from self._wrong_tables(rng)

    def _wrong_tables(self, rng: random.Random) -> Iterator[str]:
        for _ in range(ROUND // 20):
            with tempfile.TemporaryDirectory() as place:
                copy = damaged_copy(rng, Path(place) / "copy", self._savepoints)
                try:
                    read = tables.read(copy)
                except Exception as error:
                    kept = self.found / f"tables-{len(list(self.found.glob('tables-*')))}"
                    shutil.copytree(copy, kept)
                    yield f"{kept}: {type(error).__name__}: {error}"
                self.counts["tables, still read" if read else "tables, refused"] += 1

    def _kept(self, kind: str, content: bytes, reason: str) -> str:
        self.found.mkdir(parents=True, exist_ok=True)
        path = self.found / f"{kind}-{len(list(self.found.iterdir()))}"
        path.write_bytes(content)
        return f"{path}: {reason}"


def against_flink(contents: list[bytes]) -> Iterator[tuple[bytes, str]]:
    """Contents on which Flink's verdict differs without an intended deviation, with the differences."""
    with tempfile.TemporaryDirectory() as directory:
        for outcome in outcomes(Path(directory), contents):
            if differences := unexplained(outcome):
                yield outcome.content, "; ".join(differences)


def main() -> int:
    """Runs rounds until the time is over or a result is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.metadata.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--round", type=int, default=0, help="where to begin")
    parser.add_argument("--found", type=Path, default=Path("build/fuzz"), help="where what goes wrong is kept")
    arguments = parser.parse_args()
    console = Console(highlight=False)
    console.print(f"seed {arguments.seed}, {arguments.seconds:.0f} seconds")
    class_path()
    fuzzing, number, wrong = Fuzzing(arguments.seed, arguments.found), arguments.round, None
    end = time.monotonic() + arguments.seconds
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("building the check", total=None)
        while wrong is None and time.monotonic() < end:
            progress.update(task, description=f"round {number}: {fuzzing.counts.total():,} judgements")
            if (wrong := fuzzing.round(number)) is None:
                number += 1
    for what, count in sorted(fuzzing.counts.items()):
        console.print(f"{count:>12,}  {what}")
    if wrong is None:
        console.print("every one was read or refused as it has to be")
        return 0
    console.print(f"wrong in round {number}, to be played again with --seed {arguments.seed} --round {number}:")
    console.print(wrong, markup=False)
    return 1


if __name__ == "__main__":
    sys.exit(main())
