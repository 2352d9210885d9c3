"""A short run of `make endurance`, judged by the figures that are counts; and tests of the judge itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.endurance.samples import FIGURES
from tests.endurance.short import run_short
from tests.endurance.verdicts import FEWEST, judge

STEADY = dict.fromkeys(FIGURES, 100.0)


def test_what_stays_is_flat() -> None:
    noisy = [STEADY | {"heap": 100.0 + 5 * (number % 2)} for number in range(30)]
    assert all(verdict.is_flat for verdict in judge("made up", noisy))


def test_what_fills_up_first_is_flat() -> None:
    filled = [STEADY | {"heap": min(100.0, 10.0 * number)} for number in range(30)]
    assert all(verdict.is_flat for verdict in judge("made up", filled))


@pytest.mark.parametrize("key", FIGURES)
def test_what_grows_is_found(key: str) -> None:
    grows = [STEADY | {key: 100.0 + 10 * number} for number in range(30)]
    assert [verdict.key for verdict in judge("made up", grows) if not verdict.is_flat] == [key]


def test_memory_of_a_batch_that_is_under_way_is_no_leak() -> None:
    busy = [STEADY | {"heap": 150.0 if number >= 20 and number % 2 else 100.0} for number in range(30)]
    assert all(verdict.is_flat for verdict in judge("made up", busy))


def test_one_outlier_is_none() -> None:
    samples = [dict(STEADY) for _ in range(30)]
    samples[-1]["driver_threads"] = 1000.0
    assert all(verdict.is_flat for verdict in judge("made up", samples))


def test_too_few_samples_say_nothing() -> None:
    with pytest.raises(ValueError, match="too few"):
        judge("made up", [STEADY] * (FEWEST - 1))
    with pytest.raises(ValueError, match="was measured 0 times"):
        judge("made up", [{key: value for key, value in STEADY.items() if key != "chain"}] * FEWEST)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long
def test_a_short_run_uses_no_more_and_more(tmp_path: Path) -> None:
    """Threads, descriptors, files and chains do not grow. A separate driver, so that no other test adds to them."""
    wrong = run_short(tmp_path)
    assert not wrong, "\n".join(wrong)
