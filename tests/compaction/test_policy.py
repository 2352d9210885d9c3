from __future__ import annotations

from collections import Counter

import pytest

from spark_ckpt.checkpoint.packing import MAX_BYTES, SEGMENT_BYTES
from spark_ckpt.compaction import tiers
from spark_ckpt.compaction.policy import SMALL_BYTES, chain_bound, is_base_due, is_rewrite_due, most_deltas
from spark_ckpt.config import CheckpointConfig

CONFIG = CheckpointConfig()


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


@pytest.mark.parametrize("subtasks", [1, 4000, 40_000, 131_072, 10**9])
def test_the_segments_of_all_chains_fit_into_metadata(subtasks: int) -> None:
    most = most_deltas(subtasks)
    assert most >= 1
    if subtasks <= 131_072:
        assert subtasks * (most + 1) * SEGMENT_BYTES <= MAX_BYTES
        assert most >= 14
    if subtasks <= 4000:
        assert most > tiers.chain_bound(chain_bound(CheckpointConfig()))
