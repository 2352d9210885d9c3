"""Rules for which records count; same cases as in `DirectoryLocatorSuite` of the shim."""

from __future__ import annotations

from collections.abc import Sequence

from spark_ckpt.completed import ClaimRecord, Record, without_void_records
from tests.completed.records import owner, record


def checkpoint(record_id: int, generation: int) -> Record:
    return record(record_id, record_id, generation)


def claim(record_id: int, generation: int, seen: Sequence[int] | None = None) -> Record:
    return ClaimRecord(record_id, generation, owner(), "attempt", 0, None if seen is None else tuple(seen))


def kept(*records: Record) -> list[int]:
    return list(without_void_records({each.id: each for each in records}))


def test_a_log_whose_claims_have_seen_all_below_them_counts_in_full() -> None:
    assert kept(checkpoint(4, 1), checkpoint(5, 1)) == [4, 5]
    assert kept(claim(1, 1, ()), checkpoint(3, 1), claim(4, 2, (1, 3)), checkpoint(5, 2)) == [1, 3, 4, 5]
    assert kept(claim(1, 1), checkpoint(3, 1), claim(4, 2), checkpoint(5, 2)) == [1, 3, 4, 5]


def test_what_the_newest_claim_has_not_seen_below_it_does_not_count() -> None:
    later = claim(9, 9, (3, 8))
    assert kept(checkpoint(2, 1), claim(3, 2), checkpoint(8, 8), later, checkpoint(10, 9)) == [3, 8, 9, 10]


def test_what_an_earlier_claim_has_not_seen_counts_if_a_later_one_has() -> None:
    assert kept(claim(3, 2, ()), checkpoint(4, 2), claim(5, 3, (3, 4))) == [3, 4, 5]


def test_a_claim_that_an_earlier_generation_follows_does_not_count_nor_what_it_has_seen() -> None:
    assert kept(claim(1, 1, ()), claim(2, 2, (1,)), checkpoint(3, 1)) == [1, 3]
