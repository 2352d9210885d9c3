"""Complete checkpoints over several batches, and acks that do not count."""

from __future__ import annotations

import uuid
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from spark_ckpt.checkpoint import packing
from spark_ckpt.checkpoint.errors import MetadataTooLargeError, StateIdMismatchError, VersionNotFoundError
from spark_ckpt.completed import JobStatus
from spark_ckpt.coordinator.errors import IncompleteCheckpointError
from spark_ckpt.errors import CheckpointError, ProtocolError
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.format.segments import SegmentKind
from spark_ckpt.location.orphans import MINIMUM_GRACE_SECONDS
from spark_ckpt.messages import Ack, BaseSnapshot, Operator, Outcome, TaskFailed
from spark_ckpt.metadata import load
from spark_ckpt.storage import LocalStorage
from spark_ckpt.storage.errors import PathEscapeError
from tests.storage.faulty import FaultyStorage
from tests.support.clocks import NoClock
from tests.support.driver import Driver, apply, check_rows, faulty_environment, located, make_segment, restore
from tests.support.invariants import assert_invariants, completed_versions
from tests.support.segments import placed, segment_ref

JOIN = (
    Operator(0, "symmetricHashJoin", ("left", "right"), 4, 2),
    Operator(1, "globalLimit", ("default",), 1),
)


class WritesWhole(LocalStorage):
    """Storage with whole writes, like an object store: a file written without an error has all its bytes."""

    @property
    def writes_whole(self) -> bool:
        return True


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "q")


@pytest.fixture
def driver(tmp_path: Path, storage: LocalStorage) -> Driver:
    return Driver(tmp_path / "q", operators=JOIN, environment=faulty_environment(storage))


def test_the_last_ack_completes_the_checkpoint(driver: Driver) -> None:
    *others, last = driver.batch(1)
    assert {reply.outcome for reply in [*others, last]} == {Outcome.SUCCESS}
    assert {reply.completed for reply in others} == {None}
    assert (last.completed, last.completed_version) == (2, 1)
    assert assert_invariants(driver.location).checkpoints == 1


def test_what_is_located_restores_the_rows(driver: Driver, storage: LocalStorage) -> None:
    for version in range(1, 30):
        bases = [key for key in driver.subtasks() if version > 1 and (version + key.partition) % 5 == 0]
        driver.batch(version, bases)
        check_rows(driver, storage, version)
        assert_invariants(driver.location)
    assert completed_versions(driver.location) == [28, 29]


@pytest.mark.parametrize("settings", [{"inlineThreshold": "0"}, {"inlineThreshold": "1048576"}, {"retained": "4"}])
def test_wherever_the_state_goes_it_restores(driver: Driver, storage: LocalStorage, settings: dict[str, str]) -> None:
    driver.settings = settings
    for version in range(1, 15):
        driver.batch(version, driver.subtasks() if version % 6 == 0 else ())
        check_rows(driver, storage, version)
    assert_invariants(driver.location)
    assert bool(list(storage.list("ckpt/shared"))) == (settings.get("inlineThreshold") == "0")
    assert len(completed_versions(driver.location)) == int(settings.get("retained", 2))


def test_a_checkpoint_that_no_reader_would_accept_is_not_written(driver: Driver, storage: LocalStorage) -> None:
    driver.batch(1)
    with patch.object(packing, "MAX_BYTES", 10):
        job = driver.trigger(2)
        *acks, last = [driver.make_ack(key, 2) for key in driver.subtasks()]
        for ack in acks:
            job.acknowledge(ack)
        with pytest.raises(MetadataTooLargeError, match="exceed 10 bytes"):
            job.acknowledge(last)
    assert completed_versions(driver.location) == [1]
    driver.batch(2)
    check_rows(driver, storage, 2)
    assert_invariants(driver.location)


def test_a_checkpoint_costs_the_same_objects_at_any_parallelism(tmp_path: Path) -> None:
    for parallelism in (4, 32):
        location = tmp_path / str(parallelism)
        driver = Driver(
            location,
            operators=(Operator(0, "dedupe", ("default",), parallelism),),
            settings={"inlineThreshold": "0"},
            environment=faulty_environment(LocalStorage(location)),
        )
        driver.batch(1)
        files = sorted(str(path.relative_to(location)) for path in location.rglob("*") if path.is_file())
        assert [name.rpartition("-")[0] for name in files if "shared" in name] == ["ckpt/shared/merged"]
        assert len(files) == 4  # claim, record, _metadata, one state file


def test_a_base_shortens_the_chain_and_frees_the_files(driver: Driver, storage: LocalStorage) -> None:
    driver.settings = {"inlineThreshold": "0"}
    for version in range(1, 6):
        driver.batch(version)
    key = driver.subtasks()[0]
    assert len(located(driver, 5, key).segments) == 5
    driver.batch(6, driver.subtasks())
    assert [segment.is_base for segment in located(driver, 6, key).segments] == [True, False]
    driver.batch(7)
    assert len(list(storage.list("ckpt/shared"))) == 2  # bases of 5 with deltas of 6, deltas of 7


def test_large_state_stays_in_the_files_that_tasks_have_written(driver: Driver, storage: LocalStorage) -> None:
    job = driver.trigger(1)
    for key in driver.subtasks():
        path = f"shared/delta-{uuid.uuid4().hex}"
        made = make_segment(SegmentKind.DELTA, 1, driver.changes_of(key, 1))
        storage.write_atomic(f"ckpt/{path}", bytes(made.data))
        ack = driver.make_ack(key, 1, delta=placed(made, path))
        job.acknowledge(ack)
        driver.take_over(ack)
        assert located_paths(driver, 1, key, ack) in ([path], None)
    check_rows(driver, storage, 1)
    assert_invariants(driver.location)


def located_paths(driver: Driver, version: int, key: SubtaskKey, ack: Ack) -> list[str | None] | None:
    try:
        return [segment.path for segment in located(driver, version, key, ack.state_id).segments]
    except VersionNotFoundError:
        return None  # not complete yet


def test_a_batch_without_changes_is_a_checkpoint_too(driver: Driver, storage: LocalStorage) -> None:
    driver.batch(1)
    job = driver.trigger(2)
    for key in driver.subtasks():
        ack = driver.make_ack(key, 2, changes={})
        reply = job.acknowledge(ack)
        driver.take_over(ack, {})
    assert reply.completed == 3
    check_rows(driver, storage, 2)
    assert_invariants(driver.location)


def test_metadata_says_what_the_batch_was(driver: Driver) -> None:
    (Path(driver.location) / "offsets").mkdir(parents=True)
    (Path(driver.location) / "offsets" / "0").write_text("v1\n{}\n")
    driver.batch(1)
    metadata = load(str(Path(driver.location) / "ckpt" / "chk-2"))
    assert metadata.checkpoint_id == 2
    assert [state.name for state in metadata.master_states] == [
        "spark-batch",
        "spark-offsets",
        "spark-history",
        "spark-subtasks",
    ]
    assert [operator.parallelism for operator in metadata.operator_states] == [4, 4, 1, 1]
    assert {operator.max_parallelism for operator in metadata.operator_states} == {1024}


def test_version_0_has_no_state(driver: Driver) -> None:
    driver.trigger(1)
    reply = located(driver, 0, driver.subtasks()[0])
    assert (reply.state_id, reply.segments, reply.rows, reply.operator) == (None, (), 0, "symmetricHashJoin")
    assert reply.max_parallelism == 1024


def test_the_version_before_the_newest_can_be_located_too(driver: Driver, storage: LocalStorage) -> None:
    driver.batch(1)
    driver.batch(2)
    before = {key: {g: dict(rows) for g, rows in driver.rows[key].items() if rows} for key in driver.subtasks()}
    driver.batch(3)
    for key in driver.subtasks():
        assert restore(storage, located(driver, 2, key)) == before[key]


class TestAcksThatDoNotCount:
    def test_a_completed_version_names_the_state_that_counts(self, driver: Driver) -> None:
        driver.batch(1)
        assert driver.job is not None
        key = driver.subtasks()[0]
        again = driver.job.acknowledge(driver.make_ack(key, 1, stage=99))
        assert (again.outcome, again.state_id) == (Outcome.DUPLICATE, driver.ids[key])
        assert (again.completed, again.completed_version) == (None, 1)
        own = driver.job.acknowledge(driver.make_ack(key, 1, state_id=driver.ids[key]))
        assert (own.outcome, own.completed) == (Outcome.SUCCESS, 2)

    def test_a_copy_does_not_win_against_the_attempt_that_completed_the_checkpoint(self, driver: Driver) -> None:
        """Otherwise Spark would combine the copy's output with the other attempt's state."""
        driver.batch(1)
        assert driver.job is not None
        key = driver.subtasks()[-1]
        copy = driver.make_ack(key, 1, attempt=1)
        assert driver.job.acknowledge(copy).outcome is Outcome.DENIED
        task = copy.task
        driver.job.task_failed(TaskFailed(task.stage_id, task.stage_attempt, task.partition, 0, "lost", job=copy.job))
        reply = driver.job.acknowledge(driver.make_ack(key, 1, attempt=1))
        assert (reply.outcome, reply.state_id) == (Outcome.DUPLICATE, driver.ids[key])

    def test_a_late_ack_does_not_pass_for_the_end_of_the_next_checkpoint(self, driver: Driver) -> None:
        """A late ack reports no completion, because the JVM replays only acks after the last reported completion."""
        driver.batch(1)
        late = driver.make_ack(driver.subtasks()[0], 1, stage=99)
        job = driver.trigger(2)
        assert job.acknowledge(driver.make_ack(driver.subtasks()[0], 2)).outcome is Outcome.SUCCESS
        reply = job.acknowledge(late)
        assert (reply.outcome, reply.completed) == (Outcome.DUPLICATE, None)

    def test_a_stage_that_runs_twice_keeps_its_first_states(self, driver: Driver, storage: LocalStorage) -> None:
        job = driver.trigger(1)
        acks = {key: driver.make_ack(key, 1, stage=1) for key in driver.subtasks()}
        first = driver.subtasks()[0]
        job.acknowledge(acks[first])
        for key in driver.subtasks():
            reply = job.acknowledge(driver.make_ack(key, 1, stage=2) if key == first else acks[key])
            assert reply.outcome is (Outcome.DUPLICATE if key == first else Outcome.SUCCESS)
        assert located(driver, 1, first).state_id == acks[first].state_id

    def test_an_ack_of_another_version_is_discarded(self, driver: Driver) -> None:
        driver.batch(1)
        driver.trigger(2)
        assert driver.job is not None
        for version in (3, 9):
            ack = driver.make_ack(driver.subtasks()[0], version)
            assert driver.job.acknowledge(ack).outcome is Outcome.DISCARDED

    def test_files_of_acks_that_do_not_count_are_deleted(self, driver: Driver, storage: LocalStorage) -> None:
        job = driver.trigger(1)
        key, *others = driver.subtasks()

        def ack_with_file(attempt: int) -> Ack:
            path = f"shared/delta-{uuid.uuid4().hex}"
            made = make_segment(SegmentKind.DELTA, 1, driver.changes_of(key, 1))
            storage.write_atomic(f"ckpt/{path}", bytes(made.data))
            return driver.make_ack(key, 1, attempt=attempt, delta=placed(made, path))

        lost, denied, failed, counted = (ack_with_file(attempt) for attempt in (0, 1, 0, 2))
        assert job.acknowledge(lost).outcome is Outcome.SUCCESS
        assert job.acknowledge(lost).outcome is Outcome.SUCCESS
        assert job.acknowledge(denied).outcome is Outcome.DENIED
        job.task_failed(TaskFailed(driver.stage, 0, key.partition, 0, "lost", job=driver.run_id))
        assert job.acknowledge(failed).outcome is Outcome.DENIED
        assert job.acknowledge(counted).outcome is Outcome.SUCCESS
        for each in (lost, denied, failed, counted):  # may be replayed to the next side process
            assert storage.exists(f"ckpt/{each.delta.path}")
        for subtask in others:
            job.acknowledge(driver.make_ack(subtask, 1, attempt=2 if subtask.partition == key.partition else 0))
        assert completed_versions(driver.location) == [1]
        assert storage.exists(f"ckpt/{counted.delta.path}")
        for each in (lost, denied, failed):
            assert not storage.exists(f"ckpt/{each.delta.path}")
        driver.take_over(counted)
        driver.trigger(2)
        with pytest.raises(CheckpointError, match="discarded with an earlier attempt"):
            job.acknowledge(driver.make_ack(key, 2, delta=lost.delta))

    def test_the_attempt_that_replaces_a_failed_one_is_in_the_checkpoint(
        self, driver: Driver, storage: LocalStorage
    ) -> None:
        job = driver.trigger(1)
        first, *rest = driver.subtasks()
        job.acknowledge(driver.make_ack(first, 1, attempt=0))
        assert job.acknowledge(driver.make_ack(first, 1, attempt=1)).outcome is Outcome.DENIED
        job.task_failed(TaskFailed(driver.stage, 0, first.partition, 0, "executor lost", job=driver.run_id))
        acks = [driver.make_ack(key, 1, attempt=1 if key.partition == first.partition else 0) for key in [first, *rest]]
        for ack in acks:
            reply = job.acknowledge(ack)
            driver.take_over(ack)
        assert reply.completed == 2
        check_rows(driver, storage, 1)
        assert located(driver, 1, first).state_id == acks[0].state_id


class TestTriggers:
    def test_a_repeated_trigger_keeps_the_acks(self, driver: Driver) -> None:
        job = driver.trigger(1)
        first, *rest = driver.subtasks()
        job.acknowledge(driver.make_ack(first, 1, stage=7))
        job.trigger(driver.make_trigger(1))
        replies = [job.acknowledge(driver.make_ack(key, 1, stage=7)) for key in rest]
        assert replies[-1].completed == 2

    def test_a_trigger_of_a_completed_version_changes_nothing(self, driver: Driver) -> None:
        driver.batch(1)
        driver.trigger(1)
        assert driver.job is not None
        key = driver.subtasks()[0]
        assert driver.job.acknowledge(driver.make_ack(key, 1)).outcome is Outcome.DUPLICATE
        driver.batch(2)

    def test_a_batch_that_left_subtasks_out_is_found_out_by_the_next(self, driver: Driver) -> None:
        driver.batch(1)
        job = driver.trigger(2)
        for key in driver.subtasks()[:5]:
            job.acknowledge(driver.make_ack(key, 2))
        with pytest.raises(IncompleteCheckpointError, match=r"version 2 .* 4 of 9 subtasks") as caught:
            driver.trigger(3)
        assert caught.value.version == 2
        late = job.acknowledge(driver.make_ack(driver.subtasks()[5], 2))
        assert late.outcome is Outcome.DISCARDED

    def test_the_batch_can_be_repeated_after_that(self, driver: Driver, storage: LocalStorage) -> None:
        driver.batch(1)
        job = driver.trigger(2)
        job.acknowledge(driver.make_ack(driver.subtasks()[0], 2))
        with pytest.raises(IncompleteCheckpointError):
            driver.trigger(3)
        driver.batch(2)
        driver.batch(3)
        check_rows(driver, storage, 3)


class TestBases:
    def test_a_base_of_a_state_that_did_not_count_is_not_used(self, driver: Driver, storage: LocalStorage) -> None:
        driver.batch(1)
        key = driver.subtasks()[0]
        wrong = replace(driver.base_of(key, 1), state_id=str(uuid.uuid4()))
        self._batch_with(driver, 2, key, wrong)
        assert [segment.is_base for segment in located(driver, 2, key).segments] == [False, False]
        check_rows(driver, storage, 2)

    @pytest.mark.parametrize("content", [None, b"cut off"])
    @pytest.mark.parametrize("writes_whole", [True, False])
    def test_a_base_whose_file_is_lost_is_left_out(
        self, tmp_path: Path, content: bytes | None, writes_whole: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A base may have waited days for its ack, so its file is checked even on storage with whole writes."""
        storage = WritesWhole(tmp_path) if writes_whole else LocalStorage(tmp_path)
        clock = NoClock()
        environment = replace(faulty_environment(storage), clock=clock)
        driver = Driver(tmp_path, operators=JOIN, environment=environment)
        driver.batch(1)
        lost, there = driver.subtasks()[:2]
        bases = {}
        for key in (lost, there):
            base = driver.base_of(key, 1)
            path = "shared/base-" + uuid.uuid4().hex
            data = content if key == lost else bytes(base.segment.data)
            if data is not None:
                storage.write_atomic(f"ckpt/{path}", data)
            bases[key] = replace(base, segment=placed(base.segment, path))
        clock.now += int(MINIMUM_GRACE_SECONDS * 1000)
        job = driver.trigger(2)
        for key in driver.subtasks():
            reply = job.acknowledge(ack := driver.make_ack(key, 2, base=bases.get(key)))
            assert reply.outcome is Outcome.SUCCESS
            driver.take_over(ack)
        assert not any(segment.is_base for segment in located(driver, 2, lost).segments)
        assert located(driver, 2, there).segments[0].is_base
        assert str(lost) in caplog.text
        check_rows(driver, storage, 2)
        assert_invariants(driver.location)

    def test_a_base_of_a_recent_batch_is_not_asked_for(self, tmp_path: Path) -> None:
        """The file is not checked: that costs a request, and garbage collection spares files that young."""
        storage = FaultyStorage(WritesWhole(tmp_path))
        clock = NoClock()
        driver = Driver(tmp_path, environment=replace(faulty_environment(storage), clock=clock))
        driver.batch(1)
        for version, is_asked in ((2, False), (3, True)):
            key = driver.subtasks()[0]
            base = driver.base_of(key, version - 1)
            path = "shared/base-" + uuid.uuid4().hex
            storage.write_atomic(f"ckpt/{path}", bytes(base.segment.data))
            storage.log.clear()
            clock.now += int(MINIMUM_GRACE_SECONDS * 1000) if is_asked else 0
            self._batch_with(driver, version, key, replace(base, segment=placed(base.segment, path)))
            assert (("size", f"ckpt/{path}") in storage.log) is is_asked
            assert located(driver, version, key).segments[0].is_base

    def test_a_base_older_than_the_chains_is_not_used(self, driver: Driver, storage: LocalStorage) -> None:
        driver.batch(1)
        key = driver.subtasks()[0]
        old = driver.base_of(key, 1)
        driver.batch(2)
        driver.batch(3, [key])
        self._batch_with(driver, 4, key, old)
        assert [segment.is_base for segment in located(driver, 4, key).segments] == [True, False, False]
        check_rows(driver, storage, 4)

    def test_a_base_may_come_versions_later(self, driver: Driver, storage: LocalStorage) -> None:
        driver.batch(1)
        driver.batch(2)
        key = driver.subtasks()[0]
        old = driver.base_of(key, 2)
        driver.batch(3)
        self._batch_with(driver, 4, key, old)
        assert [segment.is_base for segment in located(driver, 4, key).segments] == [True, False, False]
        check_rows(driver, storage, 4)

    def test_a_base_of_the_new_state_makes_its_delta_superfluous(self, driver: Driver, storage: LocalStorage) -> None:
        driver.batch(1)
        key = driver.subtasks()[0]
        path = "shared/delta-superfluous"
        made = make_segment(SegmentKind.DELTA, 2, driver.changes_of(key, 2))
        storage.write_atomic(f"ckpt/{path}", bytes(made.data))
        state_id = str(uuid.uuid4())
        rows = {group: dict(entries) for group, entries in driver.rows[key].items()}
        apply(rows, driver.changes_of(key, 2))
        base = BaseSnapshot(make_segment(SegmentKind.BASE, 2, rows), state_id)
        self._batch_with(driver, 2, key, base, state_id, placed(made, path))
        assert [segment.is_base for segment in located(driver, 2, key).segments] == [True]
        assert not storage.exists(f"ckpt/{path}")
        check_rows(driver, storage, 2)
        assert_invariants(driver.location)

    def test_a_base_is_asked_for_once_and_again_if_none_comes(self, tmp_path: Path) -> None:
        driver = Driver(
            tmp_path,
            operators=(Operator(0, "dedupe", ("default",), 1),),
            settings={"chain.maxDeltas": "4"},
            environment=faulty_environment(LocalStorage(tmp_path)),
        )
        replies = {version: driver.batch(version)[0] for version in range(1, 20)}
        due = [
            version for version, reply in replies.items() if reply.compaction.is_full and not reply.compaction.required
        ]
        assert due
        assert due[0] <= 6
        assert {later - earlier for earlier, later in pairwise(due)} == {4}

    def test_chains_stay_short_when_bases_come_as_asked(self, driver: Driver, storage: LocalStorage) -> None:
        asked: set[SubtaskKey] = set()
        longest = 0
        for version in range(1, 60):
            replies = driver.batch(version, asked)
            asked = {key for key, reply in zip(driver.subtasks(), replies, strict=True) if reply.compaction.is_full}
            longest = max(longest, *(len(located(driver, version, key).segments) for key in driver.subtasks()))
        assert longest <= 19
        check_rows(driver, storage, 59)
        assert_invariants(driver.location)

    def _batch_with(
        self,
        driver: Driver,
        version: int,
        key: SubtaskKey,
        base: BaseSnapshot,
        state_id: str | None = None,
        delta: SegmentRef | None = None,
    ) -> None:
        job = driver.trigger(version)
        for subtask in driver.subtasks():
            own = subtask == key
            ack = driver.make_ack(
                subtask,
                version,
                base=base if own else None,
                state_id=state_id if own else None,
                delta=delta if own else None,
            )
            job.acknowledge(ack)
            driver.take_over(ack)
        job.housekeeping()


class TestAcksThatMakeNoSense:
    def test_their_files_are_deleted_once_the_batch_is_over(self, driver: Driver, storage: LocalStorage) -> None:
        driver.batch(1)
        job = driver.trigger(2)
        key = driver.subtasks()[0]

        def in_file(segment: SegmentRef, kind: str) -> SegmentRef:
            path = f"shared/{kind}-{uuid.uuid4().hex}"
            storage.write_atomic(f"ckpt/{path}", bytes(segment.data))
            return placed(segment, path)

        delta = in_file(make_segment(SegmentKind.DELTA, 2, driver.changes_of(key, 2)), "delta")
        base = driver.base_of(key, 1)
        base = replace(base, segment=in_file(base.segment, "base"))
        ack = driver.make_ack(key, 2, delta=delta, base=base, base_state_id=str(uuid.uuid4()))
        with pytest.raises(StateIdMismatchError):
            job.acknowledge(ack)
        assert all(storage.exists(f"ckpt/{path}") for path in ack.paths)
        for subtask in driver.subtasks():
            job.acknowledge(driver.make_ack(subtask, 2, attempt=1))
        assert completed_versions(driver.location) == [1, 2]
        assert not any(storage.exists(f"ckpt/{path}") for path in ack.paths)

    def test_a_file_outside_the_shared_directory_is_never_deleted(self, driver: Driver, storage: LocalStorage) -> None:
        storage.write_atomic("offsets/0", b"v1")
        job = driver.trigger(1)
        key = driver.subtasks()[0]
        delta = make_segment(SegmentKind.DELTA, 1, driver.changes_of(key, 1), "../offsets/0")
        with pytest.raises(PathEscapeError):
            job.acknowledge(driver.make_ack(key, 1, delta=delta))
        driver.batch(1)
        assert job.acknowledge(driver.make_ack(key, 2, delta=delta)).outcome is Outcome.DISCARDED
        driver.batch(2)
        assert storage.exists("offsets/0")

    def test_changes_to_another_state_than_the_one_that_counts(self, driver: Driver) -> None:
        driver.batch(1)
        job = driver.trigger(2)
        key = driver.subtasks()[0]
        with pytest.raises(StateIdMismatchError, match=driver.ids[key]):
            job.acknowledge(driver.make_ack(key, 2, base_state_id=str(uuid.uuid4())))

    @pytest.mark.parametrize("path", ["../offsets/0", "chk-2/_metadata", "shared/../../x", "/etc/passwd", "shared/"])
    def test_a_file_outside_the_shared_directory(self, driver: Driver, path: str) -> None:
        job = driver.trigger(1)
        delta = make_segment(SegmentKind.DELTA, 1, driver.changes_of(driver.subtasks()[0], 1), path)
        with pytest.raises(PathEscapeError):
            job.acknowledge(driver.make_ack(driver.subtasks()[0], 1, delta=delta))

    def test_key_groups_of_another_subtask(self, driver: Driver) -> None:
        job = driver.trigger(1)
        delta = segment_ref(1, 1, np.array([300], np.uint32), np.array([0]), 100, data=b"x" * 100)
        with pytest.raises(ProtocolError, match=r"the subtask owns only \[0, 255\]"):
            job.acknowledge(driver.make_ack(driver.subtasks()[0], 1, delta=delta))


class TestLocating:
    def test_a_version_that_is_not_retained_names_those_that_are(self, driver: Driver) -> None:
        for version in range(1, 5):
            driver.batch(version)
        with pytest.raises(
            VersionNotFoundError,
            match=r"4 \(version 3\), 5 \(version 4\)\. Go back to one of them: spark-ckpt rollback .* --id 5",
        ) as caught:
            located(driver, 1, driver.subtasks()[0])
        assert caught.value.available == (3, 4)

    def test_a_state_that_is_not_the_one_asked_for_names_both(self, driver: Driver) -> None:
        driver.batch(1)
        key = driver.subtasks()[0]
        other = str(uuid.uuid4())
        with pytest.raises(StateIdMismatchError, match=f"{key}.*{other}.*{driver.ids[key]}"):
            located(driver, 1, key, other)
        assert located(driver, 1, key, driver.ids[key]).state_id == driver.ids[key]

    def test_a_store_that_the_checkpoint_does_not_have_names_those_it_has(self, driver: Driver) -> None:
        driver.batch(1)
        with pytest.raises(CheckpointError, match=r"no state of operator 5.*operator 0, store left \(4 partitions\)"):
            located(driver, 1, SubtaskKey(5, "default", 0))


@pytest.mark.parametrize("status", ["finished", "failed", "cancelled"])
def test_closing_keeps_the_checkpoints_and_gives_up_the_pending_one(driver: Driver, status: str) -> None:
    driver.batch(1)
    job = driver.trigger(2)
    job.acknowledge(driver.make_ack(driver.subtasks()[0], 2))
    job.close(JobStatus(status))
    assert completed_versions(driver.location) == [1]
    assert_invariants(driver.location)
