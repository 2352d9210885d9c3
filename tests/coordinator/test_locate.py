"""Tests of the replies that say where a state is, and how a store loads it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spark_ckpt.checkpoint import restore_plan
from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.checkpoint.load import CheckpointState
from spark_ckpt.checkpoint.restore_plan import AT_ONCE, RestorePlan
from spark_ckpt.format.key_groups import factors
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.rescaling.reassign import reassign
from spark_ckpt.storage import LocalStorage
from tests.storage.faulty import FaultyStorage
from tests.support.driver import Driver, faulty_environment, located
from tests.support.segments import segment_ref

K = 12
NUMBERING = factors(2, K)


def chain(version: int, *groups: int) -> Chain:
    """A chain of a base of version 1 and a delta."""
    blocks = np.array(groups, np.uint32), np.arange(len(groups), dtype=np.int64) * 100
    base = segment_ref(0, 1, *blocks, 100 * len(groups), "shared/base", 4096)
    delta = segment_ref(version, version, *blocks, 100 * len(groups), "shared/delta", 4096)
    return Chain("0" * 32, 10, (base, delta))


def checkpoint(version: int, chains: list[Chain]) -> CheckpointState:
    return CheckpointState(version, table={StoreKey(0, "default"): chains})


def test_an_idle_partition_of_a_batch_has_exact_rows_too() -> None:
    chains = [chain(3, *range(6)), chain(2, *range(6, 12)), Chain("1" * 32, 0)]
    assert [checkpoint(3, chains).has_exact_rows(each) for each in chains] == [True] * 3
    assert [checkpoint(4, chains).has_exact_rows(each) for each in chains] == [False] * 3


@pytest.mark.parametrize("partitions", [1, 4, 5])
def test_a_rescale_estimates_rows(partitions: int) -> None:
    chains = reassign([chain(3, *range(6)), chain(2, *range(6, 12))], partitions, NUMBERING)
    assert not any(checkpoint(4, chains).has_exact_rows(each) for each in chains)


def test_rows_behind_a_filter_are_not_counted() -> None:
    chains = reassign([chain(3, *range(6)), chain(3, *range(6, 12))], 5, NUMBERING)
    filtered = [each for each in chains if any(entry.filters for entry in each.entries)]
    assert filtered
    assert not any(checkpoint(3, chains).has_exact_rows(each) for each in filtered)


def test_only_the_chain_of_the_newest_version_is_compacted(tmp_path: Path) -> None:
    """A repeated task loads an earlier one. What a store would write for that chain is of no use for the next ack."""
    settings = {"chain.maxDeltas": "2"}
    driver = Driver(tmp_path / "q", settings=settings, environment=faulty_environment(LocalStorage(tmp_path / "q")))
    for version in range(1, 6):
        driver.batch(version)
        if version > 1:
            assert not any(located(driver, version - 1, key).compaction.is_full for key in driver.subtasks())
    assert any(located(driver, version, key).compaction.is_full for key in driver.subtasks())


def test_the_reply_has_the_key_group_of_each_block(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "q", environment=faulty_environment(LocalStorage(tmp_path / "q")))
    driver.batch(1)
    for key in driver.subtasks():
        reply = located(driver, 1, key)
        assert reply.restore == RestorePlan("by_key_group")
        assert reply.rows == sum(len(entries) for entries in driver.rows[key].values())
        for segment in reply.segments:
            assert segment.key_groups.size == segment.offsets.size > 0
    start = located(driver, 0, driver.subtasks()[0])
    assert start.restore == AT_ONCE


@pytest.mark.parametrize("is_slow", [False, True])
@pytest.mark.parametrize("restore", ["lazy", "eager"])
def test_the_plan_follows_the_setting_and_the_storage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restore: str, is_slow: bool
) -> None:
    monkeypatch.setattr(restore_plan, "MIN_LAZY_ROWS", 1)
    storage = FaultyStorage(LocalStorage(tmp_path / "q"))
    storage.requests_are_dear = is_slow
    driver = Driver(tmp_path / "q", settings={"restore": restore}, environment=faulty_environment(storage))
    driver.batch(1)
    plans = {located(driver, 1, key).restore for key in driver.subtasks()}
    if restore == "lazy":
        assert plans == {RestorePlan("by_row", rest_after_ms=restore_plan.REST_AFTER_MS)}
    else:
        assert plans == {AT_ONCE if is_slow else RestorePlan("by_key_group")}


def test_a_demand_for_a_base_loads_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore_plan, "MIN_LAZY_ROWS", 1)
    driver = Driver(tmp_path / "q", environment=faulty_environment(LocalStorage(tmp_path / "q")))
    key, version, due = driver.subtasks()[0], 0, False
    while not due:
        version += 1
        driver.batch(version)
        reply = located(driver, version, key)
        due = reply.compaction.is_full
        assert reply.restore.mode == ("by_key_group" if due else "by_row")
    assert version > 1
