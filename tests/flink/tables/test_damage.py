"""Damaged checkpoints and savepoints of real Flink: rows, or an error of ours. `make fuzz` reads more."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.flink.tables.damaged_savepoints import damaged_copy, read


def check_some(rng: random.Random, number: int, path: Path) -> None:
    outcomes = set()
    for _ in range(number):
        outcomes.add(read(damaged_copy(rng, path / "copy")))
        shutil.rmtree(path / "copy")
    assert outcomes == {True, False}


def test_damage_is_read_or_refused(rng: random.Random, tmp_path: Path) -> None:
    check_some(rng, 50, tmp_path)


@pytest.mark.long
def test_much_damage_is_read_or_refused(rng: random.Random, tmp_path: Path) -> None:
    check_some(rng, 2000, tmp_path)
