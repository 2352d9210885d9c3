"""Records of the side process in text and JSON, each with the query and batch of its thread."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt.bridge.codec import MAX_NAME, decode
from spark_ckpt.bridge.log import LEVELS, MAX_LINE, LogContext, RecordFormatter, enter, is_wanted, wants_debug
from spark_ckpt.config import LOG_FORMAT, LOG_LEVEL, CheckpointConfig
from spark_ckpt.location.backlog import in_thread
from spark_ckpt.redaction import remember_secret
from tests.bridge import wire
from tests.bridge.remote_driver import RemoteDriver, run_batch
from tests.bridge.side_process import SideProcess
from tests.support.waiting import eventually

CONTEXT = LogContext("orders", "file:/checkpoints/orders", "run-1", 7)
TRIGGER = RemoteDriver("file:/checkpoints/orders").make_trigger(1)


def record(level: int = logging.WARNING, message: str = "cannot delete %s", *arguments: object) -> logging.LogRecord:
    return logging.LogRecord("spark_ckpt.location.cleaner", level, "cleaner.py", 1, message, arguments, None)


def within(context: LogContext | None, do: Callable[[], Any]) -> Any:
    """Result of a function in a context of its own."""

    def run() -> Any:
        if context is not None:
            enter(context)
        return do()

    return copy_context().run(run)


def logged(context: LogContext | None) -> list[str]:
    """Levels that a query logs."""
    return [level for level, number in LEVELS.items() if within(context, partial(is_wanted, record(number)))]


def formatted(context: LogContext | None, of: logging.LogRecord) -> str:
    return str(within(context, lambda: RecordFormatter().format(of)))


def test_each_line_names_level_logger_query_and_batch() -> None:
    lines = formatted(CONTEXT, record(logging.WARNING, "first\n%s", "second")).splitlines()
    start = "WARNING spark_ckpt.location.cleaner [orders, batch 7] "
    assert lines == [start + "first", start + "second"]


@pytest.mark.parametrize("secret", ['pass"word-12', "back\\slash-12", "Gr\u00fc\u00dfe-secret"])
@pytest.mark.parametrize("as_json", [False, True])
def test_a_secret_that_json_escapes_is_hidden(secret: str, as_json: bool) -> None:
    remember_secret(secret)
    text = formatted(replace(CONTEXT, as_json=as_json), record(logging.ERROR, "login failed with %s", secret))
    assert (json.loads(text)["message"] if as_json else text).endswith("login failed with ***")


def test_a_line_is_cut_and_says_so() -> None:
    of = record(logging.ERROR, "no %s\nafter", "x" * 1_000_000)
    first, second = formatted(CONTEXT, of).splitlines()
    assert len(first) < MAX_LINE + 200
    assert first.endswith("x... (983619 more characters)")
    assert second.endswith("] after")
    message = json.loads(formatted(replace(CONTEXT, as_json=True), of))["message"]
    assert message.startswith("no xxx")
    assert len(message) < MAX_LINE + 200


def test_a_secret_at_the_cut_is_hidden() -> None:
    remember_secret("hunter2-hunter2")
    text = formatted(CONTEXT, record(logging.ERROR, "%s", "x" * (MAX_LINE - 5) + "hunter2-hunter2" + "x" * 100))
    assert "hunt" not in text


def test_a_name_is_cut_and_on_one_line() -> None:
    query = LogContext.of(replace(TRIGGER, query_name="orders\nCRITICAL of ours"), CheckpointConfig())
    assert query.query == "orders?CRITICAL of ours"
    trigger = wire.trigger(replace(TRIGGER, query_name="s3://u:hunter2@x " + "a" * 60_000))
    name = decode(wire.message_of(trigger)).query_name
    assert name is not None
    assert name.startswith("s3://***@x aaa")
    assert len(name) < MAX_NAME + 100


def test_a_record_outside_of_a_query_names_none() -> None:
    assert formatted(None, record(logging.INFO, "ready")) == "INFO spark_ckpt.location.cleaner ready"


def test_json_has_one_line_and_the_level_first() -> None:
    of = record(logging.ERROR, "cannot delete %s\nnow", "chk-3")
    of.checkpoint = 3
    line = formatted(replace(CONTEXT, as_json=True), of)
    assert "\n" not in line
    assert line.startswith('{"level": "ERROR"')
    fields = json.loads(line)
    assert fields.pop("time").endswith("Z")
    assert fields == {
        "level": "ERROR",
        "logger": "spark_ckpt.location.cleaner",
        "query": "orders",
        "run": "run-1",
        "location": "file:/checkpoints/orders",
        "batch": 7,
        "message": "cannot delete chk-3\nnow",
        "checkpoint": 3,
    }


def test_json_has_the_traceback_of_an_error() -> None:
    try:
        raise OSError("the disk is full")
    except OSError:
        of = record()
        of.args, of.exc_info = ("chk-3",), sys.exc_info()
    fields = json.loads(formatted(replace(CONTEXT, as_json=True), of))
    assert fields["exception"].startswith("Traceback")
    assert fields["exception"].endswith("OSError: the disk is full")


@pytest.mark.parametrize("as_json", [False, True])
def test_credentials_are_in_neither_format(as_json: bool) -> None:
    line = formatted(
        replace(CONTEXT, location="s3://user:hunter2@bucket/q", as_json=as_json),
        record(logging.ERROR, "%s is away", "s3://user:hunter2@bucket/q"),
    )
    assert "hunter2" not in line
    assert "bucket/q" in line


@pytest.mark.parametrize("name", LEVELS)
def test_the_level_of_the_query_counts(name: str) -> None:
    context = replace(CONTEXT, level=LEVELS[name])
    assert logged(context) == list(LEVELS)[list(LEVELS).index(name) :]
    assert within(context, wants_debug) == (name == "debug")


def test_without_a_query_the_level_is_info() -> None:
    assert logged(None) == ["info", "warning", "error"]


def test_work_in_the_background_names_the_query() -> None:
    lines: list[str] = []
    within(CONTEXT, lambda: in_thread(lambda: lines.append(RecordFormatter().format(record(logging.INFO, "done")))))
    eventually(lambda: lines)
    assert lines == ["INFO spark_ckpt.location.cleaner [orders, batch 7] done"]


@pytest.fixture
def process() -> Iterator[SideProcess]:
    with SideProcess() as process:
        process.ask(*wire.START)
        yield process


class LoggingDriver(RemoteDriver):
    """Driver of a query with log settings."""

    log: dict[str, str]

    def make_trigger(self, version: int, **fields: Any) -> Any:
        trigger = super().make_trigger(version, **fields)
        return replace(trigger, settings={**trigger.settings, **self.log})


def test_each_query_of_a_driver_has_its_own_level_and_format(process: SideProcess, tmp_path: Path) -> None:
    verbose = LoggingDriver(f"file:{tmp_path}/verbose", run_id="verbose")
    verbose.log = {LOG_LEVEL.key: "debug", LOG_FORMAT.key: "json"}
    quiet = LoggingDriver(f"file:{tmp_path}/quiet", run_id="quiet")
    quiet.log = {LOG_LEVEL.key: "warning"}
    plain = RemoteDriver(f"file:{tmp_path}/plain", run_id="plain")
    for driver in (verbose, quiet, plain):
        run_batch(process, driver, 1)
    assert process.end_input() == 0
    log = process.complete_log()
    records = [json.loads(line) for line in log if line.startswith("{")]
    assert {record["run"] for record in records} == {"verbose"}
    assert {"trigger", "ack"} <= {record["message"].split()[0] for record in records if record["level"] == "DEBUG"}
    (completed,) = (record for record in records if record["message"].startswith("completed checkpoint"))
    assert completed["level"] == "INFO"
    assert (completed["batch"], completed["checkpoint"]) == (0, 2)
    texts = [line for line in log if "completed checkpoint" in line and not line.startswith("{")]
    assert len(texts) == 1
    assert ", batch 0, checkpoint 2] completed checkpoint 2 in " in texts[0]


def test_the_settings_are_the_levels_of_the_log() -> None:
    for level in LEVELS:
        assert CheckpointConfig.parse({LOG_LEVEL.key: level}).log_level == level
