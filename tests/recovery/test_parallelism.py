"""The partitions and key groups of a batch, against those of its checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spark_ckpt.checkpoint.load import CheckpointState, read_checkpoint
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.location.listing import list_completed
from spark_ckpt.messages import Operator
from spark_ckpt.recovery.errors import ParallelismChangedError
from spark_ckpt.recovery.parallelism import check_parallelism
from spark_ckpt.storage import LocalStorage
from tests.support.driver import Driver


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    driver = Driver(tmp_path, settings={"maxParallelism": "64"})
    driver.batch(1)
    return driver


@pytest.fixture
def parent(driver: Driver) -> CheckpointState:
    storage = LocalStorage(Path(driver.location))
    return read_checkpoint(storage, list_completed(storage).records[-1])


def test_the_same_numbers_pass(driver: Driver, parent: CheckpointState) -> None:
    check_parallelism(driver.make_trigger(2), parent, CheckpointConfig.parse({}))
    check_parallelism(driver.make_trigger(2), parent, CheckpointConfig(max_parallelism=64))


def test_a_first_batch_may_have_any(driver: Driver) -> None:
    check_parallelism(driver.make_trigger(1), CheckpointState(), CheckpointConfig(max_parallelism=128))


def test_an_operator_without_state_before_may_have_any(driver: Driver, parent: CheckpointState) -> None:
    trigger = driver.make_trigger(2)
    added = Operator(9, "dedupe", ("default",), 32, 2)
    check_parallelism(replace(trigger, operators=(*trigger.operators, added)), parent, CheckpointConfig())


def test_other_partitions_or_key_groups_are_refused_with_both_numbers(driver: Driver, parent: CheckpointState) -> None:
    trigger = driver.make_trigger(2)
    first, *others = trigger.operators
    had, doubled = first.parallelism, first.parallelism * 2
    changed = replace(trigger, operators=(replace(first, parallelism=doubled), *others))
    with pytest.raises(ParallelismChangedError, match=rf"has {doubled} partitions, .* has {had}\. .*rescale"):
        check_parallelism(changed, parent, CheckpointConfig())
    with pytest.raises(ParallelismChangedError, match="is 128, but the state has 64 key groups"):
        check_parallelism(trigger, parent, CheckpointConfig(max_parallelism=128))
