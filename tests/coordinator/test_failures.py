"""Completion of a checkpoint with each kind of storage failure at each step."""

from __future__ import annotations

import random
import re
from contextlib import suppress
from pathlib import Path

import pytest

from spark_ckpt.completed import JobStatus
from spark_ckpt.completed.errors import FencedError, UnknownOutcomeError
from spark_ckpt.coordinator.errors import TooManyFailuresError
from spark_ckpt.coordinator.job import Job
from spark_ckpt.errors import CheckpointError, SparkCkptError, StorageError
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segments import SegmentKind
from spark_ckpt.messages import Ack, AckReply, Operator, Outcome, TaskFailed
from spark_ckpt.storage import LocalStorage
from tests.storage.faulty import Fault, FaultyStorage
from tests.support.driver import Driver, check_rows, faulty_environment, load, located, make_segment, restore
from tests.support.invariants import assert_invariants, completed_versions
from tests.support.segments import placed

STEPS = {
    "merged": ("write", r"shared/merged-"),
    "metadata": ("create", r"chk-4(-[0-9]+)?/_metadata"),
    "record": ("create", r"completed/0{19}4\.json"),
}


NO_RETRY = {"inlineThreshold": "0", "tolerableFailures": "0"}


@pytest.fixture
def storage(tmp_path: Path) -> FaultyStorage:
    return FaultyStorage(LocalStorage(tmp_path))


@pytest.fixture
def driver(storage: FaultyStorage) -> Driver:
    """Query with two completed batches; the checkpoint of the third will have id 4."""
    driver = Driver(
        storage.location,
        settings=NO_RETRY,
        environment=faulty_environment(storage),
    )
    driver.batch(1)
    driver.batch(2)
    return driver


def acks_of(driver: Driver, version: int, attempt: int = 0) -> list[Ack]:
    return [
        driver.make_ack(key, version, attempt=attempt, base=driver.base_of(key, version - 1))
        for key in driver.subtasks()
    ]


def up_to_the_last(driver: Driver, job: Job, acks: list[Ack]) -> None:
    for ack in acks[:-1]:
        assert job.acknowledge(ack).outcome is Outcome.SUCCESS


def retry_the_task(driver: Driver, job: Job, last: Ack, attempt: int = 1) -> tuple[AckReply, Ack]:
    """Fails the task of the last ack with the error and runs it again, as Spark does."""
    failed = TaskFailed(driver.stage, 0, last.subtask.partition, attempt - 1, "error", job=driver.run_id)
    job.task_failed(failed)
    again = driver.make_ack(
        last.subtask, last.version, attempt=attempt, base=driver.base_of(last.subtask, last.version - 1)
    )
    return job.acknowledge(again), again


@pytest.mark.parametrize("step", STEPS)
class TestOneFault:
    def test_an_error_is_the_answer_to_the_last_ack_and_names_the_file(
        self, driver: Driver, storage: FaultyStorage, step: str
    ) -> None:
        job = driver.trigger(3)
        acks = acks_of(driver, 3)
        up_to_the_last(driver, job, acks)
        operation, pattern = STEPS[step]
        storage.fail(operation, pattern)
        with pytest.raises(TooManyFailuresError, match=r"batch 2: 1 consecutive failures, 0 are") as caught:
            job.acknowledge(acks[-1])
        assert isinstance(caught.value.__cause__, StorageError)
        assert re.search(pattern, caught.value.__cause__.path)
        assert caught.value.causes == {str(caught.value.__cause__): 1}
        # Committed checkpoints are intact, and the failed attempt has left no files.
        assert completed_versions(driver.location) == [1, 2]
        assert_invariants(driver.location)

    def test_the_next_attempt_of_the_task_completes_it(self, driver: Driver, storage: FaultyStorage, step: str) -> None:
        job = driver.trigger(3)
        acks = acks_of(driver, 3)
        up_to_the_last(driver, job, acks)
        storage.fail(*STEPS[step], times=2)
        with pytest.raises(TooManyFailuresError):
            job.acknowledge(acks[-1])
        with pytest.raises(TooManyFailuresError):
            retry_the_task(driver, job, acks[-1], 1)
        reply, again = retry_the_task(driver, job, acks[-1], 2)
        assert (reply.outcome, reply.completed) == (Outcome.SUCCESS, 4)
        for ack in [*acks[:-1], again]:
            driver.take_over(ack)
        job.housekeeping()
        check_rows(driver, storage, 3)
        assert_invariants(driver.location)

    def test_a_retry_of_the_batch_starts_anew(self, driver: Driver, storage: FaultyStorage, step: str) -> None:
        job = driver.trigger(3)
        acks = acks_of(driver, 3)
        up_to_the_last(driver, job, acks)
        storage.fail(*STEPS[step])
        with pytest.raises(TooManyFailuresError):
            job.acknowledge(acks[-1])
        replies = driver.batch(3)
        assert {reply.outcome for reply in replies} == {Outcome.SUCCESS}
        check_rows(driver, storage, 3)
        assert_invariants(driver.location)

    @pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.LATE, Fault.LOST_REQUEST, Fault.EXISTS_AFTER_DONE])
    def test_an_unknown_outcome_never_loses_or_doubles_a_checkpoint(
        self, driver: Driver, storage: FaultyStorage, step: str, fault: Fault
    ) -> None:
        job = driver.trigger(3)
        acks = acks_of(driver, 3)
        up_to_the_last(driver, job, acks)
        storage.fail(*STEPS[step], fault)
        try:
            reply, last = job.acknowledge(acks[-1]), acks[-1]
        except TooManyFailuresError:
            reply, last = retry_the_task(driver, job, acks[-1])
        storage.deliver()
        assert reply.completed == 4
        for ack in [*acks[:-1], last]:
            driver.take_over(ack)
        job.housekeeping()
        check_rows(driver, storage, 3)
        driver.batch(4)
        check_rows(driver, storage, 4)
        assert_invariants(driver.location, orphans=fault is Fault.LATE)

    def test_after_a_crash_the_next_run_finds_a_whole_location(
        self, driver: Driver, storage: FaultyStorage, step: str
    ) -> None:
        job = driver.trigger(3)
        acks = acks_of(driver, 3)
        up_to_the_last(driver, job, acks)

        class KilledError(BaseException):
            pass

        def kill(operation: str, name: str) -> None:
            if operation == STEPS[step][0] and re.search(STEPS[step][1], name):
                raise KilledError

        storage.before = kill
        driver.hold_deletions()  # a dead driver deletes nothing
        with pytest.raises(KilledError):
            job.acknowledge(acks[-1])
        second = Driver(storage.location, environment=faulty_environment(LocalStorage(storage.location)))
        second.rows, second.ids = driver.rows, driver.ids
        second.trigger(3)
        check_rows(second, storage.inner, 2)
        assert_invariants(driver.location)
        second.batch(3)
        check_rows(second, storage.inner, 3)


class TestARecordOfUnknownFate:
    def stuck(self, driver: Driver, storage: FaultyStorage, fault: Fault) -> tuple[Job, list[Ack]]:
        """Leaves the outcome of version 3's record unknown for longer than the store tries to resolve it."""
        job = driver.trigger(3)
        acks = acks_of(driver, 3)
        up_to_the_last(driver, job, acks)
        storage.fail(*STEPS["record"], fault, times=4)
        storage.fail("read", STEPS["record"][1], times=4)
        with pytest.raises(TooManyFailuresError) as caught:
            job.acknowledge(acks[-1])
        assert isinstance(caught.value.__cause__, UnknownOutcomeError)
        storage.rules.clear()
        return job, acks

    @pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.LOST_REQUEST, Fault.LATE])
    def test_its_files_stay_and_the_next_message_settles_it(
        self, driver: Driver, storage: FaultyStorage, fault: Fault
    ) -> None:
        job, acks = self.stuck(driver, storage, fault)
        assert storage.exists("ckpt/chk-4/_metadata")
        reply, _ = retry_the_task(driver, job, acks[-1])
        # The checkpoint contains the first attempt's state, so the second attempt must adopt it.
        assert (reply.outcome, reply.state_id) == (Outcome.DUPLICATE, acks[-1].state_id)
        storage.deliver()
        for ack in acks:
            driver.take_over(ack)
        check_rows(driver, storage, 3)
        driver.batch(4)
        check_rows(driver, storage, 4)
        assert_invariants(driver.location)

    def test_a_repeated_trigger_settles_it_too(self, driver: Driver, storage: FaultyStorage) -> None:
        job, acks = self.stuck(driver, storage, Fault.LOST_ANSWER)
        job.trigger(driver.make_trigger(3))
        assert job.acknowledge(acks[-1]).outcome is Outcome.SUCCESS
        assert completed_versions(driver.location)[-1] == 3

    def test_a_new_run_finds_it_if_it_is_there(self, driver: Driver, storage: FaultyStorage) -> None:
        self.stuck(driver, storage, Fault.LOST_ANSWER)
        assert completed_versions(driver.location) == [1, 2, 3]
        assert_invariants(driver.location)

    def test_a_late_record_does_not_come_to_be_after_a_claim(self, driver: Driver, storage: FaultyStorage) -> None:
        job, acks = self.stuck(driver, storage, Fault.LATE)
        second = Driver(storage.location, environment=faulty_environment(LocalStorage(storage.location)))
        second.rows, second.ids = driver.rows, driver.ids
        second.trigger(3)
        storage.deliver()
        assert completed_versions(driver.location) == [1, 2]
        with pytest.raises(FencedError):
            job.acknowledge(acks[-1])
        second.batch(3)
        check_rows(second, storage.inner, 3)
        assert_invariants(driver.location)


class TestHousekeeping:
    def test_records_go_before_the_files_they_name(self, driver: Driver, storage: FaultyStorage) -> None:
        storage.log.clear()
        driver.batch(3, driver.subtasks())
        deletions = [name for operation, name in storage.log if operation == "delete"]
        assert deletions[0] == "ckpt/completed/00000000000000000002.json"
        assert deletions[1] == "ckpt/chk-2/_metadata"
        creates = [
            i for i, (operation, name) in enumerate(storage.log) if operation == "create" and "completed" in name
        ]
        assert creates[0] < next(i for i, (operation, _) in enumerate(storage.log) if operation == "delete")

    def test_what_cannot_be_dropped_now_is_dropped_later(self, driver: Driver, storage: FaultyStorage) -> None:
        storage.fail("delete", "completed", times=1)
        driver.batch(3)
        assert completed_versions(driver.location) == [1, 2, 3]
        assert_invariants(driver.location)
        driver.batch(4)
        assert completed_versions(driver.location) == [3, 4]
        assert_invariants(driver.location)


def test_a_state_file_that_a_task_named_and_did_not_write(driver: Driver, storage: FaultyStorage) -> None:
    job = driver.trigger(3)
    acks = acks_of(driver, 3)
    up_to_the_last(driver, job, acks)
    last = acks[-1].subtask
    delta = make_segment(SegmentKind.DELTA, 3, driver.changes_of(last, 3), "shared/delta-never-written")
    with pytest.raises(
        CheckpointError, match="shared/delta-never-written: this state file, written by a task, is missing"
    ):
        job.acknowledge(driver.make_ack(last, 3, delta=delta))
    reply, _ = retry_the_task(driver, job, acks[-1])
    assert reply.completed == 4


def test_a_state_file_that_is_shorter_than_said(driver: Driver, storage: FaultyStorage) -> None:
    storage.write_atomic("ckpt/shared/delta-short", b"x")
    job = driver.trigger(3)
    acks = acks_of(driver, 3)
    up_to_the_last(driver, job, acks)
    delta = make_segment(SegmentKind.DELTA, 3, driver.changes_of(acks[-1].subtask, 3), "shared/delta-short")
    with pytest.raises(CheckpointError, match=r"has \d+ bytes; a task wrote 1"):
        job.acknowledge(driver.make_ack(acks[-1].subtask, 3, delta=delta))


def test_metadata_that_is_there_already_is_left_alone(driver: Driver, storage: FaultyStorage) -> None:
    storage.write_atomic("ckpt/chk-4/_metadata", b"of a driver that is dead")
    driver.batch(3)
    check_rows(driver, storage, 3)
    assert storage.read("ckpt/chk-4/_metadata") == b"of a driver that is dead"
    assert_invariants(driver.location, orphans=True)


def test_metadata_that_another_owner_has_written_is_not_touched(driver: Driver, storage: FaultyStorage) -> None:
    job = driver.trigger(3)
    acks = acks_of(driver, 3)
    up_to_the_last(driver, job, acks)
    second = Driver(storage.location, environment=faulty_environment(LocalStorage(storage.location)))
    second.trigger(3)
    storage.inner.write_atomic("ckpt/chk-4/_metadata", b"somebody else's")
    with pytest.raises(FencedError):
        job.acknowledge(acks[-1])


def test_any_schedule_of_faults_keeps_the_invariants(tmp_path: Path, rng: random.Random) -> None:
    for round_ in range(25):
        storage = FaultyStorage(LocalStorage(tmp_path / str(round_), durable=False))
        operators = (Operator(0, "dedupe", ("default",), 2),)
        driver = Driver(storage.location, operators=operators, environment=faulty_environment(storage))
        driver.settings = {"inlineThreshold": rng.choice(["0", "400"])}
        version = 1
        while version < 8:
            for _ in range(rng.randrange(3)):
                operation = rng.choice(["write", "create", "create", "delete", "read", "size", "list"])
                pattern = rng.choice(["shared", "_metadata", "completed", "."])
                storage.fail(operation, pattern, rng.choice(list(Fault)), rng.choice([1, 1, 2, 6]))
            try:
                driver.batch(version, driver.subtasks() if version > 1 and rng.random() < 0.3 else ())
                version += 1
            except SparkCkptError:
                storage.rules.clear()
                # Requests of the dead process in flight may arrive or not, but not after the next process has started.
                storage.deliver() if rng.random() < 0.5 else storage.lose()
                # Like a restart of the query: a new run that triggers the version after Spark's last commit.
                driver = _restarted(driver, storage, version)
        storage.deliver()
        storage.rules.clear()
        check_rows(driver, storage, 7)
        assert_invariants(storage.inner, orphans=True)
        again = _restarted(driver, storage, 8)
        again.batch(8)
        check_rows(again, storage, 8)
        assert_invariants(storage.inner)


def _restarted(driver: Driver, storage: FaultyStorage, version: int) -> Driver:
    again = Driver(storage.location, operators=driver.operators, settings=driver.settings)
    again.environment = faulty_environment(storage)
    again.trigger(version)
    if version > 1:
        for key in again.subtasks():
            reply = located(again, version - 1, key)
            again.ids[key] = str(reply.state_id)
            again.rows[key] = restore(storage, reply)
    return again


def in_doubt(driver: Driver, storage: FaultyStorage) -> Job:
    """Completes the third batch, whose record exists; all answers about it are lost."""
    job = driver.trigger(3)
    acks = [written(driver, storage, key, 3) for key in driver.subtasks()]
    up_to_the_last(driver, job, acks)
    storage.fail("create", r"completed/0{19}4\.json", Fault.LOST_ANSWER, times=4)
    storage.fail("read", r"completed/0{19}4\.json", times=4)
    with pytest.raises(TooManyFailuresError):
        job.acknowledge(acks[-1])
    return job


def written(driver: Driver, storage: FaultyStorage, key: SubtaskKey, version: int) -> Ack:
    """Ack with its delta in a file."""
    path = f"shared/delta-{version}-{key.store}-{key.partition}"
    made = make_segment(SegmentKind.DELTA, version, driver.changes_of(key, version))
    storage.write_atomic(f"ckpt/{path}", bytes(made.data))
    return driver.make_ack(key, version, delta=placed(made, path))


def test_a_query_that_ends_in_doubt_leaves_the_files_of_the_checkpoint(driver: Driver, storage: FaultyStorage) -> None:
    in_doubt(driver, storage).close(JobStatus.FAILED)
    assert completed_versions(driver.location) == [1, 2, 3]
    assert_invariants(driver.location)


def test_a_driver_fenced_in_doubt_deletes_nothing_that_the_next_one_needs(
    driver: Driver, storage: FaultyStorage
) -> None:
    job = in_doubt(driver, storage)
    second = Driver(storage.location, environment=faulty_environment(LocalStorage(storage.location)))
    second.trigger(4)
    load(second, LocalStorage(storage.location), 3)
    for version in (4, 5, 6):
        second.batch(version)
    for end in (lambda: driver.trigger(4), lambda: job.close(JobStatus.FAILED)):
        with suppress(FencedError):
            end()
    assert completed_versions(driver.location) == [5, 6]
    assert_invariants(driver.location)


def test_files_of_a_dropped_checkpoint_stay_if_a_driver_claims_meanwhile(
    driver: Driver, storage: FaultyStorage
) -> None:
    """A take-over happens between the first driver's ownership check and its deletion of a record."""
    driver.batch(3, driver.subtasks())
    job = driver.trigger(4)
    for ack in acks_of(driver, 4):
        job.acknowledge(ack)
    rivals: list[Driver] = []

    def before(operation: str, name: str) -> None:
        if operation == "delete" and "completed" in name and not rivals:
            rivals.append(Driver(storage.location, environment=faulty_environment(LocalStorage(storage.location))))
            rivals[0].trigger(3)  # needs the checkpoint that is being dropped

    storage.before = before
    job.housekeeping()
    rival = rivals[0]
    load(rival, LocalStorage(storage.location), 2)
    rival.batch(3)
    assert_invariants(driver.location, orphans=True)


def test_files_of_a_dropped_checkpoint_are_deleted_later_if_the_owner_cannot_be_asked(
    driver: Driver, storage: FaultyStorage
) -> None:
    driver.batch(3)
    job = driver.trigger(4)
    for ack in acks_of(driver, 4):
        job.acknowledge(ack)
    dropped = False

    def before(operation: str, name: str) -> None:
        nonlocal dropped
        if operation == "delete" and not dropped:
            dropped = True
            storage.fail("read", "completed")

    storage.before = before
    job.housekeeping()
    assert storage.exists("ckpt/chk-3/_metadata")
    job.housekeeping()
    assert not storage.exists("ckpt/chk-3/_metadata")
    assert_invariants(driver.location)


def test_a_deletion_that_is_carried_out_late_does_not_reach_the_metadata_of_the_next_try(
    driver: Driver, storage: FaultyStorage
) -> None:
    job = driver.trigger(3)
    deletions = driver.hold_deletions()
    acks = acks_of(driver, 3)
    up_to_the_last(driver, job, acks)
    storage.fail(*STEPS["record"])
    with pytest.raises(TooManyFailuresError):
        job.acknowledge(acks[-1])
    _, again = retry_the_task(driver, job, acks[-1])
    assert "ckpt/chk-4/_metadata" in deletions
    for name in deletions:
        storage.delete(name)
    for ack in [*acks[:-1], again]:
        driver.take_over(ack)
    check_rows(driver, storage, 3)
    assert_invariants(driver.location)


def test_a_task_that_fails_in_doubt_keeps_the_files_of_its_other_stores(storage: FaultyStorage) -> None:
    join = (Operator(0, "symmetricHashJoin", ("left", "right"), 1),)
    environment = faulty_environment(storage)
    driver = Driver(storage.location, settings=NO_RETRY, operators=join, environment=environment)
    driver.batch(1)
    driver.batch(2)
    job = in_doubt(driver, storage)
    job.task_failed(TaskFailed(driver.stage, 0, 0, 0, "UnknownOutcomeError", job=driver.run_id))
    assert completed_versions(driver.location) == [1, 2, 3]
    assert_invariants(driver.location)
