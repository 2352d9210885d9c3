"""Numbering of key groups (docs/protocol.md, section 2).

Spark hashes a row's partition key with Murmur3. `x = hash mod K` determines Spark's partition for every parallelism P
that divides K: it is `x mod P`. A state handle, however, holds one contiguous range of key groups, so the key groups of
a subtask must be contiguous. Therefore key groups are not numbered by `x`, but by the reversed digits of `x` in a mixed
radix: first the digit that determines the partition at the smallest parallelism of the chain, then the digit for the
next parallelism, up to K. At every parallelism in the chain, each partition then owns one range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import gcd, prod
from typing import TYPE_CHECKING, overload

import numpy as np

from spark_ckpt.errors import SparkCkptError
from spark_ckpt.metadata.keyrange import KeyGroupRange

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_PARALLELISM_LIMIT = 32768
"""Maximum number of key groups (Flink: `KeyGroupRangeAssignment.UPPER_BOUND_MAX_PARALLELISM`)."""

_FEWEST_BY_DEFAULT = 1024


class ParallelismError(SparkCkptError, ValueError):
    """A parallelism is invalid, or incompatible with the number of key groups.

    Attributes:
        parallelism: number of partitions, P.
        max_parallelism: number of key groups, K; None if not chosen yet.
    """

    def __init__(self, parallelism: int, max_parallelism: int | None, reason: str) -> None:
        super().__init__(reason)
        self.parallelism = parallelism
        self.max_parallelism = max_parallelism


def default_max_parallelism(parallelism: int) -> int:
    """Default number of key groups K of a query that starts with `parallelism` partitions.

    Returns:
        Smallest `parallelism * 2^j` that is at least 1024.

    Raises:
        ParallelismError: `parallelism` is not in 1 to 32768.
    """
    _check_parallelism(parallelism, None)
    max_parallelism = parallelism
    while max_parallelism < _FEWEST_BY_DEFAULT:
        max_parallelism *= 2
    return max_parallelism


def factors(parallelism: int, max_parallelism: int) -> list[int]:
    """Chain of parallelisms from `parallelism` to `max_parallelism`, as `[P0, f1, f2, ...]`.

    Returns:
        `parallelism`, followed by the prime factors of `max_parallelism / parallelism` in ascending order. The products
        of its prefixes are the parallelisms at which each partition owns one range of key groups.

    Raises:
        ParallelismError: an argument is not in 1 to 32768, or `max_parallelism` is not a multiple of `parallelism`.
    """
    _check_parallelism(parallelism, max_parallelism)
    if not 1 <= max_parallelism <= MAX_PARALLELISM_LIMIT:
        raise ParallelismError(
            parallelism,
            max_parallelism,
            f"max parallelism {max_parallelism} is not in 1 to {MAX_PARALLELISM_LIMIT}",
        )
    if max_parallelism % parallelism:
        raise ParallelismError(
            parallelism,
            max_parallelism,
            f"max parallelism {max_parallelism} is not a multiple of the parallelism {parallelism}: set a multiple",
        )
    return [parallelism, *_prime_factors(max_parallelism // parallelism)]


@overload
def key_group_of(hash_code: int, factors: Sequence[int]) -> int: ...


@overload
def key_group_of(hash_code: NDArray[np.integer], factors: Sequence[int]) -> NDArray[np.int64]: ...


def key_group_of(hash_code: int | NDArray[np.integer], factors: Sequence[int]) -> int | NDArray[np.int64]:
    """Key group of a partition key.

    Args:
        hash_code: Spark's Murmur3 hash (seed 42) of the partition key, a signed 32-bit integer, or an array of hashes.
        factors: the chain, as `factors()` returns it.

    Returns:
        Key group in 0 to K - 1; for an array, an int64 array of the same shape.
    """
    numbering = _numbering(tuple(factors))
    if isinstance(hash_code, np.ndarray):
        return numbering[np.mod(hash_code.astype(np.int64, copy=False), numbering.size)]
    return int(numbering[hash_code % numbering.size])


def owned_ranges(partition: int, parallelism: int, factors: Sequence[int]) -> list[KeyGroupRange]:
    """Key groups owned by a partition, with all their rows.

    Args:
        partition: number of the partition, 0 to `parallelism - 1`.
        parallelism: number of partitions, P; any divisor of K.
        factors: the chain, as `factors()` returns it; K is its product.

    Returns:
        Disjoint, non-adjacent ranges in ascending order: a single range if P is in the chain.

    Raises:
        ParallelismError: P does not divide K, so partitions share key groups (see `overlapping_ranges`), or the
            partition does not exist.
    """
    max_parallelism = prod(factors)
    _check_partition(partition, parallelism, max_parallelism)
    _check_owns(parallelism, max_parallelism)
    return list(_ranges(_owned(parallelism, tuple(factors))[partition]))


def overlapping_ranges(partition: int, parallelism: int, factors: Sequence[int]) -> list[KeyGroupRange]:
    """Key groups that may contain rows of a partition, for any parallelism.

    If `parallelism` divides K, these are the owned ranges. Otherwise they also contain rows of other partitions, which
    only the hash tells apart. `hash mod K` determines the hash modulo g, the greatest common divisor of `parallelism`
    and K, so these are the key groups owned by partition `partition mod g` at parallelism g.

    Raises:
        ParallelismError: the partition does not exist.
    """
    return list(_ranges(overlapping_key_groups(partition, parallelism, factors)))


def overlapping_key_groups(partition: int, parallelism: int, factors: Sequence[int]) -> NDArray[np.uint32]:
    """Key groups that may contain rows of a partition, ascending: those of `overlapping_ranges`. Read-only.

    Raises:
        ParallelismError: the partition does not exist.
    """
    max_parallelism = prod(factors)
    _check_partition(partition, parallelism, max_parallelism)
    common = gcd(parallelism, max_parallelism)
    key_groups: NDArray[np.uint32] = _owned(common, tuple(factors))[partition % common]
    return key_groups


def overlap(key_groups: NDArray[np.uint32], partition: int, parallelism: int, factors: tuple[int, ...]) -> bool:
    """True if each of some key groups may contain rows of a partition.

    Args:
        key_groups: uint32, ascending, at least one.
        partition: number of the partition, 0 to `parallelism - 1`.
        parallelism: number of partitions.
        factors: the chain, as `factors()` returns it.

    Raises:
        ParallelismError: the partition does not exist.
    """
    span = key_group_span(partition, parallelism, factors)
    if int(key_groups[0]) < span.start or int(key_groups[-1]) > span.end:
        return False
    if len(span) * gcd(parallelism, prod(factors)) == prod(factors):
        return True
    return bool(np.isin(key_groups, overlapping_key_groups(partition, parallelism, factors)).all())


def hashes_of(key_groups: NDArray[np.integer], factors: Sequence[int]) -> NDArray[np.int64]:
    """Hashes modulo K of the rows in each key group: the inverse of `key_group_of`.

    Args:
        key_groups: key groups in 0 to K - 1, in any order.
        factors: the chain, as `factors()` returns it.
    """
    hashes: NDArray[np.int64] = _hashes(tuple(factors))[key_groups]
    return hashes


def partitions_of(key_groups: NDArray[np.integer], parallelism: int, factors: Sequence[int]) -> NDArray[np.int64]:
    """Partition that owns each key group.

    Args:
        key_groups: key groups in 0 to K - 1, in any order.
        parallelism: number of partitions, P; any divisor of K.
        factors: the chain, as `factors()` returns it.

    Raises:
        ParallelismError: P does not divide K.
    """
    _check_owns(parallelism, prod(factors))
    return hashes_of(key_groups, factors) % parallelism


def _check_parallelism(parallelism: int, max_parallelism: int | None) -> None:
    if not 1 <= parallelism <= MAX_PARALLELISM_LIMIT:
        raise ParallelismError(
            parallelism,
            max_parallelism,
            f"parallelism {parallelism} is not in 1 to {MAX_PARALLELISM_LIMIT}, the maximum number of key groups",
        )


def _check_partition(partition: int, parallelism: int, max_parallelism: int) -> None:
    if not 0 <= partition < parallelism:
        raise ParallelismError(parallelism, max_parallelism, f"no partition {partition} at parallelism {parallelism}")


def _check_owns(parallelism: int, max_parallelism: int) -> None:
    if max_parallelism % parallelism:
        raise ParallelismError(
            parallelism,
            max_parallelism,
            f"the partitions of parallelism {parallelism} do not own whole key groups: it does not divide "
            f"{max_parallelism}",
        )


def _prime_factors(number: int) -> list[int]:
    result = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            result.append(divisor)
            number //= divisor
        divisor += 1
    if number > 1:
        result.append(number)
    return result


@lru_cache(maxsize=64)
def _numbering(factors: tuple[int, ...]) -> NDArray[np.int64]:
    """Key group of each x in 0 to K - 1: digit i of x, lowest first, has weight K / (f0 * ... * fi)."""
    max_parallelism = prod(factors)
    rest = np.arange(max_parallelism, dtype=np.int64)
    key_groups = np.zeros(max_parallelism, dtype=np.int64)
    weight = max_parallelism
    for factor in factors:
        weight //= factor
        rest, digit = np.divmod(rest, factor)
        key_groups += digit * weight
    key_groups.flags.writeable = False
    return key_groups


@lru_cache(maxsize=64)
def _hashes(factors: tuple[int, ...]) -> NDArray[np.int64]:
    """Hash modulo K of each key group."""
    hashes = np.argsort(_numbering(factors))
    hashes.flags.writeable = False
    return hashes


# One entry serves all partitions: a cache of single partitions is useless once there are more of them than it holds.
@lru_cache(maxsize=16)
def _owned(parallelism: int, factors: tuple[int, ...]) -> NDArray[np.uint32]:
    """Key groups of each partition, ascending, in a row per partition. The parallelism divides K."""
    owned = np.sort(_numbering(factors).reshape(-1, parallelism).T, axis=1).astype(np.uint32)
    owned.flags.writeable = False
    return owned


def _ranges(owned: NDArray[np.uint32]) -> Iterator[KeyGroupRange]:
    """Ranges of ascending key groups."""
    first, last = int(owned[0]), int(owned[-1])
    if last - first + 1 == owned.size:
        yield KeyGroupRange(first, last)
        return
    for run in np.split(owned, np.flatnonzero(np.diff(owned) != 1) + 1):
        yield KeyGroupRange(int(run[0]), int(run[-1]))


def key_group_span(partition: int, parallelism: int, factors: tuple[int, ...]) -> KeyGroupRange:
    """Range from the first to the last key group of a subtask."""
    spans = _spans(parallelism, factors)
    if not 0 <= partition < len(spans):
        _check_partition(partition, parallelism, prod(factors))
    return spans[partition]


@lru_cache(maxsize=16)
def _spans(parallelism: int, factors: tuple[int, ...]) -> tuple[KeyGroupRange, ...]:
    """Span of each partition."""
    common = gcd(parallelism, prod(factors))
    owned = _owned(common, factors)
    spans = [KeyGroupRange(*ends) for ends in zip(owned[:, 0].tolist(), owned[:, -1].tolist(), strict=True)]
    return tuple(spans[partition % common] for partition in range(parallelism))
