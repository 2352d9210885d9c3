"""Restarts of a query, and locations on which it refuses to start."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt.checkpoint.errors import VersionNotFoundError
from spark_ckpt.completed import FilesystemCompletedCheckpointStore, JobStatus
from spark_ckpt.completed.base import MAX_CLAIMS
from spark_ckpt.completed.errors import FencedError
from spark_ckpt.coordinator.errors import BatchCommittedError
from spark_ckpt.coordinator.open_job import Environment
from spark_ckpt.errors import DamagedCheckpointError, SettingError
from spark_ckpt.format.key_groups import ParallelismError
from spark_ckpt.format.segments import SegmentKind
from spark_ckpt.location.errors import ForeignStateError, LinkedStateError
from spark_ckpt.messages import Operator, Outcome
from spark_ckpt.recovery.errors import ParallelismChangedError
from spark_ckpt.spark_files.rollbacks import ROLLBACKS
from spark_ckpt.storage import LocalStorage
from spark_ckpt.storage.errors import UnsupportedSchemeError
from tests.completed.records import owner
from tests.storage.faulty import FaultyStorage
from tests.support.clocks import NoClock
from tests.support.driver import Driver, check_rows, faulty_environment, load, located, make_segment
from tests.support.invariants import assert_invariants, completed_versions
from tests.support.segments import placed


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def start(storage: LocalStorage, before: Driver | None = None, **changes: Any) -> Driver:
    """New run of the query, with the state expected from the previous run."""
    driver = Driver(storage.location, environment=faulty_environment(storage))
    for name, value in changes.items():
        setattr(driver, name, value)
    if before is not None:
        driver.rows = {key: {g: dict(rows) for g, rows in groups.items()} for key, groups in before.rows.items()}
        driver.ids = dict(before.ids)
    return driver


def run(storage: LocalStorage, versions: int, **changes: Any) -> Driver:
    driver = start(storage, **changes)
    for version in range(1, versions + 1):
        driver.batch(version)
    return driver


def claims(storage: LocalStorage) -> int:
    records = (json.loads(storage.read(f"ckpt/completed/{file.name}")) for file in storage.list("ckpt/completed"))
    return sum(record["kind"] == "claim" for record in records)


class TestRestarts:
    def test_a_new_run_continues_from_the_last_checkpoint(self, storage: LocalStorage) -> None:
        first = run(storage, 5)
        second = start(storage, first)
        second.trigger(6)
        check_rows(second, storage, 5)
        for version in range(6, 12):
            second.batch(version, second.subtasks() if version == 8 else ())
            check_rows(second, storage, version)
        assert_invariants(storage)

    def test_a_batch_that_was_complete_but_not_committed_is_done_again(self, storage: LocalStorage) -> None:
        first = run(storage, 4)
        before = start(storage, first)
        driver = start(storage)
        driver.trigger(4)
        key = driver.subtasks()[0]
        assert located(driver, 3, key).state_id != before.ids[key]
        load(driver, storage, 3)
        replies = driver.batch(4)
        assert {reply.outcome for reply in replies} == {Outcome.SUCCESS}
        assert replies[-1].completed == 7
        assert located(driver, 4, key).state_id == driver.ids[key] != before.ids[key]
        assert completed_versions(storage.location) == [3, 4]  # the older checkpoint of version 4 is superseded
        assert_invariants(storage)

    def test_the_run_before_is_fenced(self, storage: LocalStorage) -> None:
        first = run(storage, 3)
        second = start(storage, first)
        second.trigger(4)
        job = first.trigger(4)
        *others, last = first.subtasks()
        for key in others:
            job.acknowledge(first.make_ack(key, 4))
        with pytest.raises(FencedError, match=second.run_id):
            job.acknowledge(first.make_ack(last, 4))
        for ask in (
            lambda: job.acknowledge(first.make_ack(last, 4)),
            lambda: first.trigger(5),
            lambda: located(first, 3, last),
        ):
            with pytest.raises(FencedError):
                ask()
        second.batch(4)
        check_rows(second, storage, 4)
        assert_invariants(storage, orphans=True)  # the first driver may delete nothing any more

    def test_the_run_before_deletes_nothing_any_more(self, storage: LocalStorage) -> None:
        first = run(storage, 3)
        job = first.trigger(4)
        for key in first.subtasks():
            job.acknowledge(first.make_ack(key, 4))
        second = start(storage)
        second.trigger(5)
        job.housekeeping()
        assert completed_versions(storage.location) == [2, 3, 4]

    def test_a_link_below_ckpt_is_refused_before_anything_is_written(
        self, storage: LocalStorage, tmp_path: Path
    ) -> None:
        victim = tmp_path / "victim"
        victim.mkdir()
        (victim / "payroll.parquet").write_text("x")
        Path(storage.location, "ckpt").mkdir(parents=True)
        Path(storage.location, "ckpt", "shared").symlink_to(victim)
        with pytest.raises(LinkedStateError, match="ckpt/shared is a symbolic link"):
            start(storage).trigger(1)
        assert os.listdir(victim) == ["payroll.parquet"]
        assert os.listdir(Path(storage.location, "ckpt")) == ["shared"]

    def test_what_a_crashed_run_left_is_deleted(self, storage: LocalStorage) -> None:
        run(storage, 3, settings={"inlineThreshold": "0"})
        left = [
            "shared/delta-10571057105710571057105710571057",
            "shared/.delta-10571057105710571057105710571057.crc",
            "chk-9/_metadata",
        ]
        foreign = ["shared/payroll.parquet", "shared/delta-1", "chk-9/other"]
        for name in [*left, *foreign]:
            storage.write_atomic(f"ckpt/{name}", b"x")
        storage.write_atomic("ckpt/savepoint-1/_metadata", b"x")
        second = start(storage)
        second.trigger(4)
        assert not any(storage.exists(f"ckpt/{name}") for name in left)
        for name in foreign:
            assert storage.delete(f"ckpt/{name}")
        assert storage.exists("ckpt/savepoint-1/_metadata")
        storage.delete("ckpt/savepoint-1/_metadata")
        assert_invariants(storage)

    def test_what_a_checkpoint_needs_that_could_not_be_read_at_the_start_stays(self, storage: LocalStorage) -> None:
        """Its files stay when another checkpoint that shares them is dropped before it becomes readable."""
        faulty, settings = FaultyStorage(storage), {"inlineThreshold": "0", "retained": "3"}
        first = Driver(storage.location, settings=settings, environment=faulty_environment(faulty))
        for version in (1, 2, 3):
            first.batch(version, first.subtasks() if version == 3 else ())
        faulty.fail("read", r"chk-3/_metadata")
        second = Driver(storage.location, settings=settings, environment=faulty_environment(faulty))
        second.rows, second.ids = first.rows, first.ids
        second.batch(4)
        assert completed_versions(storage.location) == [2, 3, 4]
        assert_invariants(storage, orphans=True)
        third = start(storage, second, settings=settings)
        third.batch(5)
        assert completed_versions(storage.location) == [3, 4, 5]
        assert_invariants(storage)

    def test_a_lower_version_can_be_asked_for_while_it_is_retained(self, storage: LocalStorage) -> None:
        run(storage, 3, settings={"retained": "10"})
        back = start(storage, settings={"retained": "10"})
        back.trigger(2)
        load(back, storage, 1)
        back.batch(2)
        back.batch(3)
        assert completed_versions(storage.location) == [1, 2, 3, 2, 3]
        assert_invariants(storage)

    def test_settings_may_change_between_runs(self, storage: LocalStorage) -> None:
        first = run(storage, 6, settings={"retained": "5"})
        assert len(completed_versions(storage.location)) == 5
        start(storage, first, settings={"retained": "2", "inlineThreshold": "0"}).batch(7)
        assert completed_versions(storage.location) == [6, 7]
        assert_invariants(storage)


class TestRestartsOfTheSideProcess:
    """The run continues with a new coordinator, to which the last trigger and the acks since then are replayed."""

    def restart(self, driver: Driver) -> Driver:
        return start(LocalStorage(driver.location), driver, run_id=driver.run_id, stage=driver.stage)

    def test_the_pending_checkpoint_completes(self, storage: LocalStorage) -> None:
        first = run(storage, 2)
        job = first.trigger(3)
        acks = [first.make_ack(key, 3) for key in first.subtasks()]
        for ack in acks[:3]:
            job.acknowledge(ack)
        second = self.restart(first)
        again = second.trigger(3)
        replies = [again.acknowledge(ack) for ack in acks]
        assert replies[-1].completed_version == 3
        for ack in acks:
            second.take_over(ack)
        check_rows(second, storage, 3)
        assert_invariants(storage)

    def test_acks_of_a_version_that_was_completed_just_before_are_a_success(self, storage: LocalStorage) -> None:
        first = run(storage, 2)
        job = first.trigger(3)
        acks = [first.make_ack(key, 3) for key in first.subtasks()]
        for ack in acks:
            job.acknowledge(ack)
        second = self.restart(first)
        again = second.trigger(3)
        replies = [again.acknowledge(ack) for ack in acks]
        assert {reply.outcome for reply in replies} == {Outcome.SUCCESS}
        assert {reply.completed_version for reply in replies} == {3}
        other = again.acknowledge(second.make_ack(acks[0].subtask, 3))
        assert (other.outcome, other.state_id) == (Outcome.DUPLICATE, acks[0].state_id)
        for ack in acks:
            second.take_over(ack)
        second.batch(4)
        check_rows(second, storage, 4)

    def test_files_that_tasks_have_written_meanwhile_stay(self, storage: LocalStorage) -> None:
        first = run(storage, 2)
        key = first.subtasks()[0]
        made = make_segment(SegmentKind.DELTA, 3, first.changes_of(key, 3))
        storage.write_atomic("ckpt/shared/delta-written", bytes(made.data))
        second = self.restart(first)
        job = second.trigger(3)
        acks = [second.make_ack(other, 3) for other in second.subtasks()[1:]]
        acks.append(second.make_ack(key, 3, delta=placed(made, "shared/delta-written")))
        for ack in acks:
            job.acknowledge(ack)
            second.take_over(ack)
        check_rows(second, storage, 3)


class TestTwoRuns:
    """Runs that stalled while another one took over."""

    def test_a_run_that_was_followed_cannot_claim_again(self, storage: LocalStorage) -> None:
        first = run(storage, 2)
        start(storage, first).batch(3)
        again = start(storage, first, run_id=first.run_id)
        with pytest.raises(FencedError, match="generation 2"):
            again.trigger(3)
        assert claims(storage) == 2

    @pytest.mark.parametrize("operation", ["list", "create"], ids=["before the claim", "during the claim"])
    def test_the_run_before_commits_the_batch_that_the_next_one_has_planned(
        self, tmp_path: Path, operation: str
    ) -> None:
        """The newer claim wins: the earlier run is fenced off, and the next start continues."""
        first = run(LocalStorage(tmp_path), 4, settings={"retained": "3"})
        storage = FaultyStorage(LocalStorage(tmp_path))

        def commit(happens: str, name: str) -> None:
            if happens == operation:
                storage.inner.write_atomic("commits/2", b"v1")

        storage.before = commit
        late = Driver(tmp_path, environment=faulty_environment(storage))
        for _ in range(2):  # Spark repeats the task
            with pytest.raises(BatchCommittedError, match=f"{first.run_id}.* committed batch 2 .* Start this query"):
                late.trigger(3)
        assert claims(LocalStorage(tmp_path)) == 2
        assert completed_versions(tmp_path) == [2, 3, 4]
        with pytest.raises(FencedError, match=late.run_id):
            first.batch(5)
        next_start = start(LocalStorage(tmp_path), first)
        next_start.batch(5)
        assert completed_versions(tmp_path)[-1] == 5

    def test_a_run_that_has_claimed_so_often_that_no_other_claim_is_left(self, tmp_path: Path) -> None:
        storage = LocalStorage(tmp_path)
        first = run(storage, 4, settings={"retained": "3"})
        storage.write_atomic("commits/2", b"v1")
        late = Driver(tmp_path)
        for _ in range(MAX_CLAIMS):
            store = FilesystemCompletedCheckpointStore(storage, replace(owner("late"), run_id=late.run_id))
            store.recover()
            store.claim()
        assert {claim.owner.run_id for claim in store.claims()} == {late.run_id}
        with pytest.raises(BatchCommittedError, match=first.run_id):
            late.trigger(3)
        assert completed_versions(tmp_path) == [2, 3, 4]

    def test_a_query_that_cannot_continue_fences_no_driver(self, tmp_path: Path) -> None:
        storage = LocalStorage(tmp_path)
        first = run(storage, 4, settings={"retained": "3"})
        storage.write_atomic("commits/2", b"v1")
        with pytest.raises(ParallelismChangedError):
            Driver(tmp_path, operators=(Operator(0, "stateStoreSave", ("default",), 2, 2),)).trigger(3)
        first.batch(5)

    def test_a_commit_that_is_in_flight_is_waited_for(self, tmp_path: Path) -> None:
        run(LocalStorage(tmp_path), 3)
        storage = FaultyStorage(LocalStorage(tmp_path))
        asked = 0

        def commit(operation: str, name: str) -> None:
            nonlocal asked
            asked += name == "commits/2"
            if asked == 4:
                storage.inner.write_atomic("commits/2", b"v1")

        storage.before = commit
        environment = replace(faulty_environment(storage), clock=NoClock(), host="another-host", commit_seconds=10)
        with pytest.raises(BatchCommittedError, match="batch 2"):
            Driver(tmp_path, environment=environment).trigger(3)

    @pytest.mark.parametrize("is_gone", [True, False], ids=["its process is gone", "it is on another host"])
    def test_a_commit_that_does_not_come_is_not_waited_for_any_longer(self, tmp_path: Path, is_gone: bool) -> None:
        gone = subprocess.Popen(["true"])
        gone.wait()
        here = Environment(pid=gone.pid)
        first = Driver(tmp_path, environment=here if is_gone else replace(here, host="another-host"))
        for version in (1, 2, 3):
            first.batch(version)
        clock = NoClock()
        next_start = Driver(tmp_path, environment=Environment(clock=clock, commit_seconds=10))
        next_start.rows = copy.deepcopy(first.rows)
        next_start.trigger(3)
        assert sum(clock.slept) == (0 if is_gone else pytest.approx(10, abs=0.5))

    @pytest.mark.parametrize(("log_epoch", "lists"), [(None, False), (0, True)])
    def test_rollbacks_are_listed_only_for_the_fence_of_the_logs(
        self, tmp_path: Path, log_epoch: int | None, lists: bool
    ) -> None:
        storage = FaultyStorage(LocalStorage(tmp_path))
        Driver(tmp_path, environment=faulty_environment(storage), log_epoch=log_epoch).batch(1)
        assert (("list", ROLLBACKS) in storage.log) is lists

    def test_the_commit_of_a_run_that_has_ended_in_this_process_is_not_waited_for(self, tmp_path: Path) -> None:
        clock = NoClock()
        environment = Environment(clock=clock, commit_seconds=10)
        first = Driver(tmp_path, environment=environment)
        for version in (1, 2, 3):
            first.batch(version)
        assert first.job is not None
        first.job.close(JobStatus.CANCELLED)
        next_start = Driver(tmp_path, environment=environment)
        next_start.rows = copy.deepcopy(first.rows)
        next_start.batch(3)
        assert sum(clock.slept) == 0

    def test_a_run_that_ends_while_its_commit_is_waited_for_commits_nothing_more(self, tmp_path: Path) -> None:
        first = run(LocalStorage(tmp_path), 3)
        storage, asked = FaultyStorage(LocalStorage(tmp_path)), 0
        clock = NoClock()
        environment = replace(faulty_environment(storage), clock=clock, commit_seconds=10)

        def end(operation: str, name: str) -> None:
            nonlocal asked
            asked += name == "commits/2"
            if asked == 3:
                environment.claims.end(first.run_id)

        storage.before = end
        next_start = Driver(tmp_path, environment=environment)
        next_start.trigger(3)
        assert 0 < sum(clock.slept) < 1

    def test_a_driver_that_claims_while_orphans_are_looked_for_loses_no_file(self, tmp_path: Path) -> None:
        settings = {"inlineThreshold": "0"}
        first = run(LocalStorage(tmp_path), 2, settings=settings)
        second = start(LocalStorage(tmp_path), first, settings=settings)
        storage = FaultyStorage(LocalStorage(tmp_path))

        def commit_batch(operation: str, name: str) -> None:
            if (operation, name) == ("list", "ckpt/shared") and claims(LocalStorage(tmp_path)) == 2 and not second.job:
                second.batch(3)

        storage.before = commit_batch
        slow = Driver(tmp_path, environment=faulty_environment(storage))
        with pytest.raises(FencedError):
            slow.trigger(3)
        assert completed_versions(tmp_path) == [2, 3]
        check_rows(second, storage, 3)
        assert_invariants(tmp_path)


class TestLocationsThatCannotBeUsed:
    """Each error names the obstacle. The start does not claim, so it does not disturb a query running there."""

    @pytest.mark.parametrize(
        "file",
        ["state/0/0/1.delta", "state/0/3/2.snapshot", "state/0/0/4.zip", "state/1/0/left-keyToNumValues/7.changelog"],
    )
    def test_state_of_another_provider(self, storage: LocalStorage, file: str) -> None:
        storage.write_atomic(file, b"x")
        with pytest.raises(ForeignStateError, match=file) as caught:
            start(storage).trigger(8)
        assert caught.value.path.endswith(file)
        assert claims(storage) == 0

    def test_directories_without_state_are_no_other_provider(self, storage: LocalStorage) -> None:
        storage.write_atomic("state/0/_metadata/metadata", b"v1")
        storage.write_atomic("state/0/0/_metadata/schema", b"v1")
        with pytest.raises(VersionNotFoundError, match="no checkpoint is retained"):
            start(storage).trigger(8)

    def test_a_new_query_may_start_where_another_provider_was(self, storage: LocalStorage) -> None:
        storage.write_atomic("state/0/0/1.delta", b"x")
        start(storage).batch(1)

    def test_a_version_without_a_checkpoint(self, storage: LocalStorage) -> None:
        run(storage, 3)
        with pytest.raises(
            VersionNotFoundError,
            match=r"no completed checkpoint has version 7 .* are 3 .version 2., 4 .version 3.",
        ):
            start(storage).trigger(8)
        assert claims(storage) == 1

    def test_another_number_of_partitions(self, storage: LocalStorage) -> None:
        run(storage, 2)
        operators = (Operator(0, "stateStoreSave", ("default",), 8, 2),)
        with pytest.raises(
            ParallelismChangedError, match=r"8 partitions.* has 4\. Set spark\.sql\.shuffle\.partitions to 4"
        ):
            start(storage, operators=operators).trigger(3)
        assert claims(storage) == 1

    def test_another_number_of_key_groups(self, storage: LocalStorage) -> None:
        run(storage, 2, settings={"maxParallelism": "64"})
        with pytest.raises(ParallelismChangedError, match=r"maxParallelism is 128, .* 64 key groups"):
            start(storage, settings={"maxParallelism": "128"}).trigger(3)
        start(storage, settings={}).trigger(3)
        assert claims(storage) == 2

    def test_key_groups_that_are_no_multiple_of_the_partitions(self, storage: LocalStorage) -> None:
        with pytest.raises(ParallelismError, match="is not a multiple"):
            start(storage, settings={"maxParallelism": "66"}).trigger(1)
        assert claims(storage) == 0

    def test_a_setting_that_is_not_known(self, storage: LocalStorage) -> None:
        with pytest.raises(SettingError, match=r"did you mean spark.*\.retained"):
            start(storage, settings={"retain": "3"}).trigger(1)

    def test_a_scheme_without_storage(self) -> None:
        with pytest.raises(UnsupportedSchemeError, match="hdfs"):
            Driver("hdfs://host/q", environment=Environment()).trigger(1)


class TestDamage:
    @pytest.fixture
    def driver(self, storage: LocalStorage) -> Driver:
        return run(storage, 4, settings={"inlineThreshold": "0"})

    def damage(self, storage: LocalStorage, name: str, content: bytes | None) -> DamagedCheckpointError:
        if content is None:
            storage.delete(name)
        else:
            storage.write_atomic(name, content)
        with pytest.raises(DamagedCheckpointError) as caught:
            start(storage).trigger(5)
        assert caught.value.path == storage.describe(name)
        assert caught.value.path in str(caught.value)
        assert caught.value.checkpoint_id == 5
        assert claims(storage) == 1
        return caught.value

    def test_metadata_that_is_cut_off(self, storage: LocalStorage, driver: Driver) -> None:
        error = self.damage(storage, "ckpt/chk-5/_metadata", storage.read("ckpt/chk-5/_metadata")[:-10])
        assert error.newest_good == 4
        assert "bytes instead of" in str(error)
        assert "newest intact checkpoint is 4" in str(error)
        assert str(error).endswith(f"start the query again: spark-ckpt rollback {storage.location} --id 4")

    def test_metadata_with_another_byte(self, storage: LocalStorage, driver: Driver) -> None:
        data = bytearray(storage.read("ckpt/chk-5/_metadata"))
        data[len(data) // 2] ^= 1
        assert "digest" in str(self.damage(storage, "ckpt/chk-5/_metadata", bytes(data)))

    def test_metadata_that_is_missing(self, storage: LocalStorage, driver: Driver) -> None:
        assert "missing" in str(self.damage(storage, "ckpt/chk-5/_metadata", None))

    def newest_state_file(self, driver: Driver) -> str:
        path = located(driver, 4, driver.subtasks()[0]).segments[-1].path
        assert path is not None
        return f"ckpt/{path}"

    def test_a_state_file_that_is_missing(self, storage: LocalStorage, driver: Driver) -> None:
        error = self.damage(storage, self.newest_state_file(driver), None)
        assert error.newest_good == 4

    def test_a_state_file_that_is_cut_off(self, storage: LocalStorage, driver: Driver) -> None:
        name = self.newest_state_file(driver)
        assert "bytes instead of" in str(self.damage(storage, name, storage.read(name)[:-1]))

    def test_no_checkpoint_that_is_whole(self, storage: LocalStorage, driver: Driver) -> None:
        first = located(driver, 4, driver.subtasks()[0]).segments[0].path
        error = self.damage(storage, f"ckpt/{first}", None)
        assert error.newest_good is None
        assert "No other retained checkpoint is intact" in str(error)

    def test_the_batch_after_the_good_one_can_be_started(self, storage: LocalStorage, driver: Driver) -> None:
        self.damage(storage, "ckpt/chk-5/_metadata", None)
        back = start(storage)
        back.trigger(4)
        load(back, storage, 3)
        back.batch(4)
        assert located(back, 4, back.subtasks()[0]).state_id == back.ids[back.subtasks()[0]]

    def test_orphans_stay_while_a_retained_checkpoint_cannot_be_read(
        self, storage: LocalStorage, driver: Driver
    ) -> None:
        storage.delete("ckpt/chk-4/_metadata")
        storage.write_atomic("ckpt/shared/base-10571057105710571057105710571057", b"x")
        later = start(storage)
        later.trigger(5)
        assert storage.exists("ckpt/shared/base-10571057105710571057105710571057")
        storage.write_atomic("ckpt/shared/delta-a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1", b"x")
        later.ids = {key: str(located(later, 4, key).state_id) for key in later.subtasks()}
        for version in range(5, 8):
            later.batch(version)
        assert 3 not in completed_versions(storage.location)
        assert not storage.exists("ckpt/shared/base-10571057105710571057105710571057")
        assert storage.exists("ckpt/shared/delta-a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1")


class TestStoresWithoutAQuery:
    def standalone(self, storage: LocalStorage) -> Driver:
        return Driver(
            storage.location,
            run_id=f"standalone:{storage.location}",
            query_id=str(uuid.UUID(int=0)),
            operators=(Operator(0, "standalone", ("default",), 1),),
            sources=(),
            environment=faulty_environment(storage),
        )

    def test_each_ack_completes_a_checkpoint(self, storage: LocalStorage) -> None:
        driver = self.standalone(storage)
        for version in range(1, 6):
            assert driver.batch(version)[0].completed == version + 1
            check_rows(driver, storage, version)
        assert_invariants(storage)

    def test_a_version_may_be_committed_again_without_a_trigger(self, storage: LocalStorage) -> None:
        driver = self.standalone(storage)
        driver.settings = {"retained": "10"}
        driver.batch(1)
        driver.batch(2)
        assert driver.job is not None
        key = driver.subtasks()[0]
        driver.ids[key] = str(located(driver, 1, key).state_id)
        again = driver.make_ack(key, 2)
        reply = driver.job.acknowledge(again)
        assert (reply.outcome, reply.completed) == (Outcome.SUCCESS, 4)
        assert located(driver, 2, key).state_id == again.state_id
        assert driver.job.acknowledge(again).outcome is Outcome.SUCCESS
        assert completed_versions(storage.location) == [1, 2, 2]

    def test_opening_it_again_continues(self, storage: LocalStorage) -> None:
        first = self.standalone(storage)
        first.batch(1)
        first.batch(2)
        second = self.standalone(storage)
        second.rows, second.ids = first.rows, first.ids
        second.batch(3)
        check_rows(second, storage, 3)
