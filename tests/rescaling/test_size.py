"""The computed size of a rescale's checkpoint against the real one."""

from __future__ import annotations

import uuid
from math import gcd
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.checkpoint import packing
from spark_ckpt.checkpoint.chains import Chain, ChainTable
from spark_ckpt.checkpoint.packing import Packing
from spark_ckpt.checkpoint.segment_table import SegmentTable
from spark_ckpt.format.key_groups import factors, overlapping_key_groups
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.rescaling.reassign import reassign
from spark_ckpt.rescaling.size import RescaleSize
from tests.support.segments import segment_ref

K = 24
NUMBERING = tuple(factors(4, K))
STORE, ALONE = StoreKey(0, "default"), StoreKey(1, "default")


def chains_of(partitions: int, deltas: int, numbering: tuple[int, ...] = NUMBERING) -> list[Chain]:
    """Chains of a base and deltas, with a file for each base and for the deltas of each version."""

    def entry(partition: int, version: int, path: str) -> SegmentRef:
        groups = overlapping_key_groups(partition, partitions, numbering)
        first_version, offsets = 0 if version == 1 else version, np.arange(groups.size, dtype=np.int64) * 10
        return segment_ref(first_version, version, groups, offsets, 99, path, 999)

    return [
        Chain(
            uuid.uuid4().hex,
            10,
            (
                entry(partition, 1, f"shared/base-{partition}"),
                *(entry(partition, 2 + delta, f"shared/deltas-{delta}") for delta in range(deltas)),
            ),
        )
        for partition in range(partitions)
    ]


class Counted(Packing):
    """Compression that counts the bytes before."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def packed(self, data: bytes) -> str:
        self.bytes += len(data)
        return super().packed(data)


def real_bytes(table: ChainTable) -> int:
    counted = Counted()
    for chains in table.values():
        SegmentTable.of(chains).encode(100, counted)
    return counted.bytes


@given(st.lists(st.integers(1, K), min_size=1, max_size=4), st.integers(0, 5), st.integers(1, K))
def test_the_size_is_hardly_more_than_it_will_be(before: list[int], deltas: int, partitions: int) -> None:
    chains = chains_of(4, deltas)
    for parallelism in before:
        chains = reassign(chains, parallelism, NUMBERING)
    alone = chains_of(1, deltas)
    size = RescaleSize({STORE: chains, ALONE: alone}, {ALONE}, NUMBERING).table_bytes(partitions)
    real = real_bytes({STORE: reassign(chains, partitions, NUMBERING), ALONE: alone})
    assert real <= size
    if len(before) == 1 and before[0] == 4:
        assert size <= 2.5 * real + 200


def test_reads_of_a_block() -> None:
    size = RescaleSize({STORE: chains_of(4, 1)}, set(), NUMBERING)
    for partitions in range(1, K + 1):
        assert size.reads(partitions) == partitions // gcd(partitions, K)
        blocks = sum(e.offsets.size for c in reassign(chains_of(4, 1), partitions, NUMBERING) for e in c.entries)
        assert blocks == 2 * K * size.reads(partitions)
    assert size.min_reads(5) == [4, 6]
    assert size.min_reads(23) == [12, 24]
    assert RescaleSize({ALONE: chains_of(1, 1)}, {ALONE}, NUMBERING).reads(5) == 1


@pytest.mark.parametrize(("before", "after", "nearest"), [(2100, 2099, [2094, 2100]), (1500, 1499, [1497, 1500])])
def test_numbers_that_readers_would_refuse(before: int, after: int, nearest: list[int]) -> None:
    numbering = tuple(factors(before, before))
    size = RescaleSize({STORE: chains_of(before, 0, numbering)}, set(), numbering)
    assert not size.fits(after)
    assert size.nearest(after) == nearest
    assert all(size.fits(number) for number in nearest)


def test_a_join_of_four_stores_has_four_times_as_much() -> None:
    numbering = tuple(factors(800, 1600))
    table = {StoreKey(0, name): chains_of(800, 0, numbering) for name in "abcd"}
    assert not RescaleSize(table, set(), numbering).fits(799)
    assert RescaleSize({STORE: table[StoreKey(0, "a")]}, set(), numbering).fits(799)


def test_without_any_other_number_none_is_named() -> None:
    with patch.object(packing, "MAX_BYTES", 1):
        assert RescaleSize({STORE: chains_of(4, 1)}, set(), NUMBERING).nearest(5) == []
