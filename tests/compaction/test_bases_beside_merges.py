"""Bases and merges of one store at the same time: what is requested, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.compaction import tiers
from spark_ckpt.compaction.plan import MAX_IN_PROGRESS
from spark_ckpt.compaction.policy import most_deltas
from spark_ckpt.compaction.requests import CompactionRequests
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.format.segment_ref import NO_BLOCKS, SegmentRef
from spark_ckpt.messages import (
    NO_COMPACTION,
    REQUIRED_COMPACTION,
    Ack,
    AckReply,
    BaseSnapshot,
    CompactionRequest,
    InProgress,
    MergedDeltas,
    Outcome,
    Task,
)
from spark_ckpt.storage import LocalStorage
from tests.compaction.merging_driver import KEY, OTHER, chain_at, merged
from tests.compaction.merging_driver import driver_at as driver_of_merges
from tests.support.driver import Driver, check_rows, load
from tests.support.invariants import assert_invariants
from tests.support.segments import segment_ref

MIB = 1 << 20
NOTHING = SegmentRef(1, 1, NO_BLOCKS, 0)


def chain(deltas: int, *, base: int = 1000 * MIB) -> Chain:
    """A chain with a base of version 1 and light deltas."""

    def entry(version: int, size: int) -> SegmentRef:
        groups, offsets = np.array([1], np.uint32), np.array([0], np.int64)
        return segment_ref(0 if version == 1 else version, version, groups, offsets, size, f"shared/{version}", size)

    return Chain("a", 1, (entry(1, base), *(entry(2 + i, MIB) for i in range(deltas))))


def asked(
    requests: CompactionRequests, deltas: int, *busy: InProgress, base: int = 1000 * MIB, **brought: object
) -> CompactionRequest:
    """Reply to the ack that follows a chain with so many deltas."""
    following = deltas + 2
    ack = Ack(
        KEY, following - 1, following, "", Task(0, 0, 0, 0), 0, replace(NOTHING, size=MIB), in_progress=busy, job=""
    )
    for name, value in brought.items():
        setattr(ack, name, value)
    return requests.after_ack(ack, chain(deltas, base=base), {})


def all_asked(deltas: int, *busy: InProgress, base: int = 1000 * MIB) -> list[CompactionRequest]:
    """Replies in each batch of a cycle."""
    requests = CompactionRequests(CheckpointConfig())
    return [asked(requests, count, *busy, base=base) for count in range(deltas, deltas + 16)]


def test_a_merge_beside_a_base_has_only_deltas_above_the_version_of_the_base() -> None:
    asked_for = [request for request in all_asked(16, InProgress(0, 12)) if request.inputs]
    assert asked_for
    assert all(request.inputs[0].first_version > 12 for request in asked_for)
    assert not any(request.is_full for request in all_asked(16, InProgress(0, 12)))


def test_a_merge_beside_merges_is_above_all_of_them() -> None:
    asked_for = [request for request in all_asked(20, InProgress(2, 9), InProgress(12, 14)) if request.inputs]
    assert asked_for
    assert all(request.inputs[0].first_version > 14 for request in asked_for)


def test_a_store_has_a_bounded_number_of_merges_in_progress() -> None:
    busy = [InProgress(2 * n, 2 * n + 1) for n in range(1, MAX_IN_PROGRESS + 1)]
    assert any(request.inputs for request in all_asked(30, *busy[1:]))
    assert not any(request.inputs for request in all_asked(30, *busy))


def test_what_an_ack_brings_is_not_merged_again_before_its_chain_has_it() -> None:
    requests = CompactionRequests(CheckpointConfig())
    for deltas in range(16, 32):
        request = asked(requests, deltas, merged=MergedDeltas(replace(NOTHING, first_version=2, version=10), ""))
        assert not request.is_full
        assert not request.inputs or request.inputs[0].first_version > 10


def test_a_base_waits_for_the_merges_below_it_and_no_merge_but_of_a_long_chain_delays_it() -> None:
    requests = CompactionRequests(CheckpointConfig())
    assert asked(requests, 10, base=MIB).is_full
    for deltas in range(4, 15):
        assert asked(CompactionRequests(CheckpointConfig()), deltas, InProgress(2, 3), base=MIB) == NO_COMPACTION
    assert asked(CompactionRequests(CheckpointConfig()), 20, InProgress(2, 3), base=MIB).inputs


def test_a_required_base_is_required_although_it_is_in_progress() -> None:
    bound = tiers.chain_bound(2 * CheckpointConfig().max_deltas)
    assert asked(CompactionRequests(CheckpointConfig()), bound, InProgress(0, 3)) == REQUIRED_COMPACTION
    assert not asked(CompactionRequests(CheckpointConfig()), bound - 2, InProgress(0, 3)).required


def test_chains_of_very_many_subtasks_are_shorter_so_that_metadata_holds_all_of_them() -> None:
    subtasks = 100_000
    bound = most_deltas(subtasks)
    assert bound < tiers.chain_bound(2 * CheckpointConfig().max_deltas)
    for deltas in (bound - 2, bound - 1):
        following = deltas + 2
        ack = Ack(KEY, following - 1, following, "", Task(0, 0, 0, 0), 0, replace(NOTHING, size=MIB), job="")
        table = {KEY.of_operator: [chain(deltas)] * subtasks}
        request = CompactionRequests(CheckpointConfig()).after_ack(ack, table[KEY.of_operator][0], table)
        assert request.required == (deltas == bound - 1)


def test_a_failed_merge_is_not_asked_for_again_at_once_although_a_base_is_in_progress() -> None:
    requests = CompactionRequests(CheckpointConfig())
    assert asked(requests, 20, InProgress(0, 10)).inputs
    assert asked(requests, 21, InProgress(0, 10), compaction_failure="no space") == NO_COMPACTION
    later = [asked(requests, deltas, InProgress(0, 10)).inputs for deltas in range(22, 26)]
    assert any(later)


# ---- adoption --------------------------------------------------------------------------------------------------------


@pytest.fixture
def _merges_of_small_states() -> Iterator[None]:
    with patch.object(tiers, "MIN_BASE", 0):
        yield


def driver_at(location: Path) -> Driver:
    driver = driver_of_merges(location)
    driver.settings["retained"] = "20"
    return driver


def batch(
    driver: Driver,
    version: int,
    base: BaseSnapshot | None = None,
    sent: MergedDeltas | None = None,
    busy: tuple[InProgress, ...] = (),
) -> AckReply:
    """A batch in which the first subtask brings this; the reply to it."""
    job, replies = driver.trigger(version), []
    acks = [
        replace(driver.make_ack(KEY, version, base=base), merged=sent, in_progress=busy),
        driver.make_ack(OTHER, version),
    ]
    for ack in acks:
        replies.append(job.acknowledge(ack))
        assert replies[-1].outcome is Outcome.SUCCESS
    for ack in acks:
        driver.take_over(ack)
    job.housekeeping()
    return replies[0]


def restarted(location: Path, version: int) -> Driver:
    """Another run of the query, whose stores have loaded this version."""
    driver = driver_at(location)
    driver.trigger(version + 1)
    load(driver, LocalStorage(location), version)
    return driver


@pytest.mark.usefixtures("_merges_of_small_states")
@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("is_base_first", [False, True])
def test_a_base_and_the_merge_beside_it_are_adopted_in_any_order(
    tmp_path: Path, is_base_first: bool, is_restarted: bool
) -> None:
    driver = driver_at(tmp_path)
    for version in range(1, 5):
        batch(driver, version)
    base, busy, version = driver.base_of(KEY, 4), (InProgress(0, 4),), 4
    deltas: tuple[SegmentRef, ...] = ()
    while not deltas:
        version += 1
        deltas = batch(driver, version, busy=busy).compaction.inputs
        assert version < 20
    assert deltas[0].first_version > 4
    sent = merged(tmp_path, deltas)
    order = [(base, None), (None, sent)]
    for brought in order if is_base_first else reversed(order):
        version += 1
        batch(driver, version, *brought)
        check_rows(driver, LocalStorage(tmp_path), version)
        assert_invariants(tmp_path)
        if is_restarted:
            driver = restarted(tmp_path, version)
    batch(driver, version + 1)
    found = chain_at(driver)
    # Another run does not know the state ids of versions before it, so it ignores a base of them.
    is_ignored = is_restarted and not is_base_first
    assert found.base_version == (0 if is_ignored else 4)
    spans = [(entry.first_version, entry.version) for entry in found.entries if not entry.is_base]
    assert (sent.first_version, sent.version) in spans
    # The chain has each version once.
    assert [first for first, _ in spans] == [1 if is_ignored else 5, *(last + 1 for _, last in spans[:-1])]
    check_rows(driver, LocalStorage(tmp_path), version + 1)


@pytest.mark.usefixtures("_merges_of_small_states")
@pytest.mark.parametrize("late", [10, 36, 200])
def test_a_base_may_take_any_number_of_batches(tmp_path: Path, late: int) -> None:
    driver, begun = driver_of_merges(tmp_path, max_deltas=16), 6
    for version in range(1, begun + 1):
        batch(driver, version)
    base = driver.base_of(KEY, begun)
    deltas: tuple[SegmentRef, ...] = ()
    for version in range(begun + 1, begun + late):
        sent = merged(tmp_path, deltas) if deltas else None
        deltas = batch(driver, version, sent=sent, busy=(InProgress(0, begun),)).compaction.inputs
    batch(driver, begun + late, base)
    assert chain_at(driver).base_version == begun
    check_rows(driver, LocalStorage(tmp_path), begun + late)
    assert_invariants(tmp_path)


@pytest.mark.usefixtures("_merges_of_small_states")
def test_a_store_that_loads_again_is_asked_without_regard_to_what_was_in_progress(tmp_path: Path) -> None:
    driver = driver_at(tmp_path)
    for version in range(1, 12):
        batch(driver, version, busy=(InProgress(0, version - 1),))
    assert not batch(driver, 12, busy=(InProgress(0, 11),)).compaction.inputs
    driver = restarted(tmp_path, 12)
    asked_for = [batch(driver, version).compaction.inputs for version in range(13, 19)]
    assert any(deltas and deltas[0].first_version <= 11 for deltas in asked_for)
