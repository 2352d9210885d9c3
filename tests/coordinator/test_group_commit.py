"""State files shared by several tasks."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from spark_ckpt.completed import JobStatus
from spark_ckpt.errors import CheckpointError
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segments import SegmentKind
from spark_ckpt.messages import Ack, Outcome, TaskFailed
from spark_ckpt.storage import LocalStorage
from tests.support.driver import Driver, check_rows, faulty_environment, located, make_segment
from tests.support.invariants import assert_invariants
from tests.support.segments import placed


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "q")


@pytest.fixture
def driver(tmp_path: Path, storage: LocalStorage) -> Driver:
    driver = Driver(tmp_path / "q", environment=faulty_environment(storage))
    driver.trigger(1)
    return driver


def acks_of_one_file(driver: Driver, storage: LocalStorage, keys: list[SubtaskKey], attempt: int = 0) -> list[Ack]:
    """Acks of the first version, with their deltas one after another in a single file."""
    path = f"shared/deltas-{uuid.uuid4().hex}"
    made = [make_segment(SegmentKind.DELTA, 1, driver.changes_of(key, 1)) for key in keys]
    data = b"".join(segment.data for segment in made)
    storage.write_atomic(f"ckpt/{path}", data)
    acks, start = [], 0
    for key, segment in zip(keys, made, strict=True):
        delta = placed(segment, path, start, len(data))
        acks.append(driver.make_ack(key, 1, attempt=attempt, delta=delta))
        start += segment.size
    return acks


def acknowledge(driver: Driver, acks: list[Ack]) -> list[Outcome]:
    assert driver.job is not None
    return [driver.job.acknowledge(ack).outcome for ack in acks]


def test_each_subtask_is_restored_from_its_part(driver: Driver, storage: LocalStorage) -> None:
    acks = acks_of_one_file(driver, storage, driver.subtasks())
    assert set(acknowledge(driver, acks)) == {Outcome.SUCCESS}
    for ack in acks:
        driver.take_over(ack)
    check_rows(driver, storage, 1)
    assert_invariants(driver.location)
    paths = {segment.path for key in driver.subtasks() for segment in located(driver, 1, key).segments}
    assert paths == {acks[0].delta.path}
    for version in range(2, 40):
        driver.batch(version, bases=driver.subtasks() if version == 20 else ())
    assert not storage.exists(f"ckpt/{acks[0].delta.path}")
    assert_invariants(driver.location)


def test_a_part_that_does_not_count_leaves_the_others_theirs(driver: Driver, storage: LocalStorage) -> None:
    first, second, *rest = driver.subtasks()
    won = driver.make_ack(first, 1, attempt=0)
    shared = acks_of_one_file(driver, storage, [first, second], attempt=1)
    assert acknowledge(driver, [won]) == [Outcome.SUCCESS]
    assert acknowledge(driver, shared) == [Outcome.DENIED, Outcome.SUCCESS]
    others = [driver.make_ack(key, 1) for key in rest]
    acknowledge(driver, others)
    for ack in [won, shared[1], *others]:
        driver.take_over(ack)
    check_rows(driver, storage, 1)
    assert_invariants(driver.location)


def test_a_file_without_a_part_that_counts_goes_with_the_checkpoint(driver: Driver, storage: LocalStorage) -> None:
    first, second, *rest = driver.subtasks()
    won = [driver.make_ack(key, 1) for key in (first, second)]
    acknowledge(driver, won)
    shared = acks_of_one_file(driver, storage, [first, second], attempt=1)
    assert acknowledge(driver, shared) == [Outcome.DENIED, Outcome.DENIED]
    assert storage.exists(f"ckpt/{shared[0].delta.path}")  # may still hold the part of another task
    acknowledge(driver, [driver.make_ack(key, 1) for key in rest])
    assert not storage.exists(f"ckpt/{shared[0].delta.path}")
    assert_invariants(driver.location)


def test_a_file_of_failed_attempts_goes_when_the_batch_is_given_up(driver: Driver, storage: LocalStorage) -> None:
    assert driver.job is not None
    first, second, *_ = driver.subtasks()
    failed, stays = acks_of_one_file(driver, storage, [first, second])
    acknowledge(driver, [failed, stays])
    driver.job.task_failed(TaskFailed(driver.stage, 0, first.partition, 0, "lost", job=driver.run_id))
    assert storage.exists(f"ckpt/{failed.delta.path}")
    driver.job.task_failed(TaskFailed(driver.stage, 0, second.partition, 0, "lost", job=driver.run_id))
    assert storage.exists(f"ckpt/{failed.delta.path}")
    driver.job.close(JobStatus.CANCELLED)
    assert not storage.exists(f"ckpt/{failed.delta.path}")


def test_a_file_that_is_shorter_than_the_tasks_say(driver: Driver, storage: LocalStorage) -> None:
    acks = acks_of_one_file(driver, storage, driver.subtasks())
    storage.write_atomic(f"ckpt/{acks[0].delta.path}", b"short")
    with pytest.raises(CheckpointError, match="this state file has 5 bytes; a task wrote"):
        acknowledge(driver, acks)
