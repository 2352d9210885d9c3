"""Requests for base snapshots, optional and required, and the length of chains."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from spark_ckpt.checkpoint.chains import all_entries
from spark_ckpt.compaction.policy import SMALL_BYTES, chain_bound
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.format.segments import SegmentKind
from spark_ckpt.messages import BaseSnapshot, InProgress, LocateReply, Operator, Outcome
from spark_ckpt.storage import LocalStorage
from tests.support.driver import Driver, check_rows, faulty_environment, load, located, make_segment, restore
from tests.support.invariants import assert_invariants

ONE = (Operator(0, "dedupe", ("default",), 4),)
MAX_DELTAS = 4
BOUND = chain_bound(CheckpointConfig(max_deltas=MAX_DELTAS))


def driver_at(location: Path) -> Driver:
    """New run of the query."""
    return Driver(
        location,
        operators=ONE,
        settings={"chain.maxDeltas": str(MAX_DELTAS)},
        environment=faulty_environment(LocalStorage(location)),
    )


def run_of_one_batch(location: Path, version: int, *, is_fast: bool) -> int:
    """Runs the query for one batch: its stores load the previous version, commit, and are unloaded.

    Args:
        location: checkpoint location of the query.
        version: state version that the batch produces.
        is_fast: true if a base that is due is written before its store acknowledges.

    Returns:
        Largest number of deltas loaded by a store.
    """
    storage = LocalStorage(location)
    driver = driver_at(location)
    job = driver.trigger(version)
    longest = 0
    for key in driver.subtasks():
        found = located(driver, version - 1, key)
        driver.rows[key] = restore(storage, found)
        base = None
        if version > 1:
            driver.ids[key] = str(found.state_id)
            longest = max(longest, deltas_of(found))
            if found.compaction.required or (found.compaction.is_full and is_fast):
                base = driver.base_of(key, version - 1)
        assert job.acknowledge(driver.make_ack(key, version, base=base)).outcome is Outcome.SUCCESS
    assert_invariants(location)
    return longest


def deltas_of(found: LocateReply) -> int:
    """Number of deltas in a chain, without a first delta that serves as the base."""
    return sum(not segment.is_base for segment in found.segments[1:])


def test_the_bound_is_twice_the_length_at_which_a_base_is_due_and_a_few_more_for_short_chains() -> None:
    assert [chain_bound(CheckpointConfig(max_deltas=n)) for n in (1, 4, 16, 1000)] == [5, 8, 32, 2000]


@pytest.mark.parametrize(("is_fast", "longest"), [(True, MAX_DELTAS), (False, BOUND)])
def test_runs_of_one_batch_load_no_more_than_a_bounded_chain(tmp_path: Path, is_fast: bool, longest: int) -> None:
    loaded = [run_of_one_batch(tmp_path, version, is_fast=is_fast) for version in range(1, 25)]
    assert max(loaded) <= longest
    driver = driver_at(tmp_path)
    driver.trigger(25)
    load(driver, LocalStorage(tmp_path), 24)
    check_rows(driver, LocalStorage(tmp_path), 24)


def test_a_store_that_brings_no_base_must_bring_one_with_every_ack_beyond_the_bound(tmp_path: Path) -> None:
    driver = driver_at(tmp_path)
    for version in range(1, BOUND + 6):
        for key, reply in zip(driver.subtasks(), driver.batch(version), strict=True):
            # The first delta serves as the base and does not count.
            assert reply.compaction.required == (version - 1 >= BOUND)
            assert reply.compaction.is_full or not reply.compaction.required
            assert located(driver, version, key).compaction.required == reply.compaction.required
    replies = driver.batch(BOUND + 6, driver.subtasks())
    assert not any(reply.compaction.is_full or reply.compaction.required for reply in replies)
    assert {deltas_of(located(driver, BOUND + 6, key)) for key in driver.subtasks()} == {1}


def test_a_store_that_loads_is_asked_although_another_executor_was_asked_before(tmp_path: Path) -> None:
    driver = driver_at(tmp_path)
    version = 0
    while True:
        version += 1
        asked = [
            key for key, reply in zip(driver.subtasks(), driver.batch(version), strict=True) if reply.compaction.is_full
        ]
        if version > MAX_DELTAS and asked:
            break
    (key, *_) = asked
    found = located(driver, version, key)
    assert found.compaction.is_full
    assert not found.compaction.required
    job = driver.trigger(version + 1)
    assert not job.acknowledge(driver.make_ack(key, version + 1)).compaction.is_full, (
        "asked again before it could bring one"
    )


def test_a_base_as_old_as_the_longest_chain_is_used(tmp_path: Path) -> None:
    driver = driver_at(tmp_path)
    driver.batch(1)
    key = driver.subtasks()[0]
    old = driver.base_of(key, 1)
    for version in range(2, BOUND + 3):
        job, is_last = driver.trigger(version), version == BOUND + 2
        for subtask in driver.subtasks():
            ack = driver.make_ack(subtask, version, base=old if is_last and subtask == key else None)
            if subtask == key and not is_last:
                ack.in_progress = (InProgress(0, 1),)
            job.acknowledge(ack)
            driver.take_over(ack)
    found = located(driver, BOUND + 2, key)
    assert found.segments[0].is_base
    check_rows(driver, LocalStorage(tmp_path), BOUND + 2)


def test_an_empty_state_is_never_asked_for_a_base(tmp_path: Path) -> None:
    driver = driver_at(tmp_path)
    for version in range(1, BOUND + 6):
        job = driver.trigger(version)
        for key in driver.subtasks():
            reply = job.acknowledge(ack := driver.make_ack(key, version, changes={}))
            driver.take_over(ack, {})
            assert not (reply.compaction.is_full or reply.compaction.required)
            assert not located(driver, version - 1, key).compaction.is_full


def test_a_base_of_no_rows_ends_a_chain_of_removals(tmp_path: Path) -> None:
    driver = driver_at(tmp_path)
    driver.batch(1)
    key = driver.subtasks()[0]
    gone = {group: dict.fromkeys(entries) for group, entries in driver.rows[key].items()}
    job = driver.trigger(2)
    for subtask in driver.subtasks():
        changes = gone if subtask == key else {}
        job.acknowledge(ack := driver.make_ack(subtask, 2, changes=changes))
        driver.take_over(ack, changes)
    job = driver.trigger(3)
    for subtask in driver.subtasks():
        base = BaseSnapshot(make_segment(SegmentKind.BASE, 2, {}), driver.ids[key]) if subtask == key else None
        job.acknowledge(ack := driver.make_ack(subtask, 3, base=base, changes={}))
        driver.take_over(ack, {})
    assert located(driver, 3, key).segments == ()
    assert not located(driver, 3, key).compaction.is_full


def test_a_base_that_failed_is_logged_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    driver = driver_at(tmp_path)
    job = driver.trigger(1)
    first, *others = driver.subtasks()
    with caplog.at_level(logging.WARNING):
        job.acknowledge(replace(driver.make_ack(first, 1), compaction_failure="java.io.IOException: No space left"))
    assert str(first) in caplog.text
    assert "No space left" in caplog.text
    for key in others:
        job.acknowledge(driver.make_ack(key, 1))
    assert job.history[-1].failures == {"base snapshot": 1}


class Idle:
    """Query with one busy partition, which writes a lot in each batch; the idle ones wrote only in batch 1."""

    SIZE = 200_000

    def __init__(self, location: Path) -> None:
        self.driver = Driver(
            location,
            operators=ONE,
            settings={"inlineThreshold": "0"},
            environment=faulty_environment(LocalStorage(location)),
        )
        self.busy, *self.idle = self.driver.subtasks()
        self.bases = dict.fromkeys(self.driver.subtasks(), 0)
        self._asked: set[SubtaskKey] = set()

    def batch(self, version: int, first: Mapping[bytes, bytes | None]) -> None:
        """Runs a batch, with the bases requested in the previous one; idle partitions write `first` in batch 1."""
        job = self.driver.trigger(version)
        asked, acks = self._asked, []
        self._asked = set()
        for key in self.driver.subtasks():
            group = self.driver.groups_of(key)[0]
            changes: dict[int, dict[bytes, bytes | None]] = {}
            if key == self.busy:
                changes = {group: {b"large": bytes([version]) * self.SIZE}}
            elif version == 1:
                changes = {group: dict(first)}
            base = self.driver.base_of(key, version - 1) if key in asked else None
            self.bases[key] += base is not None
            reply = job.acknowledge(ack := self.driver.make_ack(key, version, base=base, changes=changes))
            acks.append((ack, changes))
            if reply.compaction.is_full:
                self._asked.add(key)
        for ack, changes in acks:
            self.driver.take_over(ack, changes)
        job.housekeeping()

    def entries(self) -> list[SegmentRef]:
        assert self.driver.job is not None
        return list(all_entries(self.driver.job._parent.table))


def test_a_few_bytes_of_idle_partitions_keep_no_large_files(tmp_path: Path) -> None:
    query = Idle(tmp_path)
    query.batch(1, {b"small": b"x" * 40})
    (first,) = {entry.path for entry in query.entries()}
    versions = 200
    for version in range(2, versions):
        query.batch(version, {})
        if version > 40:
            files = {entry.path: entry.file_size for entry in query.entries()}
            used = sum(entry.size for entry in query.entries())
            # Bases are requested in slots, so bytes that have just become unused stay for one cycle.
            assert sum(files.values()) <= 2 * used + 4 * SMALL_BYTES + 17 * Idle.SIZE
    assert first not in {entry.path for entry in query.entries()}
    assert max(query.bases[key] for key in query.idle) <= versions / 16, "more bases than of a busy partition"
    check_rows(query.driver, LocalStorage(tmp_path), versions - 1)
    assert_invariants(tmp_path)


def test_an_idle_partition_with_much_state_does_not_write_it_again_to_free_little(tmp_path: Path) -> None:
    query = Idle(tmp_path)
    query.batch(1, {b"large": b"x" * (2 * Idle.SIZE)})
    for version in range(2, 60):
        query.batch(version, {})
    assert query.bases[query.busy] > 0
    assert not any(query.bases[key] for key in query.idle)
