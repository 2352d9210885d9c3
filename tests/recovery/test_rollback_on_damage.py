"""Start from a damaged checkpoint: the error names the rollback or, with `onDamage=rollBack`, the start performs it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spark_ckpt.checkpoint.load import CheckpointState, read_checkpoint, read_metadata, state_of
from spark_ckpt.clock import SystemClock
from spark_ckpt.completed import ClaimRecord, JobStatus
from spark_ckpt.completed.errors import DamagedRecordError, FencedError
from spark_ckpt.completed.filesystem import FilesystemCompletedCheckpointStore
from spark_ckpt.coordinator.errors import RollbackBegunError, TooManyFailuresError
from spark_ckpt.coordinator.job import Job
from spark_ckpt.errors import DamagedCheckpointError, StorageError
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.location.listing import list_completed
from spark_ckpt.messages import EndOffsets, Event, Notification, TaskFailed, Unreadable
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.operations.verify import verify
from spark_ckpt.recovery import rollback
from spark_ckpt.recovery.errors import RolledBackError
from spark_ckpt.recovery.fence import GRACE_SECONDS
from spark_ckpt.recovery.state_check import check_subtask
from spark_ckpt.spark_files.errors import LogFencedError
from spark_ckpt.spark_files.rollbacks import Rollbacks, begin, finish, marker
from spark_ckpt.storage import LocalStorage
from tests.storage.faulty import Fault, FaultyStorage
from tests.support.clocks import NoClock
from tests.support.driver import Driver
from tests.support.invariants import assert_invariants
from tests.support.queries import SETTINGS, Query, make_query


@pytest.fixture
def query(tmp_path: Path) -> Query:
    """Query with checkpoints 4 to 7, of batches 2 to 5."""
    query = make_query(tmp_path)
    query.settings = {**SETTINGS, "onDamage": "rollBack"}
    return query


def damage(query: Query, *checkpoint_ids: int) -> None:
    for checkpoint_id in checkpoint_ids:
        query.storage.write_atomic(f"ckpt/chk-{checkpoint_id}/_metadata", b"damaged")


def state_of_checkpoint(query: Query, checkpoint_id: int) -> CheckpointState:
    record = next(r for r in list_completed(query.storage).records if r.id == checkpoint_id)
    return read_checkpoint(query.storage, record)


def test_the_command_is_named(query: Query) -> None:
    query.settings = SETTINGS
    damage(query, 7)
    with pytest.raises(DamagedCheckpointError) as caught:
        query.restart()
    assert str(caught.value).endswith(f"spark-ckpt rollback {query.storage.location} --id 6")
    assert query.storage.exists("commits/5")


def test_the_query_goes_back_and_can_be_started_again(query: Query) -> None:
    damage(query, 7)
    with pytest.raises(RolledBackError) as caught:
        query.restart()
    error = caught.value
    assert isinstance(error.damaged, DamagedCheckpointError)
    assert (error.checkpoint_id, error.damaged.checkpoint_id) == (6, 7)
    assert str(error).endswith("it continues with batch 5")
    aside = str(error).partition("files of later batches are in ")[2].partition(". ")[0]
    assert (Path(aside) / "commits" / "5").is_file()
    assert query.restart() == 5
    query.driver.batch(6)
    query.commit(5)
    assert verify(query.storage, everything=True).is_whole
    assert_invariants(query.storage)


def test_state_is_read_before_the_query_goes_back_to_it(query: Query) -> None:
    """A checkpoint with intact metadata but a damaged block is skipped: only reading its state reveals the damage."""
    damage(query, 7)
    for file in query.storage.list("ckpt/shared"):
        name = f"ckpt/shared/{file.name}"
        before = query.storage.read(name)
        query.storage.write_atomic(name, before[:-1] + bytes((before[-1] ^ 1,)))
        if verify(query.storage, 6).is_whole or not verify(query.storage, 5).is_whole:
            query.storage.write_atomic(name, before)
        else:
            break
    with pytest.raises(RolledBackError) as caught:
        query.restart()
    assert caught.value.checkpoint_id == 5


class Slow(SystemClock):
    """Clock that advances 100 s with each reading."""

    def __init__(self) -> None:
        self.time = 0.0

    def monotonic(self) -> float:
        self.time += 100.0
        return self.time


def test_tasks_are_told_that_the_query_goes_back_until_it_has(query: Query) -> None:
    """Notifications during a rollback keep tasks waiting, since it may take longer than `bridge.timeout`."""
    damage(query, 7, 6)
    driver = query._new_driver()
    driver.environment = replace(driver.environment, clock=Slow())
    told: list[Notification] = []
    with pytest.raises(RolledBackError) as caught:
        Job(driver.make_trigger(7), driver.environment, told.append)
    assert caught.value.checkpoint_id == 5
    assert set(told) == {Notification(driver.run_id, Event.GOING_BACK, None)}
    segments = sum(len(chain.entries) for chains in state_of_checkpoint(query, 5).table.values() for chain in chains)
    assert len(told) > segments


def test_no_task_is_told_so_by_a_start_that_goes_on(query: Query) -> None:
    told: list[Notification] = []
    driver = query._new_driver()
    Job(driver.make_trigger(7), driver.environment, told.append)
    assert told == []


def test_no_checkpoint_is_whole(query: Query) -> None:
    damage(query, 4, 5, 6, 7)
    with pytest.raises(DamagedCheckpointError, match="No other retained checkpoint is intact"):
        query.restart()
    assert query.storage.exists("commits/5")


def test_the_driver_before_is_shut_out(query: Query) -> None:
    old = query.driver
    job = old.trigger(7)
    damage(query, 7)
    with pytest.raises(RolledBackError):
        query.restart()
    *others, last = [old.make_ack(key, 7) for key in old.subtasks()]
    for ack in others:
        job.acknowledge(ack)
    with pytest.raises(FencedError):
        job.acknowledge(last)


def newest_record(query: Query) -> str:
    return max(f"ckpt/completed/{file.name}" for file in query.storage.list("ckpt/completed"))


@pytest.mark.parametrize("content", [b"", b"{}", None], ids=["empty", "no record", "missing"])
def test_the_newest_record_is_damaged(query: Query, content: bytes | None) -> None:
    """The damaged record's checkpoint is lost and its batch runs again. The driver that wrote it is fenced off."""
    old, job = query.driver, query.driver.trigger(7)
    if content is None:
        query.storage.delete(newest_record(query))
    else:
        query.storage.write_atomic(newest_record(query), content)
    with pytest.raises(RolledBackError) as caught:
        query.restart()
    assert caught.value.checkpoint_id == 6
    for ack in [old.make_ack(key, 7) for key in old.subtasks()][:-1]:
        job.acknowledge(ack)
    with pytest.raises(FencedError):
        job.acknowledge(old.make_ack(old.subtasks()[-1], 7))
    assert query.restart() == 5
    query.driver.batch(6)
    query.commit(5)
    assert verify(query.storage, everything=True).is_whole
    assert_invariants(query.storage)


def test_a_damaged_record_that_nothing_needs_is_moved_aside(query: Query) -> None:
    """If Spark has not committed the damaged record's batch, the query starts at once."""
    query.run(range(6, 7), commit_last=False)
    record = newest_record(query)
    query.storage.write_atomic(record, b"")
    assert query.restart() == 6
    assert not query.storage.exists(record)
    (aside,) = query.storage.list("rolled-back")
    assert query.storage.exists(f"rolled-back/{aside.name}/{record}")
    query.driver.batch(7)
    query.commit(6)
    assert verify(query.storage, everything=True).is_whole


def test_a_damaged_record_without_the_setting(query: Query) -> None:
    query.settings = SETTINGS
    query.storage.write_atomic(newest_record(query), b"")
    with pytest.raises(DamagedRecordError) as caught:
        query.restart()
    assert str(caught.value).endswith(f"spark-ckpt rollback {query.storage.location} --id 6")
    assert query.storage.exists(newest_record(query))
    roll_back(query.storage, 6, force=True)
    assert query.restart() == 5


def test_a_record_is_damaged_and_no_checkpoint_is_whole(query: Query) -> None:
    damage(query, 4, 5, 6)
    query.storage.write_atomic(newest_record(query), b"")
    with pytest.raises(DamagedRecordError, match="No other retained checkpoint is intact"):
        query.restart()
    assert query.storage.exists("commits/5")


# ---- damage found by executors ---------------------------------------------------------------------------------------


def flip(query: Query, checkpoint_id: int) -> str:
    """Flips a bit in a state file that no earlier checkpoint uses; returns its name."""
    before = {file.name for file in query.storage.list("ckpt/shared")}
    kept = {i: files_of(query, i) for i in range(4, 8)}
    others = set().union(*(files for i, files in kept.items() if i < checkpoint_id))
    name = min(kept[checkpoint_id] - others)
    assert name.rpartition("/")[2] in before
    data = query.storage.read(f"ckpt/{name}")
    query.storage.write_atomic(f"ckpt/{name}", data[:-1] + bytes((data[-1] ^ 1,)))
    return name


def files_of(query: Query, checkpoint_id: int) -> set[str]:
    record = next(r for r in list_completed(query.storage).records if r.id == checkpoint_id)
    return read_checkpoint(query.storage, record).files()


def meet(query: Query) -> None:
    """Starts the query; its executors report unreadable state, in files that look intact to the driver."""
    report_damage(query, query.open())


def report_damage(query: Query, batch: int) -> None:
    """Reports of all executors that they could not read the version from which a batch starts."""
    assert query.driver.job is not None
    for key in query.driver.subtasks():
        query.driver.job.unreadable(Unreadable(key, batch, "wrong block checksum", job=query.driver.run_id))


def test_an_executor_meets_damage_and_the_query_goes_back(query: Query) -> None:
    name = flip(query, 7)
    with pytest.raises(RolledBackError, match=name) as caught:
        meet(query)
    assert caught.value.checkpoint_id == 6
    assert query.restart() == 5


def test_an_executor_meets_damage_and_the_command_is_named(query: Query) -> None:
    query.settings = SETTINGS
    name = flip(query, 7)
    with pytest.raises(DamagedCheckpointError, match=name) as caught:
        meet(query)
    assert caught.value.newest_good == 6
    assert str(caught.value).endswith(f"spark-ckpt rollback {query.storage.location} --id 6")
    assert query.storage.exists("commits/5")


def test_an_executor_meets_damage_that_all_checkpoints_have(query: Query) -> None:
    for checkpoint_id in (4, 5, 6, 7):
        flip(query, checkpoint_id)
    with pytest.raises(DamagedCheckpointError, match="No other retained checkpoint is intact"):
        meet(query)
    assert query.storage.exists("commits/5")


def test_an_executor_that_could_not_read_whole_files_changes_nothing(query: Query) -> None:
    meet(query)
    assert query.storage.exists("commits/5")


def is_readable(query: Query, subtask: SubtaskKey) -> bool:
    record = list_completed(query.storage).records[-1]
    state = state_of(query.storage, record, read_metadata(query.storage, record))
    return not check_subtask(query.storage, state, "_metadata", subtask)


def test_an_owner_that_another_driver_has_followed_does_not_go_back(query: Query) -> None:
    flip(query, 7)
    query.open()
    first = query.driver
    query.open()
    assert first.job is not None
    damaged = next(key for key in first.subtasks() if not is_readable(query, key))
    with pytest.raises(FencedError):
        first.job.unreadable(Unreadable(damaged, 6, "a block is damaged", job=first.run_id))
    assert query.storage.exists("commits/5")


# ---- drivers that live -----------------------------------------------------------------------------------------------


FIRST_MOVE = ("delete", "commits/5")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Query:
    """As `query`, but its driver ran on another host, and so may still run."""
    query = Query(LocalStorage(tmp_path / "elsewhere"))
    query.driver.log_epoch = 0
    query.driver.environment = replace(query.driver.environment, host="elsewhere", pid=1)
    query.run(range(6))
    query.settings = {**SETTINGS, "onDamage": "rollBack"}
    return query


def epoch(query: Query) -> Rollbacks:
    return Rollbacks.of(query.storage)


def on_storage_without_rename(query: Query) -> Driver:
    driver, storage = query._new_driver(), FaultyStorage(query.storage)
    driver.environment = replace(driver.environment, clock=NoClock(), open_storage=lambda trigger: storage)
    return driver


def test_spark_s_logs_are_fenced_before_the_first_move(query: Query) -> None:
    """An earlier driver that stands still before an entry never writes it."""
    temporary = ("offsets/.6.8f0c.tmp", "commits/.5.77aa.TID3.tmp")
    for name in temporary:
        query.storage.write_atomic(name, b"v1")
    damage(query, 7)
    steps: list[tuple[str, str]] = []
    driver = on_storage_without_rename(query)
    faulty = driver.environment.open_storage(driver.make_trigger(7))
    assert isinstance(faulty, FaultyStorage)
    faulty.before = lambda operation, name: steps.append((operation, name))
    with pytest.raises(RolledBackError):
        driver.trigger(7)
    first_move = steps.index(FIRST_MOVE)
    assert steps.index(("create", marker(1))) < min(steps.index(("delete", name)) for name in temporary)
    assert max(steps.index(("delete", name)) for name in temporary) < first_move
    assert epoch(query) == Rollbacks(1, ())


def test_spark_s_logs_are_fenced_when_an_executor_meets_damage(query: Query) -> None:
    flip(query, 7)
    with pytest.raises(RolledBackError):
        meet(query)
    assert epoch(query) == Rollbacks(1, ())


def test_an_entry_without_rename_has_its_time(elsewhere: Query) -> None:
    damage(elsewhere, 7)
    driver = on_storage_without_rename(elsewhere)
    with pytest.raises(RolledBackError):
        driver.trigger(7)
    assert isinstance(driver.environment.clock, NoClock)
    assert driver.environment.clock.slept.count(GRACE_SECONDS) == 1
    assert epoch(elsewhere) == Rollbacks(1, ())


@pytest.mark.parametrize("by", ["the start", "an executor"])
def test_the_checkpoint_is_published_once_more(elsewhere: Query, by: str) -> None:
    """The earlier driver may be about to drop it."""
    if by == "the start":
        damage(elsewhere, 7)
    else:
        flip(elsewhere, 7)
    with pytest.raises(RolledBackError) as caught:
        (elsewhere.restart if by == "the start" else lambda: meet(elsewhere))()
    assert caught.value.checkpoint_id == 6
    ids = [record.id for record in list_completed(elsewhere.storage).records if record.batch_id == 4]
    assert ids[0] == 6
    assert len(ids) == 2
    assert elsewhere.restart() == 5
    assert_invariants(elsewhere.storage)


def test_a_run_whose_rollback_fails_midway_completes_and_drops_nothing_more(
    elsewhere: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not know the files of the checkpoint that the rollback has published once more. It may try again."""
    flip(elsewhere, 7)
    batch, driver = elsewhere.open(), elsewhere.driver
    job, keys = driver.job, driver.subtasks()
    assert job is not None

    def fail(*_: object, **__: object) -> None:
        raise StorageError("move", "commits/5", "no answer")

    with monkeypatch.context() as failing:
        failing.setattr(rollback, "fenced_logs", fail)
        with pytest.raises(StorageError):
            report_damage(elsewhere, batch)
    before = list_completed(elsewhere.storage).records
    for request in (
        lambda: job.acknowledge(driver.make_ack(keys[0], batch + 1)),
        lambda: job.trigger(driver.make_trigger(batch + 1)),
        lambda: job.end_offsets(EndOffsets(batch, batch + 1, "", job=driver.run_id)),
    ):
        with pytest.raises(RollbackBegunError, match="finish the rollback with: spark-ckpt rollback"):
            request()
    job.housekeeping()
    assert list_completed(elsewhere.storage).records == before
    assert all(elsewhere.storage.exists(f"ckpt/{name}") for name in files_of(elsewhere, before[-1].id))
    with pytest.raises(RolledBackError):
        report_damage(elsewhere, batch)
    job.close(JobStatus.FAILED)
    assert elsewhere.restart() == 5
    elsewhere.driver.batch(6)
    assert verify(elsewhere.storage).is_whole


def test_a_rollback_that_is_tried_again_uses_no_name_of_the_first_try(elsewhere: Query) -> None:
    """The request of the first try may still create its file, when the second one has been dropped long since."""
    storage = elsewhere.storage = FaultyStorage(elsewhere.storage)
    flip(elsewhere, 7)
    batch = elsewhere.open()
    storage.fail("create", "_metadata", Fault.LATE, times=3)
    with pytest.raises(StorageError):
        report_damage(elsewhere, batch)
    with pytest.raises(RolledBackError):
        report_damage(elsewhere, batch)
    (tried, *_), (published, *_) = _newest_names(storage)
    assert tried != published
    storage.deliver()
    assert verify(storage).is_whole


def test_a_rollback_uses_no_name_of_a_checkpoint_that_could_not_be_written(elsewhere: Query) -> None:
    """The cleaner may delete the file of that name at any time."""
    storage = elsewhere.storage = FaultyStorage(elsewhere.storage)
    flip(elsewhere, 7)
    batch, driver = elsewhere.open(), elsewhere.driver
    assert driver.job is not None
    storage.fail("create", "_metadata", Fault.LATE, times=9)
    acks = [driver.make_ack(key, batch + 1) for key in driver.subtasks()]
    for ack in acks[:-1]:
        driver.job.acknowledge(ack)
    with pytest.raises(TooManyFailuresError):
        driver.job.acknowledge(acks[-1])
    stage, attempt, partition = acks[-1].task[:3]
    driver.job.task_failed(TaskFailed(stage, attempt, partition, 0, "killed", job=driver.run_id))
    with pytest.raises(RolledBackError):
        report_damage(elsewhere, batch)
    (tried, *_), (published, *_) = _newest_names(storage)
    assert tried != published
    assert driver.cleaner is not None
    assert driver.cleaner.was_submitted(tried)
    assert not driver.cleaner.was_submitted(published)


def _newest_names(storage: FaultyStorage) -> tuple[list[str], list[str]]:
    """Names of `_metadata` files that were to be created, and that of the newest checkpoint."""
    created = [name for operation, name in storage.log if operation == "create" and name.endswith("_metadata")]
    return created, [f"ckpt/{list_completed(storage).records[-1].metadata.path}"]


def test_an_earlier_driver_drops_the_checkpoint_after_all(elsewhere: Query) -> None:
    """It has looked for its claim, and stands still before it deletes the record."""
    earlier = elsewhere.driver.job
    assert earlier is not None
    store = earlier._open.store
    oldest = store.all()[0]
    damage(elsewhere, 5, 6, 7)
    driver = on_storage_without_rename(elsewhere)
    storage = driver.environment.open_storage(driver.make_trigger(7))
    assert isinstance(storage, FaultyStorage)
    storage.before = lambda operation, name: store.subsume(oldest) if (operation, name) == FIRST_MOVE else None
    with pytest.raises(RolledBackError) as caught:
        driver.trigger(7)
    assert caught.value.checkpoint_id == oldest.id
    assert elsewhere.restart() == 3
    assert verify(elsewhere.storage, everything=True).is_whole


def test_a_run_that_was_rolled_back_takes_back_nothing_itself(query: Query) -> None:
    """Spark has planned its batch from earlier logs. That its version has no checkpoint is no damage."""
    late = query._new_driver()
    late.log_epoch = 0
    roll_back(query.storage, 4, force=True)
    before = len(query.storage.list("ckpt/completed"))
    with pytest.raises(LogFencedError):
        late.trigger(7)
    assert len(query.storage.list("ckpt/completed")) == before
    assert epoch(query) == Rollbacks(1, ())


@pytest.mark.parametrize("is_done", [False, True])
def test_no_query_rolls_back_beside_another_rollback(
    query: Query, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    """It has begun since the run started. Its next move may be on its way, and a claim does not stop that one."""
    late = query._new_driver()
    late.log_epoch = 0
    damage(query, 7)
    claim = FilesystemCompletedCheckpointStore.claim

    def claimed(store: FilesystemCompletedCheckpointStore) -> ClaimRecord:
        monkeypatch.undo()
        begun = begin(query.storage, 4)
        if is_done:
            finish(query.storage, begun)
        return claim(store)

    monkeypatch.setattr(FilesystemCompletedCheckpointStore, "claim", claimed)
    with pytest.raises(LogFencedError):
        late.trigger(7)
    assert epoch(query) == Rollbacks(1, () if is_done else (1,))
    assert query.storage.exists("commits/5")
    assert query.storage.list("rolled-back") == []


def test_the_command_shuts_out_a_driver_whose_newest_record_is_lost(query: Query) -> None:
    old, job = query.driver, query.driver.trigger(7)
    query.storage.delete(newest_record(query))
    roll_back(query.storage, 6, force=True)
    *others, last = [old.make_ack(key, 7) for key in old.subtasks()]
    for ack in others:
        job.acknowledge(ack)
    with pytest.raises(FencedError):
        job.acknowledge(last)
    assert query.restart() == 5
    assert_invariants(query.storage)
