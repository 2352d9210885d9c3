"""Which deltas are merged, and when a base is due."""

from __future__ import annotations

import numpy as np
import pytest

from spark_ckpt.checkpoint.chains import Chain, Run
from spark_ckpt.compaction import tiers
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.format.keys import PartitionFilter
from spark_ckpt.format.segment_ref import SegmentRef
from tests.support.segments import segment_ref

CONFIG = CheckpointConfig()
MIB = 1 << 20


def entry(version: int, size: int = MIB, *, is_base: bool = False, covers: int = 1) -> SegmentRef:
    groups, offsets = np.array([1], np.uint32), np.array([0], np.int64)
    first_version = 0 if is_base else version - covers + 1
    return segment_ref(first_version, version, groups, offsets, size, "shared/x", size)


def slot(sizes: list[int], base: int, arriving: int, partition: int = 0) -> Run | None:
    """What the subtask merges in the first slot of its cycle."""
    runs = [tiers.due_run(sizes, base, arriving, partition, version, CONFIG) for version in range(100)]
    return next((run for run in runs if run is not None), None)


def test_a_small_state_has_no_merges() -> None:
    small = Chain("a", 1, (entry(1, tiers.MIN_BASE - 1, is_base=True), entry(2), entry(3)))
    large = Chain("a", 1, (entry(1, tiers.MIN_BASE, is_base=True), entry(2), entry(3)))
    assert not tiers.merges_deltas(small, CONFIG)
    assert tiers.merges_deltas(large, CONFIG)
    assert tiers.merges_deltas(Chain("a", 1, (entry(1), entry(2), entry(3))), CONFIG)


def test_deltas_that_record_every_write_are_not_merged() -> None:
    chain = Chain("a", 1, (entry(1, is_base=True), entry(2), entry(3)))
    assert not tiers.merges_deltas(chain, CheckpointConfig(change_feed="writes"))


def test_segments_of_several_subtasks_are_not_merged() -> None:
    two_bases = Chain("a", 1, (entry(1, is_base=True), entry(1, is_base=True), entry(2), entry(3)))
    overlapping = Chain("a", 1, (entry(1, is_base=True), entry(3), entry(4, covers=3), entry(5)))
    filtered = Chain("a", 1, (entry(1, is_base=True), entry(2), entry(3)))
    filtered.entries[1].filters = (PartitionFilter(2, (0,)),)
    assert not any(tiers.merges_deltas(chain, CONFIG) for chain in (two_bases, overlapping, filtered))


def test_deltas_are_merged_once_they_fill_a_tier() -> None:
    base = 64 * MIB
    # Tiers are a quarter of the next: 16, 4 and 1 MiB; the last is too light for deltas of 512 KiB.
    assert slot([MIB // 2] * 6, base, MIB // 2) is None
    assert slot([MIB // 2] * 8, base, MIB // 2) == Run(0, 8)
    assert slot([4 * MIB, *[MIB // 2] * 8], base, MIB // 2) == Run(1, 9)
    # The deltas of all tiers at once.
    assert slot([4 * MIB] * 3 + [MIB // 2] * 8, base, MIB // 2) == Run(0, 11)


def test_a_heavy_delta_is_not_written_again_with_light_ones() -> None:
    assert slot([30 * MIB, *[MIB // 2] * 8], 64 * MIB, MIB // 2) == Run(1, 9)


def test_a_chain_that_is_too_long_is_shortened_at_little_cost() -> None:
    sizes = [9 * MIB, 5 * MIB, *[2 * MIB] * 5, *[1000] * 10]
    run = tiers.due_run(sizes, 64 * MIB, 0, 0, 1, CONFIG)
    assert run is not None
    assert run.end == len(sizes)
    assert run.end - run.first - 1 >= len(sizes) - CONFIG.max_deltas
    assert sum(sizes[run.first :]) < MIB


def test_a_chain_with_a_base_in_progress_is_shortened_above_it_by_a_few_deltas_at_a_time() -> None:
    def run(free: int, taken: int) -> Run | None:
        return tiers.due_run([MIB] * free, 640 * MIB, 0, 0, 1, CONFIG, taken)

    most = CONFIG.max_deltas
    assert run(4, most - 4) is None
    assert run(4, most - 3) == Run(0, 4)
    # What is in progress may soon leave a better choice.
    assert run(3, most) is None
    assert run(3, 0) is None


def test_a_base_that_is_due_waits_for_no_merge_that_fills_a_tier() -> None:
    sizes = [MIB // 2] * 8
    for version in range(20):
        due = tiers.due_run(sizes, 64 * MIB, MIB // 2, 0, version, CONFIG, is_base_due=True)
        assert due is None
    assert slot(sizes, 64 * MIB, MIB // 2) is not None


@pytest.mark.parametrize("partitions", [4, 8, 32])
def test_subtasks_in_step_do_not_merge_in_the_same_batch(partitions: int) -> None:
    sizes = [MIB // 2] * 8
    for version in range(20):
        runs = [tiers.due_run(sizes, 64 * MIB, MIB // 2, p, version, CONFIG) for p in range(partitions)]
        assert sum(run is not None for run in runs) <= partitions / 4


def test_a_base_is_due_before_the_deltas_outweigh_it_and_at_other_times_in_other_subtasks() -> None:
    def limit(partition: int, version: int) -> int:
        due = (n for n in range(1, 200) if tiers.is_base_due(partition, version, n * MIB, 100 * MIB, MIB, CONFIG))
        return next(due)

    limits = [limit(partition, 7) for partition in range(16)]
    assert 75 <= min(limits) < max(limits) <= 100
    assert len(set(limits)) > 8
    assert [limit(partition, 8) for partition in range(16)] != limits


def test_the_ratio_setting_moves_the_base() -> None:
    half = CheckpointConfig(max_delta_ratio=0.5)
    assert tiers.is_base_due(0, 1, 51 * MIB, 100 * MIB, 0, half)
    assert not tiers.is_base_due(0, 1, 51 * MIB, 100 * MIB, 0, CONFIG)


def test_longer_chains_have_a_larger_fan_out() -> None:
    assert [tiers.fan_out(CheckpointConfig(max_deltas=n)) for n in (1, 8, 16, 32)] == [2, 3, 4, 6]


def test_a_merge_of_16_mib_is_heavy() -> None:
    assert not tiers.is_heavy([entry(1, 8 * MIB), entry(2, 8 * MIB - 1)])
    assert tiers.is_heavy([entry(1, 8 * MIB), entry(2, 8 * MIB)])
