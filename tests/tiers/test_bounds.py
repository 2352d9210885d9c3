"""Bounds on what chains write and what a restart reads, over some thousand batches (`make tiers` has more)."""

from __future__ import annotations

import random
from unittest.mock import patch

import pytest

from spark_ckpt.compaction import tiers
from spark_ckpt.compaction.policy import chain_bound
from spark_ckpt.compaction.state_ids import StateIds
from spark_ckpt.config import CheckpointConfig
from tests.tiers.model import Failures, Figures, Workload, World, uniform, zipf

CHANGES = 10_000
MAX_CHAIN = 24


def figures(workload: Workload, batches: int, failures: Failures | None = None, **settings: float) -> Figures:
    """Figures after a warm-up of more than one base."""
    warm_up = 5 * workload.keys // CHANGES // 4
    config = CheckpointConfig(**settings)  # type: ignore[arg-type]
    return World(workload, config, failures or Failures(), random.Random(1)).run(batches, warm_up)


@pytest.mark.parametrize(("keys", "bound"), [(1_000_000, 5.0), (8_000_000, 6.0), (32_000_000, 8.0)])
def test_bytes_written_follow_the_changes(keys: int, bound: float) -> None:
    found = figures(Workload(keys, uniform(keys, CHANGES)), max(1000, keys // CHANGES))
    assert found.bases > 0
    assert found.write_amplification <= bound
    assert found.most_read <= 2.0
    assert found.longest_chain <= MAX_CHAIN


@pytest.mark.parametrize("keys", [1_000_000, 8_000_000])
def test_skewed_changes_write_less(keys: int) -> None:
    uniformly = figures(Workload(keys, uniform(keys, CHANGES)), keys // 2000)
    skewed = figures(Workload(keys, zipf(keys, CHANGES)), keys // 2000)
    assert skewed.write_amplification < uniformly.write_amplification
    assert skewed.most_read <= 2.0
    assert skewed.longest_chain <= MAX_CHAIN


def test_late_and_failed_merges_cost_little() -> None:
    workload = Workload(8_000_000, uniform(8_000_000, CHANGES))
    found = figures(workload, 1600, Failures(wait=3, lost=0.02, failed=0.01, stall=0.02))
    assert found.write_amplification <= 6.0
    assert found.most_read <= 2.0


def test_an_executor_that_can_merge_nothing_writes_bases() -> None:
    workload = Workload(1_000_000, uniform(1_000_000, CHANGES))
    found = figures(workload, 400, Failures(failed=1.0))
    assert found.merges == 0
    assert found.bases > 0
    assert found.longest_chain <= tiers.chain_bound(chain_bound(CheckpointConfig())) + 2


@pytest.mark.parametrize(("batches", "longest"), [(30, MAX_CHAIN), (100, 40)])
def test_a_base_that_takes_many_batches_leaves_the_chain_short(batches: int, longest: int) -> None:
    """Merges go on beside the base, and the bound of chains does not ask for the next one at once. With a hundred
    batches, an executor may write only eight times the changes: hardly more than what it has to."""
    workload = Workload(8_000_000, uniform(8_000_000, CHANGES))
    found = figures(workload, 2000, Failures(per_batch=workload.base_bytes // batches))
    assert found.bases > 0
    assert found.ignored == found.waits == 0
    assert found.write_amplification <= 7.0
    assert found.most_read <= 2.0
    assert found.longest_chain <= longest


@pytest.mark.parametrize("batches", [1, 10, 200, 500])
def test_bases_of_a_large_state_may_take_any_number_of_batches(batches: int) -> None:
    workload = Workload(32_000_000, uniform(32_000_000, CHANGES), partitions=2)
    found = figures(workload, 3500, Failures(per_batch=workload.base_bytes // batches))
    assert found.bases > 0
    assert found.ignored == found.waits == 0
    assert found.most_read <= 2.3
    assert found.longest_chain <= 130


def test_an_executor_that_writes_too_little_in_the_background_makes_batches_wait() -> None:
    """It writes hardly more than the changes, and a base in 500 batches. Then the bound of chains holds."""
    workload = Workload(8_000_000, uniform(8_000_000, CHANGES), partitions=2)
    found = figures(workload, 2000, Failures(per_batch=workload.base_bytes // 500))
    assert found.waits > 0
    assert found.longest_chain <= tiers.chain_bound(chain_bound(CheckpointConfig())) + 2


def test_a_coordinator_that_forgets_the_bases_in_progress_is_noticed() -> None:
    workload = Workload(8_000_000, uniform(8_000_000, CHANGES), partitions=2)
    with patch.object(StateIds, "hold", lambda self, ack, base_version: None):
        found = figures(workload, 1000, Failures(per_batch=workload.base_bytes // 100))
    assert found.ignored > 0
    assert found.bases == 0


def test_not_all_partitions_merge_in_one_batch() -> None:
    workload = Workload(1_000_000, uniform(1_000_000, CHANGES), partitions=32)
    found = figures(workload, 1000)
    assert found.most_steps < 32


def test_many_changes_leave_no_room_for_tiers() -> None:
    workload = Workload(20_000 * 8, uniform(20_000 * 8, 80_000))
    found = figures(workload, 200)
    assert found.merges == 0
    assert found.write_amplification <= 2.6
