"""Fixtures that all tests may use."""

from __future__ import annotations

import os
import random

import pytest

SEED_VARIABLE = "SPARK_CKPT_TEST_SEED"


@pytest.fixture
def seed() -> int:
    """A fresh seed, printed so that a failure can be run again by setting SPARK_CKPT_TEST_SEED."""
    chosen = int(os.environ.get(SEED_VARIABLE) or random.SystemRandom().randrange(2**32))
    print(f"{SEED_VARIABLE}={chosen}")
    return chosen


@pytest.fixture
def rng(seed: int) -> random.Random:
    """Random numbers from the printed seed."""
    return random.Random(seed)
