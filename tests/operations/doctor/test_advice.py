"""Every sentence of advice that `doctor` and `verify` can give is followed, and helps."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_ckpt.completed import FilesystemCompletedCheckpointStore, Owner, RecordFiles
from spark_ckpt.errors import UnsupportedFormatError
from spark_ckpt.jars import SUPPORTED_SPARK
from spark_ckpt.location.import_marker import MARKER, ImportMarker
from spark_ckpt.messages import Decline, Task
from spark_ckpt.operations.advice import Advice, Step
from spark_ckpt.operations.doctor import Finding, Report, Status, Verdict
from spark_ckpt.operations.doctor.evidence import Evidence
from spark_ckpt.operations.savepoint import take_savepoint
from spark_ckpt.operations.verify import Remedy, verify
from spark_ckpt.spark_files import rollbacks
from spark_ckpt.storage import LocalStorage
from tests.operations.damaged import change, newest_entry
from tests.operations.doctor.examined import ALIVE, ENDED, LAST_MS, LOST, examined, location, only, refusing
from tests.storage.faulty import FaultyStorage
from tests.support.cli import run
from tests.support.driver import Driver, faulty_environment
from tests.support.locations import FIRST_COMPLETED_MS, make_location
from tests.support.provider import ROCKSDB
from tests.support.queries import Query, make_query
from tests.support.stopped_query import OFFSETS, StoppedQuery

LATER_MS = FIRST_COMPLETED_MS + 10**12


def given(report: Report, step: Step) -> Finding:
    """The finding with this advice."""
    found = [finding for finding in report.findings if finding.advice is not None and finding.advice.step is step]
    assert found, f"no such advice in {[*report.next_steps()]}"
    return found[0]


def follow(finding: Finding, **placeholders: object) -> None:
    """Runs the command of an advice."""
    assert finding.command is not None
    program, *arguments = shlex.split(finding.command)
    assert program == "spark-ckpt"
    done = run(*(placeholders.get(argument, argument) for argument in arguments))
    assert done.status == 0, done.stderr


def goes_on(storage: LocalStorage) -> None:
    """Starts the query of a location, and runs two batches."""
    query = Query(storage)
    batch = query.restart()
    query.run(range(batch, batch + 2))
    assert verify(storage).is_whole
    assert examined(storage, LATER_MS).verdict is not Verdict.DAMAGED


# ---- damage ----------------------------------------------------------------------------------------------------------

DAMAGES: dict[str, Callable[[LocalStorage], object]] = {
    "the offsets of the next batch are empty": lambda storage: storage.write_atomic("offsets/6", b""),
    "the offsets of the batch after the next": lambda storage: storage.write_atomic(
        "offsets/7", storage.read("offsets/5")
    ),
    "the offsets before the last are missing": lambda storage: storage.delete("offsets/4"),
    "the offsets before the last are empty": lambda storage: storage.write_atomic("offsets/4", b""),
    "the last offsets are missing": lambda storage: storage.delete("offsets/5"),
    "the last commit is empty": lambda storage: storage.write_atomic("commits/5", b""),
    "a commit without offsets": lambda storage: storage.write_atomic("commits/6", storage.read("commits/5")),
    "a damaged segment": lambda storage: change(storage, f"ckpt/{newest_entry(storage).path}", 20, b"\xff\xfe\xff"),
    "no metadata of the newest checkpoint": lambda storage: storage.delete("ckpt/chk-7/_metadata"),
    "a damaged record": lambda storage: storage.write_atomic(RecordFiles(storage).name(7), b"{"),
    "an older damaged record": lambda storage: storage.write_atomic(RecordFiles(storage).name(5), b"{"),
}
"""Damages from which an earlier state, or a part of the logs, helps."""


@pytest.mark.parametrize("damage", DAMAGES)
def test_going_back_repairs(damage: str, tmp_path: Path) -> None:
    """`doctor` and `verify` name the same rollback, and nothing tells to start before."""
    make_query(tmp_path)
    storage = LocalStorage(tmp_path)
    DAMAGES[damage](storage)
    report = examined(storage)
    finding = given(report, Step.GO_BACK)
    assert finding.command is not None
    assert f"roll back with: {finding.command}" in run("verify", tmp_path).stdout
    assert not [step for step in report.next_steps() if step.startswith(Step.START_AGAIN.value[:20])]
    follow(finding)
    goes_on(storage)


def keep_copy(tmp_path: Path) -> None:
    make_query(tmp_path / "q")
    storage, copy = LocalStorage(tmp_path / "q"), tmp_path / "copy"
    storage.delete("ckpt/chk-5/_metadata")
    finding = given(examined(storage, everything=True), Step.KEEP_COPY)
    assert verify(storage, everything=True).remedy is Remedy.COPY
    follow(finding, NEW_DIRECTORY=copy)
    assert verify(LocalStorage(copy)).is_whole
    goes_on(storage)


def use_backup(tmp_path: Path) -> None:
    make_query(tmp_path / "q")
    shutil.copytree(tmp_path / "q", tmp_path / "backup")
    storage = LocalStorage(tmp_path / "q")
    storage.delete("metadata")
    finding = given(examined(storage), Step.USE_BACKUP)
    assert "recover the files from a backup" in run("verify", tmp_path / "q").stdout
    shutil.copytree(tmp_path / "backup", tmp_path / "q", dirs_exist_ok=True)
    follow(finding)
    goes_on(storage)


def use_backup_of_the_log(tmp_path: Path) -> None:
    """Without its log, no checkpoint can be gone back to."""
    make_query(tmp_path / "q")
    shutil.copytree(tmp_path / "q", tmp_path / "backup")
    storage = LocalStorage(tmp_path / "q")
    shutil.rmtree(tmp_path / "q/ckpt/completed")
    finding = given(examined(storage), Step.USE_BACKUP)
    shutil.copytree(tmp_path / "backup", tmp_path / "q", dirs_exist_ok=True)
    follow(finding)
    goes_on(storage)


def other_savepoint(tmp_path: Path) -> None:
    make_query(tmp_path / "q")
    savepoint = LocalStorage(tmp_path / "savepoint")
    take_savepoint(LocalStorage(tmp_path / "q"), savepoint)
    shutil.copytree(tmp_path / "savepoint", tmp_path / "copy")
    savepoint.delete("offsets/4")
    given(examined(savepoint), Step.OTHER_SAVEPOINT)
    shutil.copytree(tmp_path / "copy", tmp_path / "savepoint", dirs_exist_ok=True)
    assert examined(savepoint).verdict is Verdict.HEALTHY


# ---- drivers ---------------------------------------------------------------------------------------------------------


def start_again(tmp_path: Path) -> None:
    query = make_query(tmp_path)
    query.start(6)
    assert "repeats batch 6" in str(given(examined(query.storage), Step.START_AGAIN).advice)
    goes_on(LocalStorage(tmp_path))


def first_error(tmp_path: Path) -> None:
    make_query(tmp_path)
    for number in range(3):
        owner = Owner(socket.gethostname(), os.getpid(), "token", "query", f"run-{number}")
        store = FilesystemCompletedCheckpointStore(LocalStorage(tmp_path), owner)
        store.recover()
        store.claim()
    given(examined(LocalStorage(tmp_path)), Step.FIRST_ERROR)
    goes_on(LocalStorage(tmp_path))
    assert only(examined(LocalStorage(tmp_path)), "takeovers").status is Status.OK


def first_batch(tmp_path: Path) -> None:
    query = Query(LocalStorage(tmp_path))
    query.start(0)
    finding = given(examined(query.storage), Step.FIRST_BATCH)
    assert finding.command is not None
    assert "no checkpoint has completed yet" in run(*shlex.split(finding.command)[1:]).stderr
    query.run(range(1))
    assert only(examined(query.storage), "driver").status is Status.OK


def see_hangs(tmp_path: Path) -> None:
    make_query(tmp_path)
    owner = Owner(socket.gethostname(), os.getpid(), "token", "query", "run-9")
    store = FilesystemCompletedCheckpointStore(LocalStorage(tmp_path), owner)
    store.hung = 1
    store.recover()
    store.claim()
    given(examined(LocalStorage(tmp_path)), Step.SEE_HANGS)
    goes_on(LocalStorage(tmp_path))
    assert only(examined(LocalStorage(tmp_path)), "coordinator").status is Status.OK


# ---- checkpoints -----------------------------------------------------------------------------------------------------


def late(tmp_path: Path) -> None:
    follow(given(examined(location(tmp_path, ALIVE), LAST_MS + 180_001), Step.LATE))


def long_chains(tmp_path: Path) -> None:
    follow(given(examined(location(tmp_path, ENDED, deltas=90)), Step.LONG_CHAINS))


def see_failures(tmp_path: Path) -> None:
    driver = Driver(tmp_path, environment=faulty_environment(LocalStorage(tmp_path)))
    driver.batch(1)
    job = driver.trigger(2)
    job.decline(Decline(driver.subtasks()[0], 1, 2, Task(9, 0, 0, 0), "disk full", job=driver.run_id))
    driver.batch(2)
    follow(given(examined(LocalStorage(tmp_path)), Step.SEE_FAILURES))


# ---- files and operations --------------------------------------------------------------------------------------------


def collect(tmp_path: Path) -> None:
    make_query(tmp_path)
    storage = LocalStorage(tmp_path)
    storage.write_atomic(LOST, b"123")
    os.utime(tmp_path / LOST, (time.time() - 90_000,) * 2)
    follow(given(examined(storage, time.time_ns() // 1_000_000), Step.COLLECT))
    assert not storage.exists(LOST)


def repeat_rollback(tmp_path: Path) -> None:
    make_query(tmp_path)
    storage = LocalStorage(tmp_path)
    rollbacks.begin(storage, 3)
    follow(given(examined(storage), Step.REPEAT_ROLLBACK))
    goes_on(storage)


def repeat_change(tmp_path: Path) -> None:
    make_query(tmp_path)
    storage = LocalStorage(tmp_path)
    rollbacks.begin(storage, 3, "offsets")
    finding = given(examined(storage), Step.REPEAT_CHANGE)
    assert finding.advice == "Run 'offsets' again, or take it back with"
    follow(finding)
    goes_on(storage)


def repeat_import(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "q")
    make_query(tmp_path / "q")
    storage.write_atomic(MARKER, ImportMarker(3, "RocksDB", None, {}).encode())
    given(examined(storage), Step.REPEAT_IMPORT)
    shutil.rmtree(tmp_path / "q")
    make_query(tmp_path / "q")
    assert only(examined(storage), "unfinished operations").status is Status.OK


def repeat_rescale(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path)
    query.log.add_offsets(7, OFFSETS.with_shuffle_partitions(8))
    follow(given(examined(query.storage), Step.REPEAT_RESCALE))
    assert only(examined(query.storage), "unfinished operations").status is Status.OK


# ---- environment -----------------------------------------------------------------------------------------------------


def other_provider(tmp_path: Path) -> None:
    given(examined(make_query(tmp_path / "q", provider=ROCKSDB.class_name).storage), Step.OTHER_PROVIDER)
    assert only(examined(make_query(tmp_path / "new").storage), "kind").status is Status.OK


def upgrade(tmp_path: Path) -> None:
    make_query(tmp_path)

    def refuse(evidence: Evidence) -> None:
        raise UnsupportedFormatError("/x/_metadata", "the features new", ("new",))

    with pytest.MonkeyPatch.context() as earlier_release:
        earlier_release.setattr(Evidence, "state", property(refuse))
        given(examined(LocalStorage(tmp_path)), Step.UPGRADE)
    assert only(examined(LocalStorage(tmp_path)), "versions").status is Status.OK


def other_spark(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    make_query(tmp_path)
    with pytest.MonkeyPatch.context() as later_release:
        later_release.setattr("spark_ckpt.operations.doctor.environment.SUPPORTED_SPARK", {"5.0": "5.0.0"})
        assert "move the query to Spark 5.0" in str(given(examined(storage), Step.OTHER_SPARK).advice)
    assert "4.2" in SUPPORTED_SPARK
    assert only(examined(storage), "versions").status is Status.OK


def set_clocks(tmp_path: Path) -> None:
    make_location(tmp_path, batches=1)
    given(examined(LocalStorage(tmp_path), FIRST_COMPLETED_MS - 3_600_000), Step.SET_CLOCKS)
    assert only(examined(LocalStorage(tmp_path), LATER_MS), "clock").status is Status.OK


def set_clock(tmp_path: Path) -> None:
    make_query(tmp_path)
    given(examined(LocalStorage(tmp_path), probe=True), Step.SET_CLOCK)
    now_ms = time.time_ns() // 1_000_000
    report = examined(LocalStorage(tmp_path), now_ms, probe=True)
    skews = [finding.data["storage_skew_ms"] for finding in report.findings if "storage_skew_ms" in finding.data]
    assert abs(skews[0]) < abs(now_ms - FIRST_COMPLETED_MS)


def make_room(tmp_path: Path) -> None:
    make_query(tmp_path)
    for free, status in ((1000, Status.WARNING), (1 << 40, Status.OK)):
        with pytest.MonkeyPatch.context() as disk:
            disk.setattr(LocalStorage, "free_bytes", lambda self, free=free: free)
            report = examined(LocalStorage(tmp_path))
        assert only(report, "free space").status is status
        assert status is Status.OK or given(report, Step.MAKE_ROOM)


def other_storage(tmp_path: Path) -> None:
    make_query(tmp_path)
    with pytest.MonkeyPatch.context() as bad_storage:
        bad_storage.setattr(LocalStorage, "create_exclusive", refusing)
        given(examined(LocalStorage(tmp_path), probe=True), Step.OTHER_STORAGE)
    assert only(examined(LocalStorage(tmp_path), probe=True), "exclusive create").data["works"]


def storage_answers(tmp_path: Path) -> None:
    make_query(tmp_path)
    faulty = FaultyStorage(LocalStorage(tmp_path))
    faulty.fail("list", "ckpt/rollbacks")
    follow(given(examined(faulty), Step.STORAGE_ANSWERS))


ACTIONS: dict[Step, Callable[[Path], None] | None] = {
    Step.GO_BACK: None,  # test_going_back_repairs
    Step.KEEP_COPY: keep_copy,
    Step.USE_BACKUP: use_backup,
    Step.OTHER_SAVEPOINT: other_savepoint,
    Step.START_AGAIN: start_again,
    Step.FIRST_ERROR: first_error,
    Step.FIRST_BATCH: first_batch,
    Step.SEE_HANGS: see_hangs,
    Step.LATE: late,
    Step.LONG_CHAINS: long_chains,
    Step.SEE_FAILURES: see_failures,
    Step.COLLECT: collect,
    Step.REPEAT_ROLLBACK: repeat_rollback,
    Step.REPEAT_CHANGE: repeat_change,
    Step.REPEAT_IMPORT: repeat_import,
    Step.REPEAT_RESCALE: repeat_rescale,
    Step.OTHER_PROVIDER: other_provider,
    Step.UPGRADE: upgrade,
    Step.OTHER_SPARK: other_spark,
    Step.SET_CLOCKS: set_clocks,
    Step.SET_CLOCK: set_clock,
    Step.MAKE_ROOM: make_room,
    Step.OTHER_STORAGE: other_storage,
    Step.STORAGE_ANSWERS: storage_answers,
}
"""What each advice leads to: makes a location that gets it, follows it, and looks whether it has helped."""


def test_no_advice_lacks_an_action() -> None:
    assert set(ACTIONS) == set(Step)


@pytest.mark.parametrize("action", [each for each in ACTIONS.values() if each] + [use_backup_of_the_log])
def test_the_advice_helps(action: Callable[[Path], None], tmp_path: Path) -> None:
    action(tmp_path)


def test_advice_is_a_sentence_of_a_step() -> None:
    advice = Step.START_AGAIN.say(host="h", batch=3)
    assert advice == "See the log of the driver on h, then start the query again: it repeats batch 3"
    assert isinstance(advice, Advice)
    assert advice.step is Step.START_AGAIN
