"""`python -m tests.tiers`, or `make tiers`: what merges and bases write over many batches, as a table for the docs."""

from __future__ import annotations

import argparse
import random
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from tests.tiers.model import Failures, Figures, Workload, World, uniform, zipf

CHANGES = 10_000
KEYS = (1, 8, 32, 100, 1000)
"""Millions of keys."""

FAULTY = Failures(wait=3, lost=0.02, failed=0.005, stall=0.02)
HEADER = (
    "| keys | changes | write amplification | read amplification | segments of a chain | files | storage |\n"
    "|---|---|---|---|---|---|---|"
)


class Case(NamedTuple):
    """One row of the table."""

    millions: int
    changes: str
    batches: int

    def figures(self) -> Figures:
        """Figures after a warm-up of more than one base."""
        keys = self.millions * 1_000_000
        distinct = zipf(keys, CHANGES) if self.changes == "Zipf 0.99" else uniform(keys, CHANGES)
        failures = FAULTY if "failures" in self.changes else Failures()
        world = World(Workload(keys, distinct), failures=failures, rng=random.Random(1))
        return world.run(self.batches, 5 * keys // CHANGES // 4)

    def row(self) -> str:
        """The row, in Markdown."""
        found = self.figures()
        numbers = (
            f"{found.write_amplification:.1f}",
            f"{found.mean_read:.2f}, at most {found.most_read:.2f}",
            f"{found.mean_chain:.0f}, at most {found.longest_chain}",
            f"{found.files / found.batches:.0f}, at most {found.most_files}",
            f"{found.mean_stored:.2f}, at most {found.most_stored:.2f}",
        )
        return f"| {self.millions} M | {self.changes} | {' | '.join(numbers)} |"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.tiers", description=main.__doc__)
    parser.add_argument("--batches", type=int, default=100_000)
    batches = parser.parse_args().batches
    kinds = ("uniform", "Zipf 0.99", "uniform, with failures")
    print(HEADER)
    with ProcessPoolExecutor(2) as pool:
        for row in pool.map(Case.row, [Case(millions, kind, batches) for millions in KEYS for kind in kinds]):
            print(row, flush=True)


if __name__ == "__main__":
    main()
