"""Simulates a power loss at every point of many scripts. Run it with `make power-loss`."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from tests.power.script import play


def main() -> int:
    """Judge the disks that a power loss may leave after each operation of a coordinator on a local directory."""
    parser = argparse.ArgumentParser(prog="python -m tests.power", description=main.__doc__)
    parser.add_argument("--seed", type=int, help="play this script only, and all its disks")
    parser.add_argument("--seeds", type=int, default=20, help="how many scripts")
    parser.add_argument("--disks", type=int, default=500, help="how many disks of each, drawn from all")
    parser.add_argument("--removals-last", action="store_true", help="as on a file system that keeps their order")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    seeds = range(arguments.seeds) if arguments.seed is None else [arguments.seed]
    wrong = disks = 0
    began = time.monotonic()
    for seed in seeds:
        played = play(
            seed, disks=None if arguments.seed is not None else arguments.disks, removals_last=arguments.removals_last
        )
        wrong, disks = wrong + len(played.lost), disks + played.disks
        print(f"seed {seed}: {played.operations} operations, {played.disks} disks, {len(played.lost)} wrong")
        for number, lost, what in played.lost[:5]:
            print(f"    after operation {number}, {lost}: {what}")
    print(f"{len(seeds)} scripts, {disks} disks, {time.monotonic() - began:.0f} s: {wrong} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
