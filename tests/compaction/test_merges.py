"""Requests for merged deltas, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.checkpoint.load import read_checkpoint
from spark_ckpt.compaction import tiers
from spark_ckpt.compaction.plan import MERGE_TRIES
from spark_ckpt.features import Feature
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.location.listing import list_completed
from spark_ckpt.messages import Ack, AckReply, MergedDeltas, Outcome
from spark_ckpt.storage import LocalStorage
from tests.compaction.merging_driver import KEY, OTHER, chain_at, driver_at, merged
from tests.support.driver import Changes, Driver, check_rows, load, located
from tests.support.invariants import assert_invariants
from tests.support.segments import placed


@pytest.fixture(autouse=True)
def _merges_of_small_states() -> Iterator[None]:
    with patch.object(tiers, "MIN_BASE", 0):
        yield


def batch(
    driver: Driver, version: int, brought: dict[SubtaskKey, MergedDeltas], changes: Changes | None = None
) -> dict[SubtaskKey, AckReply]:
    """A batch whose acks bring merged deltas."""
    job, acks, replies = driver.trigger(version), list[Ack](), dict[SubtaskKey, AckReply]()
    for key in driver.subtasks():
        ack = replace(driver.make_ack(key, version, changes=changes), merged=brought.get(key))
        replies[key] = job.acknowledge(ack)
        assert replies[key].outcome is Outcome.SUCCESS
        acks.append(ack)
    for ack in acks:
        driver.take_over(ack, changes)
    job.housekeeping()
    return replies


def spans_of(chain: Chain) -> list[tuple[int, int]]:
    """First and last versions of the segments of a chain."""
    return [(entry.first_version, entry.version) for entry in chain.entries]


def until_asked(driver: Driver, version: int = 1) -> tuple[int, tuple[SegmentRef, ...]]:
    """Runs batches until the subtask is asked to merge deltas; the version, and the deltas."""
    while True:
        if demand := batch(driver, version, {})[KEY].compaction.inputs:
            return version, demand
        version += 1
        assert version < 40


@pytest.mark.parametrize("threshold", ["0", "20480"])
def test_merged_deltas_take_the_place_of_their_parts_for_many_batches(tmp_path: Path, threshold: str) -> None:
    driver = driver_at(tmp_path)
    driver.settings["inlineThreshold"] = threshold
    asked: dict[SubtaskKey, tuple[SegmentRef, ...]] = {}
    accepted = 0
    for version in range(1, 120):
        brought = {key: merged(tmp_path, deltas) for key, deltas in asked.items()}
        replies = batch(driver, version, brought)
        for key, sent in brought.items():
            accepted += (sent.first_version, sent.version) in spans_of(chain_at(driver, key))
        asked = {key: reply.compaction.inputs for key, reply in replies.items() if reply.compaction.inputs}
        assert not any(reply.compaction.is_full for reply in replies.values())
        assert all(chain_at(driver, key).deltas <= 7 for key in driver.subtasks())
    assert accepted > 20
    check_rows(driver, LocalStorage(tmp_path), 119)
    assert_invariants(tmp_path)
    again = driver_at(tmp_path)
    again.trigger(120)
    load(again, LocalStorage(tmp_path), 119)
    check_rows(again, LocalStorage(tmp_path), 119)


def test_a_checkpoint_with_merged_deltas_says_so(tmp_path: Path) -> None:
    driver = driver_at(tmp_path)
    version, deltas = until_asked(driver)
    storage = LocalStorage(tmp_path)
    newest = read_checkpoint(storage, list_completed(storage).records[-1])
    assert newest.batch is not None
    assert b"features" not in newest.batch.encode()
    batch(driver, version + 1, {KEY: merged(tmp_path, deltas)})
    newest = read_checkpoint(storage, list_completed(storage).records[-1])
    assert newest.batch is not None
    assert Feature.MERGED_DELTAS.value.encode() in newest.batch.encode()
    spans = spans_of(newest.table[KEY.of_operator][0])
    assert (deltas[0].first_version, deltas[-1].version) in spans
    segments = located(driver, version + 1, KEY).segments
    assert [(segment.first_version, segment.version) for segment in segments] == spans


def test_merged_deltas_may_come_many_batches_later(tmp_path: Path) -> None:
    driver = driver_at(tmp_path)
    version, deltas = until_asked(driver)
    late = merged(tmp_path, deltas)
    for following in range(version + 1, version + 6):
        batch(driver, following, {})
    before = chain_at(driver).deltas
    batch(driver, version + 6, {KEY: late})
    assert chain_at(driver).deltas == before + 1 - (len(deltas) - 1)
    check_rows(driver, LocalStorage(tmp_path), version + 6)


@pytest.mark.parametrize("is_file", [False, True])
def test_merged_deltas_are_ignored_once_a_base_has_replaced_their_parts(tmp_path: Path, is_file: bool) -> None:
    driver = driver_at(tmp_path)
    version, deltas = until_asked(driver)
    late = merged(tmp_path, deltas)
    if is_file:
        late = replace(late, segment=in_file(tmp_path, late))
    driver.batch(version + 1, [KEY])
    assert chain_at(driver).base_version == version
    batch(driver, version + 2, {KEY: late})
    assert len(chain_at(driver).entries) == 3
    assert not any(entry.is_merged for entry in chain_at(driver).entries)
    assert not is_file or not (tmp_path / "ckpt" / str(late.segment.path)).exists()
    check_rows(driver, LocalStorage(tmp_path), version + 2)
    assert_invariants(tmp_path)


def in_file(location: Path, sent: MergedDeltas) -> SegmentRef:
    """The merged deltas in a file of their own."""
    path, segment = "shared/deltas-" + "5" * 32, sent.segment
    (location / "ckpt" / "shared").mkdir(exist_ok=True)
    (location / "ckpt" / path).write_bytes(bytes(segment.data))
    return placed(segment, path)


def test_merged_deltas_of_other_deltas_are_ignored(tmp_path: Path) -> None:
    driver = driver_at(tmp_path)
    version, deltas = until_asked(driver)
    other = replace(merged(tmp_path, deltas), digest="0" * 32)
    batch(driver, version + 1, {KEY: other})
    assert not any(entry.is_merged for entry in chain_at(driver).entries)
    check_rows(driver, LocalStorage(tmp_path), version + 1)


def test_merged_deltas_whose_file_is_lost_are_left_out(tmp_path: Path) -> None:
    driver = driver_at(tmp_path)
    version, deltas = until_asked(driver)
    sent = merged(tmp_path, deltas)
    sent = replace(sent, segment=in_file(tmp_path, sent))
    (tmp_path / "ckpt" / str(sent.segment.path)).unlink()
    batch(driver, version + 1, {KEY: sent})
    assert not any(entry.is_merged for entry in chain_at(driver).entries)
    check_rows(driver, LocalStorage(tmp_path), version + 1)
    assert_invariants(tmp_path)


def test_a_base_of_a_version_amid_merged_deltas_is_ignored(tmp_path: Path) -> None:
    driver = driver_at(tmp_path)
    version, deltas = until_asked(driver)
    amid = driver.base_of(KEY, deltas[-1].version)
    batch(driver, version + 1, {KEY: merged(tmp_path, deltas)})
    job = driver.trigger(version + 2)
    inside = replace(amid, segment=replace(amid.segment, version=deltas[-1].version - 1))
    job.acknowledge(replace(driver.make_ack(KEY, version + 2), base=inside))
    job.acknowledge(driver.make_ack(OTHER, version + 2))
    assert not any(entry.is_base for entry in chain_at(driver).entries)


def test_a_subtask_whose_merges_fail_is_asked_for_a_base(tmp_path: Path) -> None:
    driver = driver_at(tmp_path)
    version, _ = until_asked(driver)
    failures, has_failed, reply = 0, True, AckReply(Outcome.SUCCESS, None)
    while not reply.compaction.is_full:
        version += 1
        job = driver.trigger(version)
        acks = [driver.make_ack(key, version) for key in (KEY, OTHER)]
        if has_failed:
            acks[0].compaction_failure = "DeltaMergeError: no space"
            failures += 1
        reply = job.acknowledge(acks[0])
        job.acknowledge(acks[1])
        for ack in acks:
            driver.take_over(ack)
        has_failed = bool(reply.compaction.inputs)
        assert version < 80
    assert failures == MERGE_TRIES


def test_a_store_keeps_copies_of_deltas_that_will_be_merged(tmp_path: Path) -> None:
    driver = driver_at(tmp_path)
    assert [batch(driver, version, {})[KEY].keep_deltas for version in (1, 2, 3)] == [False, True, True]
    again = driver_at(tmp_path)
    again.trigger(4)
    assert located(again, 3, KEY).keep_deltas


def test_a_store_keeps_no_copies_of_deltas_that_bases_replace(tmp_path: Path) -> None:
    with patch.object(tiers, "MIN_BASE", 1 << 20):
        driver = driver_at(tmp_path)
        assert not any(batch(driver, version, {})[KEY].keep_deltas for version in (1, 2, 3))


def test_a_store_that_loads_is_asked_to_merge(tmp_path: Path) -> None:
    driver = driver_at(tmp_path)
    version, deltas = until_asked(driver)
    for following in range(version + 1, version + 5):
        batch(driver, following, {})
    again = driver_at(tmp_path)
    again.trigger(version + 5)
    demand = located(again, version + 4, KEY).compaction.inputs
    assert demand
    assert demand[-1].version >= deltas[-1].version
