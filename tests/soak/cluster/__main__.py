"""The soak on a cluster with large state. Run it with `make soak-cluster`."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import time
from contextlib import nullcontext
from pathlib import Path

from benchmarks.demo.session import REPOSITORY
from tests.soak.cluster.run import ClusterSoak, Scale
from tests.soak.cluster.slow_threads import SlowThreads
from tests.support.standalone_cluster import StandaloneCluster
from tests.support.uncaught import all_caught

FEW = 4
"""Disturbances of the short form: one of each kind."""

LARGE = Scale(
    keys=1_500_000,
    rows=60_000,
    other_rows=20_000,
    width=600,
    budget="50%",
    memory="2500m",
    max_deltas=8,
    settle_every=8,
)
SHORT = Scale(
    keys=200_000, rows=10_000, other_rows=10_000, width=640, budget="none", memory="1g", max_deltas=8, settle_every=4
)


def main() -> int:
    """Disturbs queries with large state on a cluster, and checks executors, heap, files and every row."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # leave no process behind
    work = arguments.work.resolve()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    screen = os.fdopen(os.dup(1), "w")
    _keep_output(work / "driver.log")
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {line}", file=screen, flush=True)

    say(f"seed {arguments.seed}")
    scale = SHORT if arguments.short else LARGE
    count: int = arguments.disturbances or (FEW if arguments.short else 0)
    seconds: float = arguments.minutes * 60

    def continues(disturbances: int) -> bool:
        return disturbances < count if count else time.monotonic() - began < seconds

    try:
        with (
            all_caught(work / "uncaught"),
            StandaloneCluster(work / "cluster", memory=scale.memory) as cluster,
            SlowThreads(cluster.executors) if arguments.short else nullcontext() as slow,
        ):
            soak = ClusterSoak(
                work, cluster, scale, random.Random(arguments.seed), say, slow.paused if slow else nullcontext
            )
            try:
                tally = soak.run(continues)
            finally:
                soak.close()
    except AssertionError as error:  # an uncaught error, or a query that stands still
        say(str(error))
        return 1
    for violation in tally.violations:
        say(violation)
    say(f"{dict(tally.disturbances)}, {tally.kills} kills, in progress at stops: {dict(tally.met)}")
    result = "NOT in order" if tally.violations else "equal, to the row"
    say(f"{tally.rows} rows, {tally.settled} looks at the heap, seed {arguments.seed}: {result}")
    return 1 if tally.violations else 0


def _keep_output(file: Path) -> None:
    """Sends the standard output and error of this process and its JVM to a file, where exceptions are looked for."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.cluster", description=main.__doc__)
    parser.add_argument("--work", type=Path, default=REPOSITORY / "build" / "soak-cluster", help="is emptied first")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--disturbances", type=int, help="number of disturbances, instead of a time")
    parser.add_argument("--short", action="store_true", help="the form of the tests: a small state, a minute")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
