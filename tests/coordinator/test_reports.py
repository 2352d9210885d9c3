"""Reports of checkpoints to the driver."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from spark_ckpt.checkpoint.statistics import CheckpointStats, CheckpointStatus
from spark_ckpt.clock import SystemClock
from spark_ckpt.completed import JobStatus
from spark_ckpt.completed.errors import FencedError
from spark_ckpt.config import SETTINGS
from spark_ckpt.coordinator import reports
from spark_ckpt.coordinator.failures import Abort, FailureReason
from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.coordinator.reports import MAX_CAUSE, MAX_SUBTASKS, Run
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.location.savepoint_notes import SavepointNote, SavepointNotes, write_note
from spark_ckpt.messages import Operator
from spark_ckpt.storage.local import LocalStorage
from tests.coordinator import pending_checkpoint as sample
from tests.support.cleaner import ImmediateCleaner
from tests.support.driver import Driver

LATER_NOTE = b'{"format": 2, "id": 1, "batch_id": 1, "taken_ms": 1, "path": "x"}'
RUN = Run("run", "query", "name", 3)
JOIN = Operator(0, "symmetricHashJoin", ("left", "right"), 2)
AGGREGATE = Operator(1, "stateStoreSave", ("default",), 3)


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    return Driver(tmp_path, operators=(JOIN, AGGREGATE), query_name='<b>"x"', report_details=True)


def of_checkpoints(driver: Driver) -> list[reports.Report]:
    return [report for report in driver.reports if report["status"] not in ("started", "savepoint")]


def statuses(driver: Driver) -> list[tuple[str, int]]:
    return [(report["status"], report["batch_id"]) for report in of_checkpoints(driver)]


class SetClock(SystemClock):
    """A clock whose times are set."""

    now = 0.0
    now_unix = 0.0

    def monotonic(self) -> float:
        return self.now

    def now_ms(self) -> int:
        return round(self.now_unix * 1000)


def test_a_checkpoint_is_reported_when_it_is_triggered_and_when_it_is_complete(driver: Driver) -> None:
    driver.batch(1)
    began, done = of_checkpoints(driver)
    run = {"run_id": driver.run_id, "query_id": driver.query_id, "query_name": '<b>"x"', "generation": 1}
    assert began.items() >= {"status": "triggered", **run, "batch_id": 0, "version": 1}.items()
    assert (began["acks"], began["expected"]) == (0, 7)
    assert done.items() >= {"status": "completed", **run, "batch_id": 0, "version": 1}.items()
    assert (done["acks"], done["expected"]) == (7, 7)
    assert done["triggered_ms"] == began["triggered_ms"] <= done["completed_ms"]
    assert driver.job is not None
    (record,) = driver.job._open.store.all()
    assert done["id"] == record.id
    figures = ("state_bytes", "new_bytes", "rows")
    assert [done[name] for name in figures] == [getattr(record, name) for name in figures]
    assert msgspec.json.decode(msgspec.json.encode(driver.reports)) == driver.reports


def test_operators_and_subtasks_of_a_completed_checkpoint(driver: Driver) -> None:
    for version in (1, 2):
        driver.batch(version)
    report = driver.reports[-1]
    stores = [("symmetricHashJoin", "left", 2), ("symmetricHashJoin", "right", 2), ("stateStoreSave", "default", 3)]
    assert [(o["name"], o["store"], o["parallelism"]) for o in report["operators"]] == stores
    assert [o["acks"] for o in report["operators"]] == [2, 2, 3]
    assert [tuple(subtask[:3]) for subtask in report["subtasks"]] == driver.subtasks()
    for position, name in ((8, "new_bytes"), (9, "state_bytes"), (11, "rows")):
        for operator in report["operators"]:
            own = [
                s[position] for s in report["subtasks"] if (s[0], s[1]) == (operator["operator_id"], operator["store"])
            ]
            assert operator[name] == sum(own) > 0
    assert report["chain_length"] == max(subtask[10] for subtask in report["subtasks"]) == 2
    assert sum(o["state_bytes"] for o in report["operators"]) == report["state_bytes"]
    assert all(least <= mean <= most for o in report["operators"] for least, mean, most in [o["acknowledged_ms"]])
    for position, name in ((8, "new_bytes"), (9, "state_bytes"), (11, "rows")):
        for operator in report["operators"]:
            own = [s[position] for s in report["subtasks"] if s[:2] == [operator["operator_id"], operator["store"]]]
            assert operator[f"subtask_{name}"] == [min(own), round(sum(own) / len(own)), max(own)]


def test_phases_of_subtasks(driver: Driver) -> None:
    """An acknowledgement lasts from its arrival, which may be before it is handled, until its answer. A store that has
    its state in memory restores nothing."""
    clock = SetClock()
    driver.environment = replace(driver.environment, clock=clock)
    job = driver.trigger(1)
    for number, key in enumerate(driver.subtasks()):
        ack = driver.make_ack(key, 1)
        ack.timings_us = {"snapshot": 5, "write": 6, **({"restore": 700 * number} if number in (1, 2) else {})}
        clock.now_unix = number
        job.acknowledge(ack, queued_seconds=0.5)
        job.answered(0.001 * (number + 1))
        job.answered(99.0)  # nothing is left to answer
    job.housekeeping()
    report = driver.reports[-1]
    assert [subtask[12] for subtask in report["subtasks"]] == [None, 700, 1400, *[None] * 4]
    assert [subtask[13] for subtask in report["subtasks"]] == [1000, 2000, 3000, 4000, 5000, 6000, 7000]
    assert [subtask[4] for subtask in report["subtasks"]] == [0, 500, 1500, 2500, 3500, 4500, 5500]
    left, right, aggregate = report["operators"]
    assert [operator["restore_us"] for operator in (left, right, aggregate)] == [[700] * 3, [1400] * 3, None]
    assert aggregate["acknowledge_us"] == [5000, 6000, 7000]
    assert (report["duration_ms"], aggregate["snapshot_us"]) == (5500, [5, 5, 5])


def test_an_ack_that_does_not_count_is_no_phase(driver: Driver) -> None:
    job = driver.trigger(1)
    key, *_ = driver.subtasks()
    job.acknowledge(driver.make_ack(key, 1))
    job.answered(0.001)
    job.acknowledge(driver.make_ack(key, 1, attempt=1))  # a copy of the task, which is refused
    job.answered(0.5)
    job.close(JobStatus.CANCELLED)
    (subtask,) = driver.reports[-1]["subtasks"]
    assert subtask[13] == 1000


def test_a_completed_checkpoint_is_reported_after_its_ack_is_answered(driver: Driver) -> None:
    job = driver.trigger(1)
    for key in driver.subtasks():
        job.acknowledge(driver.make_ack(key, 1))
    assert statuses(driver) == [("triggered", 0)]
    job.housekeeping()
    job.housekeeping()
    assert statuses(driver) == [("triggered", 0), ("completed", 0)]


def test_a_checkpoint_that_completes_late_is_reported_before_the_next_one(driver: Driver) -> None:
    job = driver.trigger(1)
    for ack in [driver.make_ack(key, 1) for key in driver.subtasks()]:
        job.acknowledge(ack)
        driver.take_over(ack)
    driver.trigger(2)
    assert statuses(driver) == [("triggered", 0), ("completed", 0), ("triggered", 1)]


def test_an_aborted_checkpoint_is_reported_with_its_cause_and_its_acks(driver: Driver) -> None:
    job = driver.trigger(1)
    job.acknowledge(driver.make_ack(SubtaskKey(1, "default", 2), 1))
    job.close(JobStatus.CANCELLED)
    report = driver.reports[-1]
    assert (report["status"], report["acks"], report["expected"]) == ("failed", 1, 7)
    assert report["reason"] == "query ended"
    assert report["cause"].startswith("query ended: the query is cancelled; 6 of 7 subtasks")
    assert [o["acks"] for o in report["operators"]] == [0, 0, 1]
    assert report["operators"][0]["acknowledged_ms"] is None
    assert [tuple(subtask[:3]) for subtask in report["subtasks"]] == [(1, "default", 2)]
    assert report["subtasks"][0][9:11] == [None, None]


def test_a_start_from_a_checkpoint_is_reported(driver: Driver) -> None:
    driver.batch(1)
    first = driver.reports[-1]
    again = replace(driver, run_id="another")
    again.rows, again.ids = driver.rows, driver.ids
    again.trigger(2)
    report, began = of_checkpoints(again)
    assert (report["status"], report["id"], report["batch_id"], report["version"]) == ("restored", first["id"], 0, 1)
    assert report["operation"] is None
    assert report["path"].endswith(f"chk-{first['id']}/_metadata")
    assert (report["state_bytes"], report["rows"]) == (first["state_bytes"], first["rows"])
    assert (report["generation"], began["status"]) == (2, "triggered")


def test_a_restarted_side_process_restores_nothing(driver: Driver) -> None:
    driver.batch(1)
    again = replace(driver)
    again.rows, again.ids = driver.rows, driver.ids
    again.batch(2)
    assert statuses(again) == [("triggered", 1), ("completed", 1)]


def test_a_run_is_reported_with_its_claim_and_whom_it_fenced(driver: Driver) -> None:
    driver.batch(1)
    started = driver.reports[0]
    assert (started["status"], started["run_id"], started["generation"]) == ("started", driver.run_id, 1)
    assert (started["fenced"], started["pid"]) == ([], driver.environment.pid)
    assert started["location"] == str(driver.location)
    assert started["key_group_factors"] == list(driver.key_group_factors)
    again = replace(driver, run_id="another", environment=replace(driver.environment, host="elsewhere", pid=7))
    again.trigger(2)
    later = again.reports[0]
    assert (later["generation"], later["host"], later["pid"]) == (2, "elsewhere", 7)
    assert later["claimed_ms"] >= started["claimed_ms"]
    (fenced,) = later["fenced"]
    names = ("generation", "host", "pid", "run_id", "claimed_ms")
    assert [fenced[name] for name in names] == [started[name] for name in names]


def test_a_restarted_side_process_fences_no_driver(driver: Driver) -> None:
    driver.batch(1)
    again = replace(driver)
    again.rows, again.ids = driver.rows, driver.ids
    again.batch(2)
    assert (again.reports[0]["generation"], again.reports[0]["fenced"]) == (2, [])


def test_a_run_tells_how_many_side_processes_hung_before(driver: Driver) -> None:
    driver.batch(1)
    assert driver.reports[0]["hung"] == 0
    again = replace(driver, environment=driver.environment.of_driver(driver.environment.pid, 3))
    again.rows, again.ids = driver.rows, driver.ids
    again.batch(2)
    assert again.reports[0]["hung"] == 3


def test_the_reason_tells_a_fenced_run(driver: Driver) -> None:
    driver.batch(1)
    job = driver.trigger(2)
    other = replace(driver, run_id="another")
    other.trigger(2)
    *others, last = [driver.make_ack(key, 2) for key in driver.subtasks()]
    for ack in others:
        job.acknowledge(ack)
    with pytest.raises(FencedError):
        job.acknowledge(last)
    assert (driver.reports[-1]["status"], driver.reports[-1]["reason"]) == ("failed", "fenced")


def test_a_run_is_reported_with_all_settings_and_without_credentials(tmp_path: Path) -> None:
    settings = {"retained": "5", "timeout": "5m", "python": "s3a://key:secret@bucket/python"}
    driver = Driver(tmp_path, settings=settings, report_details=True)
    driver.trigger(1)
    values = {name: tuple(value) for name, *value in driver.reports[0]["settings"]}
    assert list(values) == [setting.suffix for setting in SETTINGS]
    assert values["retained"] == ("5", True, "2")
    assert values["timeout"][:2] == ("5m", True)
    assert (values["bridge.timeout"], values["compression"]) == (("300s", False, "300s"), ("lz4", False, "lz4"))
    assert values["maxParallelism"] == ("", False, "")
    assert values["python"][:2] == ("s3a://***@bucket/python", True)


def test_acks_are_reported_at_most_once_a_second(driver: Driver) -> None:
    clock = SetClock()
    driver.environment = replace(driver.environment, clock=clock)
    job = driver.trigger(1)
    assert job.seconds_to_timer is None
    first, second, third, fourth, *others = driver.subtasks()
    for key in (first, second):
        job.acknowledge(driver.make_ack(key, 1))
        job.housekeeping()
    assert job.seconds_to_timer == 1
    clock.now = 0.75
    job.run_timers()
    assert statuses(driver) == [("triggered", 0)]
    assert job.seconds_to_timer == 0.25
    clock.now = 1
    job.run_timers()
    assert statuses(driver) == [("triggered", 0), ("progress", 0)]
    assert (driver.reports[-1]["acks"], driver.reports[-1]["expected"]) == (2, 7)
    assert driver.reports[-1]["last_ack_ms"] == 0
    job.acknowledge(driver.make_ack(third, 1))
    job.housekeeping()
    assert len(of_checkpoints(driver)) == 2
    clock.now = clock.now_unix = 2.5
    job.acknowledge(driver.make_ack(fourth, 1))
    assert len(of_checkpoints(driver)) == 2  # before the ack is answered
    job.housekeeping()
    assert (driver.reports[-1]["acks"], driver.reports[-1]["last_ack_ms"]) == (4, 2500)
    assert job.seconds_to_timer is None
    for key in others:
        job.acknowledge(driver.make_ack(key, 1))
    assert job.seconds_to_timer is None
    job.housekeeping()
    assert [status for status, _ in statuses(driver)] == ["triggered", "progress", "progress", "completed"]


def test_the_latest_savepoint_is_reported_once(driver: Driver, tmp_path: Path) -> None:
    clock = SetClock()
    driver.environment = replace(driver.environment, clock=clock)
    driver.batch(1)
    storage = LocalStorage(str(driver.location))
    older, newer = (SavepointNote(n, n - 1, 1000 * n, f"s3a://key:secret@bucket/{n}") for n in (1, 2))
    write_note(storage, newer)
    write_note(storage, older)
    driver.batch(2)
    assert driver.reports[-1]["status"] == "completed"  # not within a minute
    for version in (3, 4):
        clock.now += 60
        driver.batch(version)
    (report,) = [report for report in driver.reports if report["status"] == "savepoint"]
    assert (report["id"], report["batch_id"], report["taken_ms"]) == (2, 1, 2000)
    assert report["path"] == "s3a://***@bucket/2"


def test_notes_that_cannot_be_read_are_left_out(driver: Driver) -> None:
    folder = Path(driver.location) / "ckpt" / "savepoints"
    folder.mkdir(parents=True)
    for number, content in enumerate((b"{}", LATER_NOTE, b"[]", b"\xff", b"")):
        (folder / f"{number:020}-{'0' * 32}.json").write_bytes(content)
        notes = SavepointNotes(LocalStorage(str(driver.location)))
        assert notes.next() is None
    driver.batch(1)
    assert [report["status"] for report in driver.reports] == ["started", "triggered", "completed"]


def test_acks_are_not_counted_for_a_driver_that_does_not_ask(tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    job = driver.trigger(1)
    job.acknowledge(driver.make_ack(driver.subtasks()[0], 1))
    assert job.seconds_to_timer is None


def test_reports_lack_details_that_the_driver_does_not_ask_for(driver: Driver, tmp_path: Path) -> None:
    plain = Driver(tmp_path / "plain", operators=driver.operators)
    for run in (driver, plain):
        run.batch(1)
        run.trigger(2).close(JobStatus.CANCELLED)
    assert statuses(plain) == statuses(driver) == [("triggered", 0), ("completed", 0), ("triggered", 1), ("failed", 1)]
    for full, short in zip(of_checkpoints(driver), plain.reports, strict=True):
        assert set(full) - set(short) == {"operators", "subtasks"} & set(full)


def test_a_store_without_a_query_has_no_reports(tmp_path: Path) -> None:
    operators = (Operator(0, "standalone", ("default",), 1),)
    driver = Driver(tmp_path, run_id=f"standalone:{tmp_path}", operators=operators, report_details=True)
    driver.batch(1)
    assert driver.job is not None
    assert driver.reports == []
    assert driver.job._reporting._unsent is None


def test_reports_have_the_backlog_of_deletions(driver: Driver) -> None:
    driver.environment = replace(driver.environment, make_cleaner=ImmediateCleaner)
    driver.batch(1)
    driver.hold_deletions()
    for version in range(2, 6):
        driver.batch(version)
    backlog = [report["files_to_delete"] for report in driver.reports]
    assert backlog[0] == 0
    assert backlog[-1] > 0
    assert backlog == sorted(backlog)
    assert {report["files_left_behind"] for report in driver.reports} == {0}


def test_a_checkpoint_does_not_fail_for_its_report(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(report: reports.Report) -> None:
        raise RuntimeError("no room")

    job = driver.trigger(1)
    job._reporting._send = refuse
    with caplog.at_level(logging.ERROR):
        replies = [job.acknowledge(driver.make_ack(key, 1)) for key in driver.subtasks()]
        job.housekeeping()
    assert replies[-1].completed_version == 1
    assert "cannot report a checkpoint" in caplog.text


def test_a_report_has_the_last_subtasks_and_summarizes_all() -> None:
    wide = Operator(0, "stateStoreSave", ("default",), MAX_SUBTASKS + 5)
    pending = PendingCheckpoint([wide], 4, 5, sample.NOW)
    for partition in range(wide.parallelism):
        assert pending.acknowledge(sample.ack(0, "default", partition), sample.NOW + partition).state_id
    report = reports.failed(RUN, [wide], pending, Abort(FailureReason.EXPIRED, "x"), sample.NOW + 9)
    assert [subtask[2] for subtask in report["subtasks"]] == list(range(5, wide.parallelism))
    (operator,) = report["operators"]
    assert operator["acks"] == operator["rows"] == wide.parallelism
    assert operator["acknowledged_ms"] == [0, round((wide.parallelism - 1) / 2), wide.parallelism - 1]


def test_causes_are_short_and_without_credentials() -> None:
    pending = sample.pending()
    abort = Abort(FailureReason.STORAGE, "s3a://key:secret@bucket/x " + "y" * 2 * MAX_CAUSE)
    report = reports.failed(RUN, [sample.JOIN], pending, abort, sample.NOW)
    assert "secret" not in report["cause"]
    assert len(report["cause"]) == MAX_CAUSE


def test_times_that_run_backwards_are_not_negative() -> None:
    pending = sample.pending()
    pending.acknowledge(sample.ack(), sample.NOW - 7)
    report = reports.failed(RUN, [sample.JOIN], pending, Abort(FailureReason.EXPIRED, "x"), sample.NOW - 9)
    assert (report["duration_ms"], report["subtasks"][0][4]) == (0, 0)


def test_statistics_name_the_retries(driver: Driver) -> None:
    job = driver.trigger(1)
    for key in driver.subtasks():
        job.acknowledge(driver.make_ack(key, 1))
    make = job._reporting._unsent
    assert make is not None
    stats = CheckpointStats(CheckpointStatus.COMPLETED, 0, 1, 5, 6, 7, 7, completing_ms=8, failures={"storage": 2})
    pending = sample.pending()
    report = reports.completed(RUN, [sample.JOIN], pending, job._parent, stats)
    assert (report["failures"], report["duration_ms"], report["completing_ms"]) == ({"storage": 2}, 6, 8)
