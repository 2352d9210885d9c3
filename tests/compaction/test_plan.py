"""Plans of single chains; `test_bases_beside_merges.py` follows them over many batches."""

from __future__ import annotations

import numpy as np
import pytest

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.compaction.plan import MAX_IN_PROGRESS, MERGE_TRIES, Moment, plan
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.messages import FULL_COMPACTION, NO_COMPACTION, InProgress, Kind
from tests.support.segments import segment_ref

MIB = 1 << 20
CONFIG = CheckpointConfig()


def chain(deltas: int, size: int = MIB, base: int = 1000 * MIB) -> Chain:
    """A base of version 1, and deltas of equal size."""

    def entry(version: int, size: int) -> SegmentRef:
        first_version = 0 if version == 1 else version
        groups, offsets = np.array([1], np.uint32), np.array([0])
        return segment_ref(first_version, version, groups, offsets, size, f"shared/{version}", size)

    return Chain("a", 1, (entry(1, base), *(entry(2 + n, size) for n in range(deltas))))


def test_a_light_short_chain_needs_nothing() -> None:
    assert plan(chain(1), (), Moment(0, 2, MIB), CONFIG) == NO_COMPACTION


def test_deltas_as_heavy_as_the_base_are_replaced_by_a_base() -> None:
    assert plan(chain(4, size=300 * MIB), (), Moment(0, 5, MIB), CONFIG) == FULL_COMPACTION


def test_a_long_chain_is_merged() -> None:
    long = chain(2 * CONFIG.max_deltas)
    request = plan(long, (), Moment(0, 1 + len(long.entries), MIB), CONFIG)
    assert request.kind is Kind.MERGE
    assert request.inputs == long.entries[-len(request.inputs) :]
    assert not request.is_full


def test_a_long_chain_whose_merges_fail_gets_a_base() -> None:
    long = chain(2 * CONFIG.max_deltas)
    moment = Moment(0, 1 + len(long.entries), MIB, failures=MERGE_TRIES)
    assert plan(long, (), moment, CONFIG) == FULL_COMPACTION


@pytest.mark.parametrize("is_due", [False, True])
def test_a_base_that_releases_files_is_due_at_any_length(is_due: bool) -> None:
    request = plan(chain(1), (), Moment(0, 2, MIB, is_rewrite_due=lambda: is_due), CONFIG)
    assert request == (FULL_COMPACTION if is_due else NO_COMPACTION)


def test_nothing_begins_beside_as_much_as_a_store_works_at() -> None:
    busy = [InProgress(2 + n, 2 + n) for n in range(MAX_IN_PROGRESS)]
    assert plan(chain(40), busy, Moment(0, 42, MIB), CONFIG) == NO_COMPACTION
    assert plan(chain(40), busy[1:], Moment(0, 42, MIB), CONFIG).kind is Kind.MERGE


def test_a_base_does_not_begin_beside_a_merge_below_it() -> None:
    heavy = chain(4, size=300 * MIB)
    assert plan(heavy, (InProgress(2, 3),), Moment(0, 5, MIB), CONFIG) == NO_COMPACTION
