"""Tests of the simulation: it must notice mistakes in the real code by the invariant that they break."""

from __future__ import annotations

import re

import pytest

from tests.simulation.mutations import MUTATIONS
from tests.simulation.schedules import play

MAX_SEEDS = 2000
"""Maximum number of schedules to find a mistake."""


@pytest.mark.parametrize("name", MUTATIONS)
def test_an_invariant_finds(name: str) -> None:
    mutation = MUTATIONS[name]
    sign = re.compile(f"Violation: .*({mutation.sign})", re.DOTALL)
    with mutation.make():
        failures = (play(seed, mutation.profile).failure or "" for seed in range(MAX_SEEDS))
        found = next((seed for seed, failure in enumerate(failures) if sign.match(failure)), None)
    assert found is not None
    assert play(found, mutation.profile).failure is None  # the same schedule passes without the mistake
