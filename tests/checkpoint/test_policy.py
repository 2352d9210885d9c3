from __future__ import annotations

from collections import Counter

import pytest

from spark_ckpt.checkpoint import tiers
from spark_ckpt.checkpoint.packing import MOST_BYTES, SEGMENT_BYTES
from spark_ckpt.checkpoint.policy import (
    SMALL_BYTES,
    Placement,
    ack_threshold,
    chain_bound,
    discards_checkpoints,
    is_base_due,
    is_rewrite_due,
    most_deltas,
    place,
    retained_checkpoints,
    shipping_limits,
)
from spark_ckpt.completed import JobStatus
from spark_ckpt.config import ACK_MEMORY, ACK_THRESHOLD, MAX_INLINE_BYTES, CheckpointConfig

CONFIG = CheckpointConfig()


def test_small_new_state_stays_inline() -> None:
    assert place(CONFIG.inline_threshold, 0, CONFIG) is Placement.INLINE
    assert place(CONFIG.inline_threshold + 1, 0, CONFIG) is Placement.FILE


def test_the_inline_state_of_one_metadata_is_capped() -> None:
    assert place(100, MAX_INLINE_BYTES - 100, CONFIG) is Placement.INLINE
    assert place(101, MAX_INLINE_BYTES - 100, CONFIG) is Placement.FILE


def test_a_threshold_of_0_writes_files_always() -> None:
    assert place(1, 0, CheckpointConfig(inline_threshold=0)) is Placement.FILE


@pytest.mark.parametrize("cleanup", ["deleteOnEnd", "deleteOnCancellation"])
def test_a_suspended_query_keeps_its_checkpoints_whatever_the_settings_say(cleanup: str) -> None:
    config = CheckpointConfig(cleanup=cleanup)
    assert discards_checkpoints(JobStatus.CANCELLED, config)
    assert not discards_checkpoints(JobStatus.SUSPENDED, config)


def test_a_base_is_due_when_the_chain_is_longest() -> None:
    assert is_base_due(3, 100, CONFIG.max_deltas, 1, 1 << 30, CONFIG)


def test_a_base_is_due_when_the_deltas_outweigh_the_base() -> None:
    assert is_base_due(3, 100, 2, (1 << 20) + 1, 1 << 20, CONFIG)
    assert is_base_due(3, 100, 2, (1 << 20) + 1, 2 << 20, CheckpointConfig(max_delta_ratio=0.5))


def test_a_few_small_deltas_make_no_base_due_however_small_that_is() -> None:
    for version in range(20):
        assert not is_base_due(0, version, 1, SMALL_BYTES // 2, 10, CONFIG)


def test_nothing_changed_since_the_base_means_none_is_due() -> None:
    for version in range(20):
        assert not is_base_due(0, version, 0, 0, 0, CONFIG)


def test_a_base_that_sets_more_free_than_it_costs_is_due() -> None:
    assert is_rewrite_due(1 << 20, 40)
    assert is_rewrite_due((1 << 20) + 1, 1 << 20)
    assert not is_rewrite_due(1 << 20, 1 << 20)
    assert not is_rewrite_due(SMALL_BYTES, 40)


@pytest.mark.parametrize(
    ("delta_bytes", "base_bytes", "longest"),
    [(2000, 6000, 16), (1000, 1_000_000, 16), (30_000, 100_000, 5), (100_000, 100_000, 2), (10, 10, 16)],
)
def test_bases_are_spread_over_the_batches(delta_bytes: int, base_bytes: int, longest: int) -> None:
    deltas = dict.fromkeys(range(200), 0)
    due_in = Counter[int]()
    for version in range(1, 200):
        for partition in deltas:
            deltas[partition] += 1
            if is_base_due(partition, version, deltas[partition], deltas[partition] * delta_bytes, base_bytes, CONFIG):
                assert deltas[partition] <= longest
                deltas[partition] = 0
                due_in[version] += 1
    counts = [due_in[version] for version in range(50, 200)]
    assert max(counts) <= 2.5 * sum(counts) / len(counts)


def test_every_length_that_can_be_set_ends_chains() -> None:
    for max_deltas in (1, 2, 3, 1000):
        assert is_base_due(0, 7, max_deltas, 1, 1 << 40, CheckpointConfig(max_deltas=max_deltas))


def test_never_fewer_than_two_are_retained() -> None:
    assert retained_checkpoints(CheckpointConfig(retained=1)) == 2
    assert retained_checkpoints(CheckpointConfig(retained=7)) == 7


@pytest.mark.parametrize("partitions", [1, 4, 200, 1000, 32767])
@pytest.mark.parametrize("stores", [1, 4])
def test_what_travels_with_the_acks_of_a_batch_fits_into_its_memory(partitions: int, stores: int) -> None:
    config = CheckpointConfig.parse({ACK_MEMORY.key: str(64 << 20)})
    acks = 2 * stores * partitions
    threshold = ack_threshold(acks, config)
    assert 2 * threshold * acks <= 64 << 20, "a delta and a base of each"
    assert threshold <= config.ack_threshold
    assert threshold == config.ack_threshold or 2 * (threshold + 1) * acks > 64 << 20, "no lower than needed"


def test_few_tasks_have_the_whole_threshold() -> None:
    assert ack_threshold(64, CheckpointConfig()) == CheckpointConfig().ack_threshold
    assert ack_threshold(0, CheckpointConfig()) == CheckpointConfig().ack_threshold
    small = CheckpointConfig.parse({ACK_THRESHOLD.key: "10"})
    assert ack_threshold(64, small) == 10


def test_a_file_of_several_tasks_holds_more_than_travels_with_an_ack() -> None:
    limits = shipping_limits(64, CONFIG)
    assert limits.ack_threshold == CONFIG.ack_threshold < limits.shared_file_bytes
    assert 0 < limits.shared_file_wait_ms < 1000, "within a batch"


@pytest.mark.parametrize("subtasks", [1, 4000, 40_000, 131_072, 10**9])
def test_the_segments_of_all_chains_fit_into_metadata(subtasks: int) -> None:
    most = most_deltas(subtasks)
    assert most >= 1
    if subtasks <= 131_072:
        assert subtasks * (most + 1) * SEGMENT_BYTES <= MOST_BYTES
        assert most >= 14
    if subtasks <= 4000:
        assert most > tiers.chain_bound(chain_bound(CheckpointConfig()))
