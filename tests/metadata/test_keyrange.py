from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.metadata import KeyGroupRange, KeyGroupRangeOffsets, MetadataValueError


@st.composite
def ranges(draw: st.DrawFn) -> KeyGroupRange:
    start = draw(st.integers(0, 20))
    return KeyGroupRange(start, draw(st.integers(start - 1, 25)))


def test_both_ends_belong_to_a_range() -> None:
    groups = KeyGroupRange(3, 5)
    assert list(groups) == [3, 4, 5]
    assert len(groups) == groups.number_of_key_groups == 3
    assert 5 in groups
    assert np.int64(5) in groups
    assert 6 not in groups
    assert "5" not in groups
    assert str(groups) == "[3, 5]"


def test_empty_range() -> None:
    assert list(KeyGroupRange(7, 6)) == []
    assert str(KeyGroupRange(7, 6)) == "[]"


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (3, 1), (1, 2**31), (0, 2**31 - 1)])
def test_no_range(start: int, end: int) -> None:
    with pytest.raises(MetadataValueError) as refused:
        KeyGroupRange(start, end)
    assert refused.value.field == "key_group_range"


@given(ranges(), ranges())
def test_intersection(one: KeyGroupRange, other: KeyGroupRange) -> None:
    assert set(one.intersection(other)) == set(one) & set(other)


@given(ranges(), ranges())
def test_intersection_of_offsets_keeps_each_offset(owned: KeyGroupRange, other: KeyGroupRange) -> None:
    offsets = KeyGroupRangeOffsets(owned, np.arange(len(owned)) * 10 + 1000)
    common = offsets.intersection(other)
    assert set(common.key_group_range) == set(owned) & set(other)
    assert all(common.offset_of(group) == offsets.offset_of(group) for group in common.key_group_range)


def test_offsets_are_compared_by_value() -> None:
    one = KeyGroupRangeOffsets.of(4, [1, 2, 3])
    assert one == KeyGroupRangeOffsets(KeyGroupRange(4, 6), np.array([1, 2, 3], dtype=np.int32))
    assert hash(one) == hash(KeyGroupRangeOffsets.of(4, [1, 2, 3]))
    assert one != KeyGroupRangeOffsets.of(5, [1, 2, 3])
    assert one != KeyGroupRangeOffsets.of(4, [1, 2, 4])
    assert one != "offsets"


def test_offsets_cannot_be_changed_and_the_callers_array_can() -> None:
    array = np.array([1, 2])
    offsets = KeyGroupRangeOffsets.of(0, array)
    with pytest.raises(ValueError, match="read-only"):
        offsets.offsets[0] = 9
    assert array.flags.writeable


def test_offset_of_another_key_group() -> None:
    with pytest.raises(KeyError):
        KeyGroupRangeOffsets.of(3, [1]).offset_of(4)


def test_one_offset_for_each_key_group() -> None:
    with pytest.raises(MetadataValueError, match="2 key groups"):
        KeyGroupRangeOffsets(KeyGroupRange(0, 1), np.array([1]))
