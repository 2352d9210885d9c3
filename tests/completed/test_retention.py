from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.completed import CheckpointRecord, select_subsumed
from tests.completed.records import record


def log(*versions: int) -> list[CheckpointRecord]:
    return [record(checkpoint_id, version) for checkpoint_id, version in enumerate(versions, 2)]


def dropped(retained: int, *versions: int) -> list[tuple[int, int]]:
    return [(checkpoint.id, checkpoint.version) for checkpoint in select_subsumed(log(*versions), retained)]


def test_drops_the_oldest_beyond_the_retained_number() -> None:
    assert dropped(2, 1, 2, 3, 4) == [(2, 1), (3, 2)]
    assert dropped(3, 1, 2, 3) == []
    assert dropped(3) == []


def test_keeps_the_one_before_the_newest_whatever_is_retained() -> None:
    assert dropped(1, 1, 2, 3) == [(2, 1)]


def test_drops_first_what_a_later_run_has_repeated() -> None:
    assert dropped(2, 1, 2, 2) == [(3, 2)]
    assert dropped(3, 4, 5, 6, 6) == [(4, 6)]


def test_keeps_the_version_before_the_newest_over_newer_ones_that_were_rolled_back() -> None:
    # Versions 6 and 7 belong to a run before a rollback to version 5.
    assert dropped(2, 5, 6, 7, 6) == [(3, 6), (4, 7)]


def test_keeps_what_is_young_beyond_the_retained_number() -> None:
    minutes = [replace(each, timestamp_ms=60_000 * each.id) for each in log(1, 2, 3, 4, 5)]  # at 2 to 6 minutes
    assert [each.id for each in select_subsumed(minutes, 2, 3 * 60_000)] == [2]
    assert [each.id for each in select_subsumed(minutes, 2, 60_000)] == [2, 3, 4]
    assert [each.id for each in select_subsumed(minutes, 4, 60_000)] == [2]
    assert select_subsumed(minutes, 2, 3_600_000) == []


def test_drops_young_ones_that_a_later_run_has_repeated() -> None:
    records = [replace(each, timestamp_ms=1000) for each in log(1, 2, 2, 3)]
    assert [each.id for each in select_subsumed(records, 2, 3_600_000)] == [3]


def test_a_clock_that_was_ahead_keeps_more_and_never_less() -> None:
    records = [replace(each, timestamp_ms=ms) for each, ms in zip(log(1, 2, 3, 4), (9000, 1, 2, 3), strict=True)]
    assert [each.id for each in select_subsumed(records, 2, 1)] == [3]
    assert [each.id for each in select_subsumed(records[1:], 2, 1)] == [3]


@given(st.lists(st.integers(1, 8), max_size=12), st.integers(1, 5))
def test_never_drops_the_newest_nor_the_newest_of_the_version_before(versions: list[int], retained: int) -> None:
    records = log(*versions)
    drop = select_subsumed(records, retained)
    assert len(set(drop)) == len(drop)
    left = [checkpoint for checkpoint in records if checkpoint not in drop]
    if records:
        newest = records[-1]
        assert newest in left
        before = [checkpoint for checkpoint in records if checkpoint.version == newest.version - 1]
        assert not before or before[-1] in left
        assert len(left) >= min(retained, len(records))
        assert len(left) <= max(2, retained)
