"""Subsumption on a storage with slow ownership checks, such as an object store."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.completed import JobStatus
from spark_ckpt.completed.errors import FencedError
from spark_ckpt.coordinator.open_job import Environment
from spark_ckpt.coordinator.subsumption import GATHER_SECONDS, GATHERED, deletable_together
from spark_ckpt.messages import Operator
from spark_ckpt.storage import LocalStorage, resolve
from tests.completed.records import record
from tests.storage.faulty import Fault, FaultyStorage
from tests.support.clocks import NoClock
from tests.support.driver import Driver, faulty_environment
from tests.support.invariants import assert_invariants, completed_versions
from tests.support.s3 import S3, count_requests


@pytest.fixture
def storage(tmp_path: Path) -> FaultyStorage:
    storage = FaultyStorage(LocalStorage(tmp_path))
    storage.requests_are_dear = True
    return storage


@pytest.fixture
def driver(storage: FaultyStorage) -> Driver:
    """Query with three completed batches; checkpoint 2, of the first batch, is dropped."""
    driver = Driver(storage.location, settings={"inlineThreshold": "0"}, environment=faulty_environment(storage))
    for version in (1, 2, 3):
        driver.batch(version, driver.subtasks() if version > 1 else ())
    return driver


def wait_a_minute(driver: Driver) -> None:
    clock = driver.environment.clock
    assert isinstance(clock, NoClock)
    clock.now += round(GATHER_SECONDS * 1000)


def test_the_next_checkpoint_shows_who_the_owner_is(driver: Driver, storage: FaultyStorage) -> None:
    assert completed_versions(driver.location) == [2, 3]
    assert storage.exists("ckpt/chk-2/_metadata")
    storage.log.clear()
    driver.batch(4)
    assert not storage.exists("ckpt/chk-2/_metadata")
    assert storage.exists("ckpt/chk-3/_metadata")
    # The new record has the id that a rival's claim would have taken, so only the own claim is checked.
    read = [name for operation, name in storage.log if operation == "read" and "completed" in name]
    assert read == [f"ckpt/completed/{1:020d}.json"]


def test_how_slow_requests_are_says_nothing_about_the_owner(
    driver: Driver, storage: FaultyStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without deferred deletions, a driver fenced off between completion and deletion does not even delete records."""
    monkeypatch.setattr(FaultyStorage, "defers_deletions", False)
    job = driver.trigger(4)
    for key in driver.subtasks():
        job.acknowledge(driver.make_ack(key, 4))
    rival = Driver(storage.location, environment=faulty_environment(LocalStorage(storage.location)))
    rival.trigger(5)
    job.housekeeping()
    assert storage.requests_are_slow
    assert completed_versions(driver.location) == [2, 3, 4]


def test_the_end_of_the_query_leaves_nothing(driver: Driver, storage: FaultyStorage) -> None:
    assert driver.job is not None
    driver.job.close(JobStatus.FINISHED)
    assert not storage.exists("ckpt/chk-2/_metadata")
    assert_invariants(driver.location)


@pytest.mark.parametrize("fault", [Fault.ERROR, Fault.LOST_REQUEST])
def test_checkpoints_stay_whose_ids_could_be_taken_again(storage: FaultyStorage, fault: Fault) -> None:
    driver = Driver(storage.location, environment=faulty_environment(storage), settings={"cleanup": "deleteOnEnd"})
    driver.batch(1)
    assert driver.job is not None
    storage.fail("create", r"0{19}3\.json", fault, times=10)
    driver.job.close(JobStatus.FINISHED)
    assert completed_versions(driver.location) == [1]
    assert_invariants(driver.location)


def test_files_stay_that_a_driver_may_need_which_has_claimed_since(driver: Driver, storage: FaultyStorage) -> None:
    rival = Driver(storage.location, environment=faulty_environment(LocalStorage(storage.location)))
    storage.inner.write_atomic("ckpt/chk-2/keep", b"x")
    rival.trigger(3)  # removes orphans; later files belong to it
    storage.inner.write_atomic("ckpt/chk-2/_metadata", b"x")
    with pytest.raises(FencedError):
        driver.batch(4)
    assert driver.job is not None
    driver.job.close(JobStatus.FAILED)
    assert storage.exists("ckpt/chk-2/_metadata")


def test_what_could_not_be_dropped_is_dropped_by_its_owner_only(driver: Driver, storage: FaultyStorage) -> None:
    storage.fail("delete", "completed", times=1)
    driver.batch(4)
    assert completed_versions(driver.location) == [2, 3, 4]
    rival = Driver(storage.location, environment=faulty_environment(LocalStorage(storage.location)))
    rival.trigger(4)
    assert driver.job is not None
    driver.job.housekeeping()
    assert completed_versions(driver.location) == [2, 3, 4]


def test_several_checkpoints_are_dropped_together(driver: Driver, storage: FaultyStorage) -> None:
    """After a first drop, a minute passes before the next one, or eight more checkpoints."""
    for version in range(4, 4 + GATHERED):
        assert completed_versions(driver.location) == list(range(2, version))
        driver.batch(version)
    assert completed_versions(driver.location) == [GATHERED + 2, GATHERED + 3]
    driver.batch(GATHERED + 4)
    assert_invariants(driver.location)
    assert not storage.exists("ckpt/chk-3/_metadata")


def test_checkpoints_are_dropped_a_minute_after_others(driver: Driver, storage: FaultyStorage) -> None:
    driver.batch(4)
    assert driver.job is not None
    assert driver.job.seconds_to_timer == pytest.approx(GATHER_SECONDS, abs=20)
    wait_a_minute(driver)
    driver.batch(5)
    assert completed_versions(driver.location) == [4, 5]


def test_checkpoints_of_an_idle_query_are_dropped_with_their_files(driver: Driver, storage: FaultyStorage) -> None:
    driver.batch(4)
    assert driver.job is not None
    wait_a_minute(driver)
    driver.job.run_timers()
    assert completed_versions(driver.location) == [3, 4]
    assert not storage.exists("ckpt/chk-3/_metadata")
    assert driver.job.seconds_to_timer is None
    assert_invariants(driver.location)


def test_an_idle_driver_drops_nothing_once_another_has_claimed(driver: Driver, storage: FaultyStorage) -> None:
    driver.batch(4)
    rival = Driver(storage.location, environment=faulty_environment(LocalStorage(storage.location)))
    rival.trigger(5)
    assert driver.job is not None
    wait_a_minute(driver)
    driver.job.run_timers()
    assert completed_versions(driver.location) == [2, 3, 4]
    assert driver.job.seconds_to_timer == pytest.approx(GATHER_SECONDS, abs=20)


def test_of_a_repeated_version_the_earlier_checkpoint_is_dropped_first() -> None:
    """One request may be carried out in part, so these two are dropped by different ones."""
    repeated, again, other = (record(i, version) for i, version in ((1, 1), (2, 1), (3, 2)))
    assert deletable_together([repeated, again, other]) == [[repeated], [again, other]]


@pytest.mark.parametrize("parallelism", [8, 200])
def test_a_batch_costs_at_most_five_requests_on_s3(s3: S3, monkeypatch: pytest.MonkeyPatch, parallelism: int) -> None:
    batches = 20  # the end of the run included: it lists the tags and drops what waits
    driver = Driver(
        f"{s3.url}/location",
        operators=(Operator(0, "dedupe", ("default",), parallelism),),
        settings={"inlineThreshold": "0", "chain.maxDeltas": "4"},
        environment=Environment(open_storage=lambda trigger: resolve(trigger.location)),
    )
    driver.batch(1)
    requests = count_requests(monkeypatch)
    due = driver.subtasks()
    driver.offset_log = "v1\n{}\n{}"
    for version in range(2, 2 + batches):
        driver.batch(version, due[version % 4 :: 4])
    assert driver.job is not None
    driver.job.close(JobStatus.FINISHED)
    assert len(requests) <= 5 * batches
    assert {"put_object", "delete_object", "delete_objects"} <= set(requests)
