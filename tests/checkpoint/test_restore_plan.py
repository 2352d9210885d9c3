"""Tests of the plans by which stores load their state."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.checkpoint.restore_plan import (
    AT_ONCE,
    CHECKED_ROWS,
    COMPRESSED_ROW_COST,
    MAX_LOOKUP_SHARE,
    MIN_LAZY_ROWS,
    REST_AFTER_MS,
    ROW_COST,
    RestorePlan,
    restore_plan,
)
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.format.segment_flags import COMPRESSED, ORDERED
from spark_ckpt.format.segment_ref import Blocks, SegmentRef

LAZY, EAGER = CheckpointConfig(), CheckpointConfig(restore="eager")
ROWS = 1_000_000
GROUPS = 64
BASE_BYTES = 40_000_000
BY_KEY_GROUP = RestorePlan("by_key_group")
AT_FIRST_ACCESS = RestorePlan("by_row", rest_after_ms=REST_AFTER_MS)
BY_ROW = RestorePlan(
    "by_row", ROWS // MAX_LOOKUP_SHARE, ROW_COST, ROWS // GROUPS // CHECKED_ROWS, rest_after_ms=REST_AFTER_MS
)


def segment(first_version: int, version: int, size: int, flags: int = 0) -> SegmentRef:
    groups = np.arange(GROUPS, dtype=np.uint32)
    blocks = Blocks(groups, groups.astype(np.int64) * 100)
    return SegmentRef(first_version, version, blocks, size, "shared/x", size, flags=flags)


def base(version: int = 1, size: int = BASE_BYTES, flags: int = ORDERED.bit) -> SegmentRef:
    return segment(0, version, size, flags)


def planned(
    *entries: SegmentRef,
    rows: int = ROWS,
    config: CheckpointConfig = LAZY,
    exact: bool = True,
    due: bool = False,
    slow: bool = False,
) -> RestorePlan:
    return restore_plan(
        Chain("0" * 32, rows, entries), config, has_exact_rows=exact, is_base_due=due, requests_are_slow=slow
    )


def test_rows_of_a_large_state_with_few_changes_are_looked_up() -> None:
    assert planned(base()) == BY_ROW
    assert planned(base(), segment(2, 2, 1000), segment(3, 40, 400_000)) == BY_ROW


def test_lookups_in_a_compressed_base_cost_more() -> None:
    plan = planned(base(flags=ORDERED.bit | COMPRESSED.bit))
    assert plan == dataclasses.replace(BY_ROW, row_cost=COMPRESSED_ROW_COST)
    assert planned(base(), segment(2, 2, 1000, COMPRESSED.bit)) == BY_ROW


def test_the_changes_of_the_first_batch_take_the_place_of_a_base() -> None:
    assert planned(segment(1, 1, BASE_BYTES, ORDERED.bit), segment(2, 2, 1000)) == BY_ROW


@pytest.mark.parametrize("slow", [False, True])
def test_everything_is_loaded_before_the_batch_where_lookups_cannot_help(slow: bool) -> None:
    at_once = AT_ONCE if slow else BY_KEY_GROUP
    assert planned(base(), config=EAGER, slow=slow) == at_once
    assert planned(base(), due=True, slow=slow) == at_once
    assert planned(base(), rows=MIN_LAZY_ROWS - 1, slow=slow) == at_once
    assert planned(rows=0, slow=slow) == at_once
    assert planned(base(), rows=MIN_LAZY_ROWS, slow=slow).mode == "by_row"


@pytest.mark.parametrize("config", [LAZY, EAGER])
def test_estimated_rows_are_loaded_by_segment(config: CheckpointConfig) -> None:
    """A load by key group needs their number, and so does a batch that has not loaded them."""
    assert planned(base(), config=config, exact=False) == AT_ONCE


def test_the_first_access_loads_everything_from_a_slow_storage() -> None:
    assert planned(base(), slow=True) == AT_FIRST_ACCESS


def test_batches_are_compared_with_the_rows_of_a_compressed_base() -> None:
    """Small blocks compress less, so their bytes have fewer rows."""
    compressed = base(size=BASE_BYTES // 3, flags=ORDERED.bit | COMPRESSED.bit)
    light, heavy = BASE_BYTES // 3 * 3 // 256, BASE_BYTES // 3 * 3 // 256 + 1
    assert planned(compressed, segment(2, 2, light, COMPRESSED.bit)).budget
    assert planned(compressed, segment(2, 2, heavy, COMPRESSED.bit)) == AT_FIRST_ACCESS


@pytest.mark.parametrize("flags", [0, COMPRESSED.bit])
def test_the_first_access_loads_everything_from_a_base_that_cannot_be_searched(flags: int) -> None:
    assert planned(base(flags=flags)) == AT_FIRST_ACCESS


def test_the_first_access_loads_everything_from_several_bases() -> None:
    assert planned(base(), base(size=1000)) == AT_FIRST_ACCESS
    assert planned(base(), base(size=1000, flags=0)) == AT_FIRST_ACCESS
    assert planned(base(), segment(2, 2, 1000, ORDERED.bit)) == AT_FIRST_ACCESS


def test_the_first_access_loads_everything_after_a_heavy_batch() -> None:
    light, heavy = BASE_BYTES // 256, BASE_BYTES // 256 + 1
    assert planned(base(), segment(2, 2, light)) == BY_ROW
    assert planned(base(), segment(2, 2, heavy)) == AT_FIRST_ACCESS
    # Of the last four deltas, by the batches whose changes each has.
    newer = [segment(n, n, 10) for n in (4, 5, 6)]
    assert planned(base(), segment(2, 3, 2 * light), *newer) == BY_ROW
    assert planned(base(), segment(2, 3, 2 * heavy), *newer) == AT_FIRST_ACCESS
    assert planned(base(), segment(2, 3, 2 * heavy), *newer, segment(7, 7, 10)) == BY_ROW


def test_the_first_access_loads_everything_if_the_deltas_weigh_more_than_the_base() -> None:
    def many(size: int) -> list[SegmentRef]:
        return [segment(2 + 1000 * n, 1001 + 1000 * n, size) for n in range(4)]

    assert planned(base(), *many(BASE_BYTES // 4)) == BY_ROW
    assert planned(base(), *many(BASE_BYTES // 4 + 1)) == AT_FIRST_ACCESS


@given(st.integers(0, 10**12), st.lists(st.integers(0, 10**10), max_size=6), st.booleans(), st.booleans())
def test_lookups_of_any_state_end_before_they_cost_a_share_of_a_load(
    rows: int, sizes: list[int], is_ordered: bool, slow: bool
) -> None:
    entries = [segment(min(n, 1) * (n + 1), n + 1, size, is_ordered * (n == 0) * 2) for n, size in enumerate(sizes)]
    plan = planned(*entries, rows=rows, slow=slow)
    assert plan.budget * MAX_LOOKUP_SHARE <= rows
    assert min(plan.budget, plan.row_cost, plan.key_group_cost, plan.rest_after_ms) >= 0
    if plan.budget:
        assert plan.mode == "by_row"
        assert plan.row_cost > 0
