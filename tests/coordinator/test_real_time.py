"""Batches in real-time mode: the end offsets follow the acks, and complete the checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spark_ckpt.checkpoint.batch import SPARK_BATCH, SPARK_OFFSETS, SparkBatch
from spark_ckpt.checkpoint.sources import SourceState, sources_of
from spark_ckpt.completed import JobStatus
from spark_ckpt.completed.errors import FencedError
from spark_ckpt.coordinator.errors import RealTimeBatchIncompleteError, TooManyFailuresError
from spark_ckpt.messages import Event, Notification, Outcome, TaskFailed
from spark_ckpt.metadata import loads
from spark_ckpt.spark_files.errors import SparkLogFormatError
from spark_ckpt.spark_files.source_positions import KafkaPosition
from spark_ckpt.storage import LocalStorage, Storage
from tests.storage.faulty import Fault, FaultyStorage
from tests.support.clocks import NoClock
from tests.support.driver import Driver, check_rows, faulty_environment, load
from tests.support.invariants import assert_invariants, completed_versions

INTERVAL_MS = 5000
ENTRY = 'v1\n{"batchWatermarkMs":0,"conf":{}}\n{"topic":{"0":17,"1":4}}\n-'


@pytest.fixture
def storage(tmp_path: Path) -> FaultyStorage:
    return FaultyStorage(LocalStorage(tmp_path / "q"))


@pytest.fixture
def driver(tmp_path: Path, storage: FaultyStorage) -> Driver:
    environment = faulty_environment(storage)
    return Driver(tmp_path / "q", environment=environment, real_time_ms=INTERVAL_MS)


def acknowledge_all(driver: Driver, version: int) -> None:
    """Runs the tasks of a batch."""
    job = driver.trigger(version)
    for key in driver.subtasks():
        ack = driver.make_ack(key, version)
        reply = job.acknowledge(ack)
        assert (reply.outcome, reply.completed) == (Outcome.SUCCESS, None)
        driver.take_over(ack)


def sources(storage: Storage) -> tuple[SourceState, ...]:
    """Sources in the first checkpoint."""
    metadata = loads(storage.read("ckpt/chk-2/_metadata"))
    (batch,) = [state.payload for state in metadata.master_states if state.name == SPARK_BATCH]
    return sources_of(metadata, SparkBatch.decode(batch))


def test_the_end_offsets_complete_the_checkpoint(driver: Driver, storage: FaultyStorage) -> None:
    driver.batch(1)
    acknowledge_all(driver, 2)
    assert completed_versions(driver.location) == [1]
    reply = driver.end_offsets(2, ENTRY)
    assert (reply.completed, reply.completed_version) == (3, 2)
    assert completed_versions(driver.location) == [1, 2]
    assert_invariants(driver.location)
    check_rows(driver, storage, 2)


def test_the_checkpoint_has_the_end_offsets(driver: Driver, storage: FaultyStorage) -> None:
    acknowledge_all(driver, 1)
    driver.end_offsets(1, ENTRY)
    masters = {state.name: state.payload for state in loads(storage.read("ckpt/chk-2/_metadata")).master_states}
    assert masters[SPARK_OFFSETS].decode() == ENTRY
    first, second = sources(storage)
    assert first.positions == (KafkaPosition("topic", 0, 17), KafkaPosition("topic", 1, 4))
    assert not second.positions


def test_entries_with_named_sources_are_read_too(driver: Driver, storage: FaultyStorage) -> None:
    acknowledge_all(driver, 1)
    driver.end_offsets(1, 'v2\n{"conf":{}}\nright:-\nleft:{"topic":{"0":3}}')
    left, right = sources(storage)
    assert (left.name, len(left.positions), right.name, len(right.positions)) == ("left", 1, "right", 0)


def test_end_offsets_that_come_again_find_the_checkpoint(driver: Driver) -> None:
    acknowledge_all(driver, 1)
    first = driver.end_offsets(1)
    assert driver.end_offsets(1) == first
    assert completed_versions(driver.location) == [1]


def test_a_new_side_process_completes_the_checkpoint(driver: Driver, storage: FaultyStorage) -> None:
    """The driver repeats the trigger, the acks and the end offsets (docs/protocol.md, section 1.5)."""
    driver.batch(1)
    job = driver.trigger(2)
    acks = [driver.make_ack(key, 2) for key in driver.subtasks()]
    for ack in acks:
        job.acknowledge(ack)
    driver.job = None  # the process dies
    job = driver.trigger(2)
    for ack in acks:
        assert job.acknowledge(ack).completed is None
        driver.take_over(ack)
    assert driver.end_offsets(2).completed_version == 2
    check_rows(driver, storage, 2)
    assert_invariants(driver.location)


def test_a_new_side_process_finds_the_durable_checkpoint(driver: Driver, storage: FaultyStorage) -> None:
    """The process dies after it has written the record and before it answers."""
    job = driver.trigger(1)
    acks = [driver.make_ack(key, 1) for key in driver.subtasks()]
    for ack in acks:
        job.acknowledge(ack)
    first = driver.end_offsets(1, ENTRY)
    driver.job = None
    job = driver.trigger(1)
    assert {job.acknowledge(ack).outcome for ack in acks} == {Outcome.SUCCESS}
    assert driver.end_offsets(1, ENTRY) == first


def test_a_later_run_starts_from_the_version_before(driver: Driver, tmp_path: Path, storage: FaultyStorage) -> None:
    """A driver dies after the record and before `offsets/1`: the batch has other input when it runs anew."""
    driver.batch(1)
    acknowledge_all(driver, 2)
    driver.end_offsets(2)
    later = Driver(tmp_path / "q", environment=driver.environment, real_time_ms=INTERVAL_MS)
    later.trigger(2)
    load(later, storage, 1)
    later.batch(2)
    check_rows(later, storage, 2)
    assert completed_versions(later.location) == [1, 2]
    assert_invariants(later.location)


def test_a_batch_without_all_acks_has_no_checkpoint(driver: Driver) -> None:
    job = driver.trigger(1)
    for key in driver.subtasks()[1:]:
        job.acknowledge(driver.make_ack(key, 1))
    with pytest.raises(RealTimeBatchIncompleteError, match=r"batch 0 .* 1 of 4 subtasks .* did not acknowledge") as e:
        driver.end_offsets(1)
    assert e.value.batch_id == 0
    assert completed_versions(driver.location) == []


def test_the_acks_of_a_failed_task_do_not_count(driver: Driver) -> None:
    acknowledge_all(driver, 1)
    assert driver.job is not None
    driver.job.task_failed(TaskFailed(driver.stage, 0, 0, 0, "lost", job=driver.run_id))
    with pytest.raises(RealTimeBatchIncompleteError, match="1 of 4 subtasks"):
        driver.end_offsets(1)


@pytest.mark.parametrize("text", ["", "v9\n{}", "v1", "not an entry"])
def test_malformed_end_offsets_complete_nothing(driver: Driver, text: str) -> None:
    acknowledge_all(driver, 1)
    with pytest.raises(SparkLogFormatError, match="offsets/0"):
        driver.end_offsets(1, text)
    assert completed_versions(driver.location) == []
    assert driver.end_offsets(1).completed_version == 1


def test_a_failed_completion_can_be_tried_again_by_a_new_batch(driver: Driver, storage: FaultyStorage) -> None:
    driver.settings = {"tolerableFailures": "0"}
    driver.batch(1)
    acknowledge_all(driver, 2)
    storage.fail("create", "_metadata", Fault.ERROR)
    with pytest.raises(TooManyFailuresError):
        driver.end_offsets(2)
    assert completed_versions(driver.location) == [1]
    assert driver.end_offsets(2).completed_version == 2
    assert_invariants(driver.location)


def test_a_driver_that_was_fenced_completes_nothing(driver: Driver, tmp_path: Path) -> None:
    driver.batch(1)
    acknowledge_all(driver, 2)
    other = Driver(tmp_path / "q", environment=driver.environment, real_time_ms=INTERVAL_MS)
    other.trigger(2)
    with pytest.raises(FencedError):
        driver.end_offsets(2)
    assert completed_versions(driver.location) == [1]


class SetClock(NoClock):
    """A clock that stands still."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


def test_the_interval_does_not_count_against_the_timeout(tmp_path: Path) -> None:
    clock = SetClock()
    environment = replace(faulty_environment(LocalStorage(tmp_path / "q")), clock=clock)
    driver = Driver(tmp_path / "q", environment=environment, settings={"timeout": "2s"}, real_time_ms=INTERVAL_MS)
    told: list[Notification] = []
    acknowledge_all(driver, 1)
    assert driver.job is not None
    driver.job._notify = told.append
    clock.seconds += 6.9
    assert driver.job.seconds_to_expiry == pytest.approx(0.1)
    driver.job.expire()
    assert not told
    clock.seconds += 0.2
    with pytest.raises(RealTimeBatchIncompleteError, match=r"aborted: .* end offsets did not arrive within 2 s"):
        driver.end_offsets(1)
    assert [notification.event for notification in told] == [Event.ABORTED]


def test_a_query_that_stops_before_the_end_offsets_has_no_checkpoint(driver: Driver) -> None:
    driver.batch(1)
    acknowledge_all(driver, 2)
    assert driver.job is not None
    driver.job.close(JobStatus.CANCELLED)
    assert completed_versions(driver.location) == [1]
    assert_invariants(driver.location)
