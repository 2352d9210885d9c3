"""Batches triggered recently."""

from __future__ import annotations

from spark_ckpt.coordinator.completion import RecentBatches
from spark_ckpt.location.orphans import MINIMUM_GRACE_SECONDS
from tests.support.clocks import NoClock


def test_a_batch_is_recent_for_a_while() -> None:
    clock = NoClock()
    recent = RecentBatches(clock)
    assert 1 not in recent
    recent.began(1)
    assert 1 in recent
    clock.now += int(MINIMUM_GRACE_SECONDS * 1000)
    assert 1 not in recent


def test_a_repetition_counts_from_the_first_time() -> None:
    clock = NoClock()
    recent = RecentBatches(clock)
    recent.began(1)
    clock.now += int(MINIMUM_GRACE_SECONDS * 1000)
    recent.began(1)
    assert 1 not in recent


def test_only_the_last_ones_are_remembered() -> None:
    recent = RecentBatches(NoClock())
    for version in range(1, 100):
        recent.began(version)
    assert [version for version in range(1, 100) if version in recent] == [96, 97, 98, 99]
