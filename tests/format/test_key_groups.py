"""Numbering of key groups: at every parallelism, a partition owns the key groups that Spark's partitioning sends it."""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.errors import SparkCkptError
from spark_ckpt.format.key_groups import (
    ParallelismError,
    default_max_parallelism,
    factors,
    hashes_of,
    key_group_of,
    overlapping_ranges,
    owned_ranges,
)
from spark_ckpt.metadata.keyrange import KeyGroupRange

HASHES = st.integers(-(2**31), 2**31 - 1)


@st.composite
def chains(draw: st.DrawFn, most: int = 4096) -> list[int]:
    parallelism = draw(st.integers(1, min(most, 300)))
    return factors(parallelism, parallelism * draw(st.integers(1, most // parallelism)))


def divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


@pytest.mark.parametrize(
    ("parallelism", "expected"),
    [(1, 1024), (200, 1600), (5, 1280), (1023, 2046), (1024, 1024), (1025, 1025), (32768, 32768), (3, 1536)],
)
def test_default_max_parallelism(parallelism: int, expected: int) -> None:
    assert default_max_parallelism(parallelism) == expected


@given(st.integers(1, 32768))
def test_default_max_parallelism_is_the_smallest_in_its_chain(parallelism: int) -> None:
    k = default_max_parallelism(parallelism)
    assert k % parallelism == 0
    assert 1024 <= k <= 32768
    assert k == parallelism or k // 2 < 1024


@pytest.mark.parametrize("parallelism", [0, -1, 32769])
def test_parallelism_outside_the_bounds_is_refused(parallelism: int) -> None:
    with pytest.raises(ParallelismError) as refused:
        default_max_parallelism(parallelism)
    assert refused.value.parallelism == parallelism
    assert isinstance(refused.value, SparkCkptError)
    with pytest.raises(ParallelismError):
        factors(parallelism, 32768)


@pytest.mark.parametrize(("parallelism", "max_parallelism"), [(200, 1024), (3, 1024), (4, 2), (2, 32770), (1, 0)])
def test_max_parallelism_must_be_a_multiple_within_bounds(parallelism: int, max_parallelism: int) -> None:
    with pytest.raises(ParallelismError) as refused:
        factors(parallelism, max_parallelism)
    assert (refused.value.parallelism, refused.value.max_parallelism) == (parallelism, max_parallelism)


def test_factors_are_the_parallelism_and_ascending_primes() -> None:
    assert factors(200, 1600) == [200, 2, 2, 2]
    assert factors(4, 4 * 42) == [4, 2, 3, 7]
    assert factors(7, 7) == [7]
    assert factors(1, 32749) == [1, 32749]


@given(chains())
def test_hashes_of_key_groups_are_those_that_have_them(chain: list[int]) -> None:
    hashes = np.arange(prod(chain), dtype=np.int64)
    assert hashes_of(key_group_of(hashes, chain), chain).tolist() == hashes.tolist()


def test_numbers_worked_out_by_hand() -> None:
    # K = 12, chain 2, 4, 12: x = d0 + 2 * (e1 + 2 * e2), key group d0 * 6 + e1 * 3 + e2.
    chain = factors(2, 12)
    assert chain == [2, 2, 3]
    assert [key_group_of(x, chain) for x in range(12)] == [0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11]
    assert key_group_of(-1, chain) == 11
    assert owned_ranges(1, 4, chain) == [KeyGroupRange(6, 8)]
    assert owned_ranges(0, 3, chain) == [KeyGroupRange(0, 0), KeyGroupRange(4, 4), KeyGroupRange(8, 9)]


@given(chains(), st.lists(HASHES, min_size=1, max_size=50))
def test_one_hash_and_many_have_the_same_numbers(chain: list[int], hashes: list[int]) -> None:
    singly = [key_group_of(h, chain) for h in hashes]
    assert key_group_of(np.array(hashes, dtype=np.int32), chain).tolist() == singly
    assert key_group_of(np.array(hashes, dtype=np.int64), chain).tolist() == singly


@given(chains())
def test_numbering_is_a_permutation(chain: list[int]) -> None:
    k = prod(chain)
    assert sorted(key_group_of(np.arange(k), chain).tolist()) == list(range(k))


@given(chains())
def test_parallelisms_in_the_chain_own_one_range_each(chain: list[int]) -> None:
    k = prod(chain)
    for parallelism in itertools.accumulate(chain, lambda a, b: a * b):
        for partition in {0, parallelism // 2, parallelism - 1}:
            width = k // parallelism
            (owned,) = owned_ranges(partition, parallelism, chain)
            assert owned.number_of_key_groups == width
            if parallelism == chain[0]:
                assert owned.start == partition * width


@given(chains(), st.data())
def test_partitions_own_disjoint_ranges_that_cover_everything(chain: list[int], data: st.DataObject) -> None:
    k = prod(chain)
    parallelism = data.draw(st.sampled_from(divisors(k)))
    ranges = [r for p in range(parallelism) for r in owned_ranges(p, parallelism, chain)]
    assert sorted(g for r in ranges for g in r) == list(range(k))


@given(chains(), st.data(), HASHES)
def test_the_owner_of_a_hash_is_sparks_partition(chain: list[int], data: st.DataObject, hash_code: int) -> None:
    parallelism = data.draw(st.sampled_from(divisors(prod(chain))))
    key_group = key_group_of(hash_code, chain)
    for partition in {hash_code % parallelism, data.draw(st.integers(0, parallelism - 1))}:
        ranges = owned_ranges(partition, parallelism, chain)
        assert any(key_group in r for r in ranges) == (partition == hash_code % parallelism)
        assert all(a.end + 1 < b.start for a, b in itertools.pairwise(ranges))


@given(chains())
def test_parallelism_one_owns_everything(chain: list[int]) -> None:
    assert owned_ranges(0, 1, chain) == [KeyGroupRange(0, prod(chain) - 1)]


@given(chains(), st.integers(1, 500), HASHES)
def test_rows_of_a_partition_lie_in_its_overlapping_ranges(chain: list[int], parallelism: int, hash_code: int) -> None:
    ranges = overlapping_ranges(hash_code % parallelism, parallelism, chain)
    assert any(key_group_of(hash_code, chain) in r for r in ranges)


def test_a_parallelism_that_does_not_divide_owns_nothing_whole() -> None:
    with pytest.raises(ParallelismError, match="does not divide 1600"):
        owned_ranges(0, 3, factors(200, 1600))
    assert overlapping_ranges(0, 3, factors(200, 1600)) == [KeyGroupRange(0, 1599)]
    assert overlapping_ranges(2, 6, factors(4, 64)) == overlapping_ranges(0, 2, factors(4, 64))


@pytest.mark.parametrize("partition", [-1, 4])
def test_there_is_no_such_partition(partition: int) -> None:
    for function in (owned_ranges, overlapping_ranges):
        with pytest.raises(ParallelismError, match="no partition"):
            function(partition, 4, [4, 2])
