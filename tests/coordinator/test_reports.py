"""Reports of checkpoints to the driver."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from spark_ckpt.checkpoint.statistics import CheckpointStats, CheckpointStatus
from spark_ckpt.completed import JobStatus
from spark_ckpt.coordinator import reports
from spark_ckpt.coordinator.failures import Abort, FailureReason
from spark_ckpt.coordinator.messages import Operator
from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.coordinator.reports import LONGEST_CAUSE, MOST_SUBTASKS, Run
from spark_ckpt.format.keys import SubtaskKey
from tests.coordinator import pending_checkpoint as sample
from tests.support.cleaner import ImmediateCleaner
from tests.support.driver import Driver

RUN = Run("run", "query", "name", 3)
JOIN = Operator(0, "symmetricHashJoin", ("left", "right"), 2)
AGGREGATE = Operator(1, "stateStoreSave", ("default",), 3)


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    return Driver(tmp_path, operators=(JOIN, AGGREGATE), query_name='<b>"x"', report_details=True)


def statuses(driver: Driver) -> list[tuple[str, int]]:
    return [(report["status"], report["batch_id"]) for report in driver.reports]


def test_a_checkpoint_is_reported_when_it_is_triggered_and_when_it_is_complete(driver: Driver) -> None:
    driver.batch(1)
    began, done = driver.reports
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
    assert orjson.loads(orjson.dumps(driver.reports)) == driver.reports


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
    report, began = again.reports
    assert (report["status"], report["id"], report["batch_id"], report["version"]) == ("restored", first["id"], 0, 1)
    assert report["path"].endswith(f"chk-{first['id']}/_metadata")
    assert (report["state_bytes"], report["rows"]) == (first["state_bytes"], first["rows"])
    assert (report["generation"], began["status"]) == (2, "triggered")


def test_a_restarted_side_process_restores_nothing(driver: Driver) -> None:
    driver.batch(1)
    again = replace(driver)
    again.rows, again.ids = driver.rows, driver.ids
    again.batch(2)
    assert statuses(again) == [("triggered", 1), ("completed", 1)]


def test_reports_lack_details_that_the_driver_does_not_ask_for(driver: Driver, tmp_path: Path) -> None:
    plain = Driver(tmp_path / "plain", operators=driver.operators)
    for run in (driver, plain):
        run.batch(1)
        run.trigger(2).close(JobStatus.CANCELLED)
    assert statuses(plain) == statuses(driver) == [("triggered", 0), ("completed", 0), ("triggered", 1), ("failed", 1)]
    for full, short in zip(driver.reports, plain.reports, strict=True):
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
    wide = Operator(0, "stateStoreSave", ("default",), MOST_SUBTASKS + 5)
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
    abort = Abort(FailureReason.STORAGE, "s3a://key:secret@bucket/x " + "y" * 2 * LONGEST_CAUSE)
    report = reports.failed(RUN, [sample.JOIN], pending, abort, sample.NOW)
    assert "secret" not in report["cause"]
    assert len(report["cause"]) == LONGEST_CAUSE


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
