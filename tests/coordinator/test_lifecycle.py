"""Abort, retry and announcement of checkpoints, and cleanup at the end of a query."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from spark_ckpt.checkpoint.statistics import CheckpointStatus
from spark_ckpt.completed import JobStatus
from spark_ckpt.completed.errors import FencedError
from spark_ckpt.coordinator.errors import TooManyFailuresError
from spark_ckpt.coordinator.job import Job
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segments import SegmentKind
from spark_ckpt.location.listing import scan
from spark_ckpt.messages import Ack, Decline, Event, Notification, Outcome
from spark_ckpt.storage import LocalStorage
from tests.storage.faulty import Fault, FaultyStorage
from tests.support.clocks import NoClock
from tests.support.driver import Driver, check_rows, faulty_environment, make_segment
from tests.support.invariants import assert_invariants, completed_versions
from tests.support.segments import placed

RECORD = r"completed/0{19}3\.json"


@pytest.fixture
def storage(tmp_path: Path) -> FaultyStorage:
    return FaultyStorage(LocalStorage(tmp_path))


@pytest.fixture
def driver(storage: FaultyStorage) -> Driver:
    return Driver(storage.location, environment=faulty_environment(storage))


def listen(driver: Driver) -> list[Notification]:
    """Notifications to executors from now on."""
    heard: list[Notification] = []
    assert driver.job is not None
    driver.job._notify = heard.append
    return heard


def clock_of(driver: Driver) -> NoClock:
    clock = driver.environment.clock
    assert isinstance(clock, NoClock)
    return clock


def with_file(driver: Driver, storage: FaultyStorage, key: SubtaskKey, version: int) -> Ack:
    """Ack with its delta in a file."""
    made = make_segment(SegmentKind.DELTA, version, driver.changes_of(key, version))
    path = f"shared/delta-{key.partition}-{version}"
    storage.write_atomic(f"ckpt/{path}", bytes(made.data))
    return driver.make_ack(key, version, delta=placed(made, path))


def acknowledge_all(driver: Driver, version: int) -> None:
    assert driver.job is not None
    for ack in [driver.make_ack(key, version) for key in driver.subtasks()]:
        driver.job.acknowledge(ack)
        driver.take_over(ack)


class TestDeclining:
    def declined(self, ack: Ack) -> Decline:
        return Decline(ack.subtask, ack.batch_id, ack.version, ack.task, "no space left", job=ack.job)

    def test_the_acks_of_the_attempt_do_not_count_and_another_attempt_may(
        self, driver: Driver, storage: FaultyStorage
    ) -> None:
        job, key = driver.trigger(1), driver.subtasks()[0]
        ack = with_file(driver, storage, key, 1)
        job.acknowledge(ack)
        job.decline(self.declined(ack))
        assert job.acknowledge(driver.make_ack(key, 1)).outcome is Outcome.DENIED
        again = driver.make_ack(key, 1, attempt=1)
        assert job.acknowledge(again).outcome is Outcome.SUCCESS
        for other in driver.subtasks()[1:]:
            job.acknowledge(driver.make_ack(other, 1))
        (stats,) = job.history
        assert stats.failures == {"declined": 1}
        assert not storage.exists(f"ckpt/{ack.delta.path}")

    def test_of_another_version_nothing_changes(self, driver: Driver) -> None:
        job, key = driver.trigger(1), driver.subtasks()[0]
        ack = driver.make_ack(key, 1)
        job.acknowledge(ack)
        job.decline(replace(self.declined(ack), version=7))
        acknowledge_all(driver, 1)
        assert completed_versions(driver.location) == [1]


class TestExpiry:
    @pytest.fixture
    def job(self, driver: Driver) -> Job:
        driver.settings = {"timeout": "60"}
        return driver.trigger(1)

    def pass_seconds(self, driver: Driver, seconds: float) -> None:
        clock_of(driver).now += int(seconds * 1000)

    def test_a_late_ack_is_discarded_and_names_the_setting_and_who_was_missing(
        self, driver: Driver, storage: FaultyStorage, job: Job
    ) -> None:
        first, second, *_ = driver.subtasks()
        early, late = with_file(driver, storage, first, 1), with_file(driver, storage, second, 1)
        assert job.acknowledge(early).outcome is Outcome.SUCCESS
        self.pass_seconds(driver, 61)
        reply = job.acknowledge(late)
        assert reply.outcome is Outcome.DISCARDED
        assert reply.reason is not None
        assert driver.prefix + "timeout" in reply.reason
        assert "3 of 4 subtasks" in reply.reason
        job.close(JobStatus.FAILED)
        assert list(storage.list("ckpt/shared")) == []

    def test_a_new_side_process_may_complete_it_with_the_acks_that_it_is_told_again(
        self, driver: Driver, storage: FaultyStorage, job: Job
    ) -> None:
        """The JVM also replays the acks of an aborted checkpoint (docs/protocol.md, section 1.5)."""
        first, *others = driver.subtasks()
        early = with_file(driver, storage, first, 1)
        assert job.acknowledge(early).outcome is Outcome.SUCCESS
        self.pass_seconds(driver, 61)
        late = driver.make_ack(others[0], 1)
        assert job.acknowledge(late).outcome is Outcome.DISCARDED

        driver.job = None
        again = driver.trigger(1)
        acks = [early, *(driver.make_ack(other, 1, attempt=1) for other in others)]
        replies = [again.acknowledge(ack) for ack in acks]
        assert [reply.outcome for reply in replies] == [Outcome.SUCCESS] * 4
        assert completed_versions(driver.location) == [1]
        for ack in acks:
            driver.take_over(ack)
        check_rows(driver, storage, 1)

    def test_before_the_time_is_over_nothing_happens(self, driver: Driver, job: Job) -> None:
        self.pass_seconds(driver, 55)
        job.expire()
        assert 0 < (job.seconds_to_expiry or 0) < 6
        acknowledge_all(driver, 1)
        assert completed_versions(driver.location) == [1]
        assert job.seconds_to_expiry is None

    def test_time_alone_gives_it_up_once(self, driver: Driver, job: Job) -> None:
        heard = listen(driver)
        self.pass_seconds(driver, 61)
        assert job.seconds_to_expiry == 0
        job.expire()
        job.expire()
        assert [(n.event, n.version) for n in heard] == [(Event.ABORTED, 1)]
        assert job.seconds_to_expiry is None

    def test_the_batch_can_begin_anew(self, driver: Driver, storage: FaultyStorage, job: Job) -> None:
        self.pass_seconds(driver, 61)
        job.expire()
        driver.batch(1)
        check_rows(driver, storage, 1)
        assert [stats.status for stats in job.history] == [CheckpointStatus.FAILED, CheckpointStatus.COMPLETED]
        assert (job.history[0].detail or "").startswith("expired: 4 of 4 subtasks")

    def test_what_may_be_complete_does_not_expire(self, driver: Driver, storage: FaultyStorage, job: Job) -> None:
        acks = [driver.make_ack(key, 1) for key in driver.subtasks()]
        storage.fail("create", r"completed/0{19}2\.json", Fault.LOST_ANSWER, times=12)
        storage.fail("read", r"completed/0{19}2\.json", times=12)
        for ack in acks[:-1]:
            job.acknowledge(ack)
        with pytest.raises(TooManyFailuresError):
            job.acknowledge(acks[-1])
        storage.rules.clear()
        self.pass_seconds(driver, 600)
        job.expire()
        assert job.acknowledge(acks[-1]).completed == 2

    def test_without_the_setting_nothing_ever_expires(self, tmp_path: Path, storage: FaultyStorage) -> None:
        driver = Driver(tmp_path, environment=faulty_environment(storage))
        job = driver.trigger(1)
        self.pass_seconds(driver, 1e9)
        job.expire()
        assert job.seconds_to_expiry is None
        acknowledge_all(driver, 1)
        assert completed_versions(driver.location) == [1]


class TestToleratedFailures:
    @pytest.mark.parametrize("fault", [Fault.ERROR, Fault.LOST_ANSWER, Fault.LATE, Fault.LOST_REQUEST])
    @pytest.mark.parametrize("failures", [1, 2])
    def test_the_coordinator_tries_again_and_the_task_never_knows(
        self, driver: Driver, storage: FaultyStorage, fault: Fault, failures: int
    ) -> None:
        driver.batch(1)
        if fault is Fault.ERROR:
            storage.fail("create", RECORD, fault, times=failures)
        else:
            # The store reads four times to resolve a lost answer before the coordinator retries the record.
            storage.fail("create", RECORD, fault)
            storage.fail("read", RECORD, times=4 * failures)
        replies = driver.batch(2)
        assert (replies[-1].outcome, replies[-1].completed) == (Outcome.SUCCESS, 3)
        assert driver.job is not None
        assert driver.job.history[-1].failures == {"storage": failures}
        storage.deliver()
        storage.rules.clear()
        check_rows(driver, storage, 2)
        assert_invariants(driver.location)

    def test_pauses_grow(self, driver: Driver, storage: FaultyStorage) -> None:
        storage.fail("create", "_metadata", times=2)
        driver.batch(1)
        assert clock_of(driver).slept == [0.5, 1.0]

    def test_one_more_fails_the_task_and_names_counts_and_causes(self, driver: Driver, storage: FaultyStorage) -> None:
        job = driver.trigger(1)
        storage.fail("create", "_metadata")
        storage.fail("create", "completed/0{19}2", times=2)
        acks = [driver.make_ack(key, 1) for key in driver.subtasks()]
        for ack in acks[:-1]:
            job.acknowledge(ack)
        with pytest.raises(TooManyFailuresError, match=r"3 consecutive failures, 2 are tolerated") as caught:
            job.acknowledge(acks[-1])
        assert sorted(caught.value.causes.values()) == [1, 2]
        assert "(2 times)" in str(caught.value)
        assert driver.prefix + "tolerableFailures" in str(caught.value)
        assert job.acknowledge(acks[-1]).completed == 2

    def test_once_exceeded_each_further_failure_fails_the_task_until_a_success(
        self, driver: Driver, storage: FaultyStorage
    ) -> None:
        job = driver.trigger(1)
        acks = [driver.make_ack(key, 1) for key in driver.subtasks()]
        for ack in acks[:-1]:
            job.acknowledge(ack)
        storage.fail("create", "_metadata", times=4)
        for _ in range(2):
            with pytest.raises(TooManyFailuresError):
                job.acknowledge(acks[-1])
        assert clock_of(driver).slept == [0.5, 1.0]
        assert job.acknowledge(acks[-1]).completed == 2
        driver.ids = {ack.subtask: ack.state_id for ack in acks}
        storage.fail("create", "_metadata", times=2)
        assert driver.batch(2)[-1].completed == 3

    def test_a_driver_that_is_fenced_does_not_try_again(self, driver: Driver, storage: FaultyStorage) -> None:
        driver.batch(1)
        job = driver.trigger(2)
        heard = listen(driver)
        rival = Driver(storage.location, environment=faulty_environment(LocalStorage(storage.location)))
        rival.trigger(2)
        storage.log.clear()
        with pytest.raises(FencedError):
            acknowledge_all(driver, 2)
        assert clock_of(driver).slept == []
        assert [(n.event, n.version) for n in heard] == [(Event.ABORTED, 2)]
        assert (job.history[-1].detail or "").startswith("fenced: ")


class TestNotifications:
    def test_complete_comes_when_the_record_is_there_and_subsumed_when_it_is_gone(
        self, driver: Driver, storage: FaultyStorage
    ) -> None:
        driver.trigger(1)
        seen: list[tuple[Event, int | None, list[int]]] = []
        assert driver.job is not None
        driver.job._notify = lambda n: seen.append((n.event, n.version, completed_versions(driver.location)))
        for version in range(1, 5):
            driver.batch(version)
        assert seen == [
            (Event.COMPLETE, 1, [1]),
            (Event.COMPLETE, 2, [1, 2]),
            (Event.COMPLETE, 3, [1, 2, 3]),
            (Event.SUBSUMED, 1, [2, 3]),
            (Event.COMPLETE, 4, [2, 3, 4]),
            (Event.SUBSUMED, 2, [3, 4]),
        ]

    def test_a_version_that_another_checkpoint_still_has_is_not_subsumed(
        self, driver: Driver, storage: FaultyStorage
    ) -> None:
        driver.batch(1)
        driver.batch(2)
        again = Driver(storage.location, environment=faulty_environment(storage))
        again.rows, again.ids = driver.rows, {}
        again.trigger(2)
        heard = listen(again)
        acknowledge_all(again, 2)
        assert again.job is not None
        again.job.housekeeping()
        assert [(n.event, n.version, n.checkpoint_id) for n in heard] == [(Event.COMPLETE, 2, 5)]
        assert completed_versions(driver.location) == [1, 2]

    def test_what_cannot_be_completed_is_not_announced(self, driver: Driver, storage: FaultyStorage) -> None:
        driver.trigger(1)
        heard = listen(driver)
        storage.fail("create", "_metadata", times=3)
        with pytest.raises(TooManyFailuresError):
            acknowledge_all(driver, 1)
        assert heard == []

    def test_an_outcome_that_was_unknown_is_announced_when_it_is_settled(
        self, driver: Driver, storage: FaultyStorage
    ) -> None:
        job = driver.trigger(1)
        heard = listen(driver)
        storage.fail("create", r"completed/0{19}2\.json", Fault.LOST_ANSWER, times=12)
        storage.fail("read", r"completed/0{19}2\.json", times=12)
        with pytest.raises(TooManyFailuresError):
            acknowledge_all(driver, 1)
        assert heard == []
        storage.rules.clear()
        job.trigger(driver.make_trigger(1))
        assert [(n.event, n.version) for n in heard] == [(Event.COMPLETE, 1)]


class TestTheEndOfAQuery:
    @pytest.mark.parametrize(
        ("cleanup", "deleting"),
        [
            ("retain", []),
            ("deleteOnCancellation", ["cancelled"]),
            ("deleteOnEnd", ["cancelled", "failed", "finished"]),
        ],
    )
    @pytest.mark.parametrize("status", ["finished", "failed", "cancelled", "suspended"])
    def test_what_stays(
        self, driver: Driver, storage: FaultyStorage, cleanup: str, deleting: list[str], status: str
    ) -> None:
        driver.settings = {"cleanup": cleanup, "inlineThreshold": "0"}
        driver.batch(1)
        driver.batch(2)
        assert driver.job is not None
        storage.log.clear()
        driver.job.close(JobStatus(status))
        assert completed_versions(driver.location) == ([] if status in deleting else [1, 2])
        assert bool(list(storage.list("ckpt/shared"))) == (status not in deleting)
        assert_invariants(driver.location)
        deleted = [name for operation, name in storage.log if operation == "delete"]
        assert deleted == sorted(deleted, key=lambda name: "completed" not in name)  # records first

    def test_a_driver_that_is_fenced_deletes_nothing(self, driver: Driver, storage: FaultyStorage) -> None:
        driver.settings = {"cleanup": "deleteOnEnd"}
        driver.batch(1)
        rival = Driver(storage.location, environment=faulty_environment(LocalStorage(storage.location)))
        rival.trigger(2)
        assert driver.job is not None
        driver.job.close(JobStatus.CANCELLED)
        assert completed_versions(driver.location) == [1]
        assert_invariants(driver.location)

    @pytest.mark.parametrize("store", ["filesystem", "standalone"])
    def test_a_run_that_ends_late_deletes_nothing_of_the_next_one(
        self, driver: Driver, storage: FaultyStorage, store: str
    ) -> None:
        """Spark's listener bus may report the end of a run after the query has restarted."""
        driver.settings = {"cleanup": "deleteOnEnd", "inlineThreshold": "0", "store": store}
        driver.batch(1)
        restarted = Driver(storage.location, environment=driver.environment, settings=driver.settings)
        restarted.rows, restarted.ids = driver.rows, driver.ids
        restarted.trigger(2)
        assert driver.job is not None
        driver.job.close(JobStatus.FINISHED)
        restarted.batch(2)
        found = scan(storage)
        assert ([record.version for record in found.records], found.damaged) == ([1, 2], ())

    @pytest.mark.parametrize(("status", "stay"), [("failed", False), ("suspended", True)])
    def test_files_of_acks_stay_for_a_driver_that_comes_back_only(
        self, driver: Driver, storage: FaultyStorage, status: str, stay: bool
    ) -> None:
        job = driver.trigger(1)
        ack = with_file(driver, storage, driver.subtasks()[0], 1)
        job.acknowledge(ack)
        job.close(JobStatus(status))
        assert storage.exists(f"ckpt/{ack.delta.path}") == stay

    def test_the_log_and_the_history_name_the_subtasks_that_are_missing(
        self, driver: Driver, caplog: pytest.LogCaptureFixture
    ) -> None:
        job = driver.trigger(1)
        job.acknowledge(driver.make_ack(driver.subtasks()[0], 1))
        with caplog.at_level(logging.INFO):
            job.close(JobStatus.CANCELLED)
        (stats,) = job.history
        assert (stats.status, stats.acks, stats.expected) == (CheckpointStatus.FAILED, 1, 4)
        assert stats.detail is not None
        assert stats.detail.startswith("query ended: the query is cancelled; 3 of 4 subtasks (operator 0")
        assert stats.detail in caplog.text


def test_an_ack_of_a_subtask_that_is_not_in_the_plan_is_unknown_and_its_file_deleted(
    driver: Driver, storage: FaultyStorage
) -> None:
    job, key = driver.trigger(1), driver.subtasks()[0]
    stranger = replace(with_file(driver, storage, key, 1), subtask=SubtaskKey(3, "default", 0))
    reply = job.acknowledge(stranger)
    assert (reply.outcome, reply.state_id) == (Outcome.UNKNOWN, None)
    assert "operator 3, store default, partition 0 is not a subtask of batch 0" in (reply.reason or "")
    driver.batch(1)
    assert not storage.exists(f"ckpt/{stranger.delta.path}")
    assert job.acknowledge(replace(driver.make_ack(key, 1), subtask=stranger.subtask)).outcome is Outcome.UNKNOWN


def test_a_denied_ack_says_which_attempt_was_first(driver: Driver) -> None:
    job, key = driver.trigger(1), driver.subtasks()[0]
    job.acknowledge(driver.make_ack(key, 1, attempt=0))
    reply = job.acknowledge(driver.make_ack(key, 1, attempt=1))
    assert reply.outcome is Outcome.DENIED
    assert "attempt 1 of stage attempt 0 comes after attempt 0 of stage attempt 0" in (reply.reason or "")


def test_an_ack_of_a_batch_that_nothing_is_known_of_says_which_is_pending(driver: Driver) -> None:
    driver.batch(1)
    job = driver.trigger(2)
    reply = job.acknowledge(driver.make_ack(driver.subtasks()[0], 9))
    assert reply.reason == "no checkpoint of batch 8 is pending; batch 1 is"
