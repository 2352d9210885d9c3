"""Real side process over real pipes."""

from __future__ import annotations

import json
import os
import signal
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import spark_ckpt
from spark_ckpt.format.segments import decode_block
from spark_ckpt.messages import Decline
from tests.bridge import wire
from tests.bridge.remote_driver import RemoteDriver, run_batch
from tests.bridge.side_process import MODULE, SideProcess
from tests.support.driver import Driver
from tests.support.invariants import assert_invariants, completed_versions
from tests.support.queries import make_query
from tests.support.waiting import PATIENCE


@pytest.fixture
def driver(tmp_path: Path) -> RemoteDriver:
    return RemoteDriver(f"file:{tmp_path}/q", run_id="run-1")


@pytest.fixture
def location(tmp_path: Path) -> Path:
    return tmp_path / "q"


@pytest.fixture
def process() -> Iterator[SideProcess]:
    with SideProcess() as process:
        yield process


def test_greets() -> None:
    with SideProcess(MODULE) as process:
        header, reply = process.ask(*wire.START)
        assert reply.kind == "ok"
        assert header == {"protocol": 5, "version": spark_ckpt.__version__}
        assert process.end_input() == 0


def test_refuses_another_version_of_the_protocol(process: SideProcess) -> None:
    header, reply = process.ask("start", {"protocol": 1, "spark_version": "4.2.0", "pid": 1})
    assert reply.kind == "error"
    assert header["error"] == "ProtocolError"
    assert "install both from the same release" in header["message"]


@pytest.mark.parametrize("version", [4, 6, None])
def test_nothing_is_served_without_an_accepted_start(
    process: SideProcess, driver: RemoteDriver, location: Path, version: int | None
) -> None:
    """A jar of another release must not write a claim, whose meaning may differ between releases."""
    if version is not None:
        refused, _ = process.ask("start", {"protocol": version, "spark_version": "4.2.0", "pid": 1})
        assert f"version {version} of the protocol" in refused["message"]
    ack = driver.acks(1)[0]
    requests = [
        wire.trigger(driver.make_trigger(1)),
        wire.locate(driver.run_id, ack.subtask, 1),
        wire.ack(ack),
        wire.decline(Decline(ack.subtask, 0, 1, ack.task, "no space left", job=driver.run_id)),
        ("task_failed", {"job": driver.run_id}, b"", b""),
        ("close", {"job": driver.run_id, "status": "finished"}, b"", b""),
    ]
    answers = [process.ask(*request) for request in requests]
    assert {(reply.kind, header["error"]) for header, reply in answers} == {("error", "ProtocolError")}
    assert len({header["message"] for header, _ in answers}) == 1
    assert "install both from the same release" in answers[0][0]["message"]
    assert not location.exists()
    assert process.ask(*wire.START)[1].kind == "ok"
    run_batch(process, driver, 1)


def test_runs_batches_and_tells_where_the_state_is(process: SideProcess, driver: RemoteDriver, location: Path) -> None:
    process.ask(*wire.START)
    for version in range(1, 6):
        assert run_batch(process, driver, version)["completed_version"] == version
    key = driver.subtasks()[1]
    header, reply = process.ask(*wire.locate(driver.run_id, key, 5, driver.ids[key]))
    assert header["checkpoint_id"] == 6
    assert header["restore"]["mode"] == "by_key_group"
    assert len(reply.index) == 12 * sum(segment["blocks"] for segment in header["segments"])
    at = position = 0
    for segment in header["segments"]:
        assert segment["path"] is None
        data = bytes(reply.payload)[position : position + segment["size"]]
        groups = np.frombuffer(reply.index, "<u4", segment["blocks"], at)
        offsets = np.frombuffer(reply.index, "<i8", segment["blocks"], at + groups.nbytes)
        assert set(groups.tolist()) <= set(driver.groups_of(key))
        assert [decode_block(data, offset, "inline").key_group for offset in offsets.tolist()] == groups.tolist()
        at, position = at + groups.nbytes + offsets.nbytes, position + segment["size"]
    assert process.ask("close", {"job": driver.run_id, "status": "finished"})[0] == {}
    assert process.end_input() == 0
    assert_invariants(location)
    owner = json.loads((location / "ckpt" / "completed" / f"{6:020d}.json").read_text())["owner"]
    assert owner["pid"] == 4242


def test_settings_are_checked_without_a_job(process: SideProcess) -> None:
    process.ask(*wire.START)
    prefix = "spark.sql.streaming.stateStore.ckpt."
    good = {prefix + "retained": "3", "spark.sql.streaming.checkpointLocation": "/x"}
    assert process.ask("check", {"settings": good})[0] == {}
    for key, text in (
        (prefix + "retained", "1"),
        (prefix + "retaind", "3"),
        ("spark.sql.streaming.statestore.ckpt.retained", "3"),
        (prefix + "zookeeper.quorum", "zk:2181"),
    ):
        header, reply = process.ask("check", {"settings": {key: text}})
        assert (reply.kind, header["error"]) == ("error", "SettingError")
        assert key in header["message"]


def test_tasks_are_told_how_to_ship_their_segments(process: SideProcess, driver: RemoteDriver) -> None:
    limits = {"ack_threshold": 1000, "shared_file_wait_ms": 50, "shared_file_bytes": 8 << 20}
    driver.settings = {"ackMemory": "8000"}
    process.ask(*wire.START)
    assert process.ask(*wire.trigger(driver.make_trigger(1)))[0]["limits"] == limits
    assert process.ask(*wire.locate(driver.run_id, driver.subtasks()[0], 0))[0]["limits"] == limits
    run_batch(process, driver, 1)
    assert process.ask(*wire.locate(driver.run_id, driver.subtasks()[0], 1))[0]["limits"] == limits


def test_errors_are_typed_replies_and_the_process_goes_on(process: SideProcess, driver: RemoteDriver) -> None:
    process.ask(*wire.START)
    key = driver.subtasks()[0]
    bad = driver.make_trigger(1)
    header, reply = process.ask(*wire.locate("nobody", key, 1))
    assert (reply.kind, header["error"]) == ("error", "JobNotOpenError")
    wrong = wire.trigger(bad)
    wrong[1]["settings"] = {"spark.sql.streaming.stateStore.ckpt.retaind": "3"}
    header, reply = process.ask(*wrong)
    assert (header["error"], header["fatal"]) == ("SettingError", False)
    header, reply = process.ask(*wire.ack(driver.make_ack(key, 1)))
    assert header["error"] == "JobNotOpenError"
    run_batch(process, driver, 1)
    header, reply = process.ask(*wire.locate(driver.run_id, key, 9))
    assert (header["error"], header["fatal"]) == ("VersionNotFoundError", True)
    header, reply = process.ask("dance", {"job": driver.run_id})
    assert header["error"] == "ProtocolError"
    header, reply = process.ask("ack", {"job": driver.run_id})
    assert header["error"] == "ProtocolError"
    header, reply = process.ask("ack", {})
    assert header["error"] == "ProtocolError"
    assert process.ask("task_failed", {"job": "nobody"})[0] == {}
    assert process.ask("close", {"job": "nobody", "status": "failed"})[0] == {}
    run_batch(process, driver, 2)


def test_two_queries_on_one_location(process: SideProcess, driver: RemoteDriver, location: Path) -> None:
    process.ask(*wire.START)
    run_batch(process, driver, 1)
    other = RemoteDriver(driver.location, run_id="run-2")
    other.ids, other.rows = dict(driver.ids), dict(driver.rows)
    run_batch(process, other, 2)
    header, _ = process.ask(*wire.trigger(driver.make_trigger(2)))
    if "error" not in header:
        process.send(*(wire.ack(ack) for ack in driver.acks(2)))
        header = [json.loads(process.receive().header) for _ in driver.subtasks()][-1]
    assert (header["error"], header["fatal"]) == ("FencedError", True)
    assert "run-2" in header["message"]
    assert completed_versions(location) == [1, 2]


def test_a_crash_is_made_good_by_telling_everything_again(driver: RemoteDriver, location: Path) -> None:
    with SideProcess() as first:
        first.ask(*wire.START)
        run_batch(first, driver, 1)
        trigger, acks = wire.trigger(driver.make_trigger(2)), driver.acks(2)
        first.ask(*trigger)
        for ack in acks[:3]:
            assert first.ask(*wire.ack(ack))[0]["outcome"] == "success"
        first.kill()
    with SideProcess() as second:
        second.send(wire.START, trigger, *(wire.ack(ack) for ack in acks))
        replies = [json.loads(second.receive().header) for _ in range(2 + len(acks))]
        assert [reply.get("outcome") for reply in replies[2:]] == ["success"] * 4
        assert replies[-1]["completed_version"] == 2
        second.kill()
    with SideProcess() as third:  # now the checkpoint is complete, but the answer may have been lost
        third.send(wire.START, trigger, *(wire.ack(ack) for ack in acks))
        replies = [json.loads(third.receive().header) for _ in range(2 + len(acks))]
        assert [reply.get("outcome") for reply in replies[2:]] == ["success"] * 4
        assert {reply.get("completed_version") for reply in replies[2:]} == {2}
        for ack in acks:
            driver.take_over(ack)
        run_batch(third, driver, 3)
        assert third.end_input() == 0
    assert completed_versions(location) == [2, 3]
    assert_invariants(location, orphans=True)


def test_replies_that_wait_travel_together(process: SideProcess, driver: RemoteDriver) -> None:
    process.ask(*wire.START)
    process.ask(*wire.trigger(driver.make_trigger(1)))
    locates = [wire.locate(driver.run_id, driver.subtasks()[0], 0) for _ in range(500)]
    numbers = process.send(*locates)
    assert [process.receive().id for _ in locates] == numbers


SLOW = textwrap.dedent(
    """
    import os, sys, time
    from spark_ckpt.bridge import __main__ as main, server
    from spark_ckpt.coordinator.job import Job

    trigger = Job.trigger

    def slow(self, message):
        print("a print must not disturb the stream", flush=True)
        if message.job == "slow":
            while not os.path.exists(sys.argv[1]):
                time.sleep(0.02)
        return trigger(self, message)

    Job.trigger = slow
    sys.exit(main.main())
    """
)


def test_a_slow_query_does_not_hold_up_another_and_prints_do_no_harm(tmp_path: Path) -> None:
    done = tmp_path / "the fast query is done"
    with SideProcess(("-c", SLOW, str(done))) as process:
        process.ask(*wire.START)
        slow = RemoteDriver(tmp_path / "slow", run_id="slow")
        fast = RemoteDriver(tmp_path / "fast", run_id="fast")
        (number,) = process.send(wire.trigger(slow.make_trigger(1)))
        run_batch(process, fast, 1)
        done.touch()
        assert process.receive().id == number


UNEXPECTED = textwrap.dedent(
    """
    import sys
    from spark_ckpt.bridge import __main__ as main
    from spark_ckpt.coordinator.job import Job

    def fail(self, message):
        print("to standard output")
        raise MemoryError("first line\\nsecond line")

    Job.locate = fail
    sys.exit(main.main())
    """
)


def test_an_unexpected_error_says_so_and_its_traceback_is_logged(driver: RemoteDriver) -> None:
    with SideProcess(("-c", UNEXPECTED)) as process:
        process.ask(*wire.START)
        run_batch(process, driver, 1)
        header, reply = process.ask(*wire.locate(driver.run_id, driver.subtasks()[0], 1))
        assert reply.kind == "error"
        assert header["error"] == "UnexpectedError"
        assert "unexpected error in the checkpoint coordinator" in header["message"]
        run_batch(process, driver, 2)
        assert process.end_input() == 0
        log = [line for line in process.complete_log() if line.startswith("ERROR spark_ckpt.bridge.server ")]
        assert any("Traceback" in line for line in log)
        assert log[-1].endswith("second line")
        assert "to standard output" in process.complete_log()


def test_an_input_that_ends_at_once_is_no_error() -> None:
    with SideProcess() as process:
        process._process.stdin.close()  # type: ignore[union-attr]
        assert process._process.wait(PATIENCE) == 0


def test_an_input_that_is_no_stream_ends_with_a_code() -> None:
    with SideProcess() as process:
        assert process._process.stdin is not None
        process._process.stdin.write(b"GET / HTTP/1.1\r\n\r\n" * 10)
        process._process.stdin.close()
        assert process._process.wait(PATIENCE) == 2


def test_an_interrupt_from_the_keyboard_is_left_to_the_driver(process: SideProcess, driver: RemoteDriver) -> None:
    process.ask(*wire.START)
    os.kill(process.pid, signal.SIGINT)
    run_batch(process, driver, 1)
    assert process.end_input() == 0


def test_what_was_asked_before_the_end_is_done(driver: RemoteDriver, location: Path) -> None:
    with SideProcess() as process:
        process.ask(*wire.START)
        process.send(wire.trigger(driver.make_trigger(1)), *(wire.ack(ack) for ack in driver.acks(1)))
        assert process.end_input() == 0
    assert completed_versions(location) == [1]


def test_executors_are_told_what_became_of_checkpoints(process: SideProcess, driver: RemoteDriver) -> None:
    process.ask(*wire.START)
    for version in (1, 2, 3):
        run_batch(process, driver, version)
    process.ask(*wire.trigger(driver.make_trigger(4)))
    (first, *_) = driver.acks(4)
    process.ask(*wire.ack(first))
    process.ask("close", {"job": driver.run_id, "status": "cancelled"})
    assert [(told["event"], told["version"]) for told in process.notified] == [
        ("complete", 1),
        ("complete", 2),
        ("complete", 3),
        ("subsumed", 1),
        ("aborted", 4),
    ]
    assert {told["job"] for told in process.notified} == {driver.run_id}
    assert "3 of 4 subtasks" in process.notified[-1]["reason"]


def test_acks_are_reported_while_no_message_comes(process: SideProcess, driver: RemoteDriver) -> None:
    driver.report_details = True
    process.ask(*wire.START)
    process.ask(*wire.trigger(driver.make_trigger(1)))
    for ack in driver.acks(1)[:3]:
        process.ask(*wire.ack(ack))
    report = process.receive_report("progress")
    assert (report["acks"], report["expected"]) == (3, 4)


def test_a_driver_gets_reports_of_checkpoints_with_details_if_it_asks_for_them(
    process: SideProcess, driver: RemoteDriver
) -> None:
    process.ask(*wire.START)
    run_batch(process, driver, 1)
    process.ask("close", {"job": driver.run_id, "status": "cancelled"})
    assert [report["status"] for report in process.reported] == ["triggered", "completed"]
    assert not any("subtasks" in report for report in process.reported)
    process.reported.clear()
    driver.run_id, driver.report_details, driver.query_name = "another run", True, "n\u00e4me"
    run_batch(process, driver, 2)
    process.ask(*wire.trigger(driver.make_trigger(3)))
    process.ask("close", {"job": driver.run_id, "status": "cancelled"})
    started, *others = process.reported
    assert (started["status"], started["generation"]) == ("started", 2)
    seen = [(report["status"], report["version"], report["query_name"]) for report in others]
    assert seen == [
        ("restored", 1, "n\u00e4me"),
        ("triggered", 2, "n\u00e4me"),
        ("completed", 2, "n\u00e4me"),
        ("triggered", 3, "n\u00e4me"),
        ("failed", 3, "n\u00e4me"),
    ]
    assert {report["run_id"] for report in process.reported} == {"another run"}
    details = [(report["status"], len(report.get("subtasks", ()))) for report in process.reported]
    expected = [("started", 0), ("restored", 0), ("triggered", 0), ("completed", 4), ("triggered", 0), ("failed", 0)]
    assert details == expected
    (complete,) = (report for report in process.reported if report["status"] == "completed")
    phases = [subtask[13] for subtask in complete["subtasks"]]
    assert all(micros > 0 for micros in phases)
    # One of the acks waits for the checkpoint. Both times are rounded.
    assert max(phases) >= (complete["completing_ms"] - 2) * 1000


def test_a_declined_attempt_makes_room_for_another(process: SideProcess, driver: RemoteDriver) -> None:
    process.ask(*wire.START)
    process.ask(*wire.trigger(driver.make_trigger(1)))
    (first, *others) = driver.acks(1)
    assert process.ask(*wire.ack(first))[0]["outcome"] == "success"
    declined = Decline(first.subtask, 0, 1, first.task, "no space left", job=driver.run_id)
    assert process.ask(*wire.decline(declined))[0] == {}
    header, _ = process.ask(*wire.ack(first))
    assert header["outcome"] == "denied"
    assert "known to have failed" in header["reason"]
    for ack in [driver.make_ack(first.subtask, 1, attempt=1), *others]:
        header, _ = process.ask(*wire.ack(ack))
    assert header["completed_version"] == 1


def test_a_job_that_is_open_when_the_input_ends_is_suspended(driver: RemoteDriver, location: Path) -> None:
    driver.settings = {"cleanup": "deleteOnEnd"}
    with SideProcess() as process:
        process.ask(*wire.START)
        run_batch(process, driver, 1)
        process.ask(*wire.trigger(driver.make_trigger(2)))
        assert process.end_input() == 0
        assert any("coordinator shutdown: the query is suspended; 4 of 4" in line for line in process.complete_log())
    assert completed_versions(location) == [1]


def test_a_checkpoint_expires_while_no_message_comes(driver: RemoteDriver) -> None:
    driver.settings = {"timeout": "0.01"}
    with SideProcess() as process:
        process.ask(*wire.START)
        process.ask(*wire.trigger(driver.make_trigger(1)))
        while not process.notified:
            process.receive_notification()
        assert process.notified[0]["event"] == "aborted"
        assert process.notified[0]["reason"].startswith("expired: 4 of 4 subtasks")
        assert process.ask(*wire.ack(driver.acks(1)[0]))[0]["outcome"] == "discarded"


def test_all_tasks_of_a_batch_learn_that_the_query_has_gone_back(tmp_path: Path, process: SideProcess) -> None:
    """The second task gets the error, too, although the batch has left no trace."""
    query = make_query(tmp_path, 4)
    query.storage.write_atomic("ckpt/chk-5/_metadata", b"damaged")
    again = Driver(tmp_path, operators=query.operators, settings={"onDamage": "rollBack"})
    process.ask(*wire.START)
    for _ in range(2):
        header, reply = process.ask(*wire.trigger(again.make_trigger(5)))
        assert (reply.kind, header["error"]) == ("error", "RolledBackError")
    assert completed_versions(tmp_path) == [1, 2, 3]


MARKER = "hunter2"


def assert_redacted(process: SideProcess, driver: RemoteDriver, replies: list[str]) -> None:
    process.ask("close", {"job": driver.run_id, "status": "failed"})
    assert MARKER not in "\n".join([*process.complete_log(), *replies])


@pytest.mark.parametrize("secret", [f"{MARKER}-and-more", f"{MARKER}/{MARKER}+more="])
def test_credentials_in_a_location_are_in_no_reply_and_in_no_log(process: SideProcess, secret: str) -> None:
    """Other libraries quote the credentials in errors, because they take them for part of the bucket name."""
    driver = RemoteDriver(f"s3a://AKIAUSER:{secret}@bucket/q", run_id="run-1")
    process.ask(*wire.START)
    header, reply = process.ask(*wire.trigger(driver.make_trigger(1)))
    assert reply.kind == "error"
    assert_redacted(process, driver, [reply.header.decode()])
    assert process.complete_log()
    assert "***" in header["message"]


def test_credentials_in_reasons_of_executors_are_in_no_file(
    process: SideProcess, driver: RemoteDriver, location: Path
) -> None:
    process.ask(*wire.START)
    run_batch(process, driver, 1)
    process.ask(*wire.trigger(driver.make_trigger(2)))
    ack = driver.acks(2)[0]
    reason = f"PUT https://host/x?X-Amz-Signature={MARKER} and s3a://u:{MARKER}@b failed"
    declined = Decline(ack.subtask, 1, 2, ack.task, reason, job=driver.run_id)
    task = {"stage_id": 1, "stage_attempt": 0, "partition": 0, "attempt_number": 0}
    process.ask(*wire.decline(declined))
    process.ask("task_failed", {"job": driver.run_id, **task, "reason": reason})
    run_batch(process, driver, 2)
    assert_redacted(process, driver, [])
    assert any("declined the checkpoint" in line for line in process.complete_log())
    files = [path for path in location.rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert MARKER.encode() not in path.read_bytes(), path
