from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_ckpt.bridge.protocol import Message
from spark_ckpt.errors import StorageError
from spark_ckpt.storage import CreateOutcome, LocalStorage
from tests.faults.injection import SLOW_SECONDS, Injector, StruckStorage, arm, disarm, has_struck
from tests.faults.points import Cell, Kind, Place, Point
from tests.faults.relay import Relay

LOG = "ckpt/completed"
RECORD = f"{LOG}/00000000000000000001.json"


@pytest.fixture
def strike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Arms a folder with a fault at a custom point."""

    def armed(kind: Kind, place: Place, what: str, pattern: str = "", skip: int = 0, after: object = None) -> Path:
        point = Point("made up", place, what, {kind: ""}, pattern, skip, after)  # type: ignore[arg-type]
        monkeypatch.setattr("tests.faults.injection.point_named", lambda name: point)
        arm(tmp_path, Cell(point, kind))
        return tmp_path

    return armed


def storage(folder: Path) -> StruckStorage:
    return StruckStorage(LocalStorage(folder / "checkpoint"), Injector(folder))


def test_strikes_once_after_so_many(strike: Callable[..., Path]) -> None:
    folder = strike(Kind.ERROR, Place.STORAGE, "write", "^a", skip=1)
    struck = storage(folder)
    for name in ("a1", "b1"):
        struck.write_atomic(name, b"")
    with pytest.raises(StorageError, match="a2"):
        struck.write_atomic("a2", b"")
    struck.write_atomic("a2", b"")
    storage(folder).write_atomic("a3", b"")
    storage(folder).write_atomic("a4", b"")
    assert has_struck(folder)


def test_strikes_nothing_when_not_armed(strike: Callable[..., Path]) -> None:
    folder = strike(Kind.ERROR, Place.STORAGE, "write")
    disarm(folder)
    storage(folder).write_atomic("a", b"")
    assert not has_struck(folder)


def test_a_late_create_arrives_a_few_operations_after(strike: Callable[..., Path]) -> None:
    struck = storage(strike(Kind.LATE, Place.STORAGE, "create", LOG))
    assert struck.create_exclusive(RECORD, b"x").outcome is CreateOutcome.UNKNOWN
    seen = [len(struck.list(LOG)) for _ in range(4)]
    assert seen[0] == 0
    assert seen[-1] == 1
    assert struck.read(RECORD) == b"x"


def test_a_point_behind_a_lost_answer(strike: Callable[..., Path]) -> None:
    struck = storage(strike(Kind.ERROR, Place.STORAGE, "read", LOG, skip=1, after=("create", LOG)))
    assert struck.create_exclusive(RECORD, b"x").outcome is CreateOutcome.WON
    assert struck.read(RECORD) == b"x"
    assert struck.create_exclusive(RECORD.replace("1", "2"), b"x").outcome is CreateOutcome.UNKNOWN
    with pytest.raises(StorageError, match="read"):
        struck.read(RECORD)


def test_kills(strike: Callable[..., Path]) -> None:
    folder = strike(Kind.KILL, Place.SINK, "write")
    killed: list[bool] = []
    injector = Injector(folder, lambda: killed.append(True))
    assert [injector.strike(Place.SINK, "write") for _ in range(2)] == [Kind.KILL, None]
    assert killed == [True]


# ---- messages --------------------------------------------------------------------------------------------------------


class Wire:
    """A relay with a single open job."""

    def __init__(self, folder: Path) -> None:
        injector = Injector(folder)
        self.relay = Relay(lambda location: injector)
        self.ids = iter(range(100))
        self.request("trigger", location="x")

    def request(self, kind: str, partition: int | None = None, **fields: object) -> tuple[list[int], list[int]]:
        header = {"subtask": [0, "default", partition], **fields}
        passed = self.relay.request(Message(next(self.ids), kind, "j", json.dumps(header).encode()))
        return [m.id for m in passed.to_coordinator], [m.id for m in passed.to_driver]

    def reply(self, number: int) -> list[Message]:
        passed = self.relay.reply(Message(number, "ok", "", b"{}"))
        assert passed.to_coordinator == []
        return passed.to_driver


def test_an_error_in_place_of_a_request(strike: Callable[..., Path]) -> None:
    wire = Wire(strike(Kind.ERROR, Place.REQUEST, "ack", skip=1))
    assert wire.request("ack") == ([1], [])
    assert wire.request("ack") == ([], [2])
    assert wire.request("ack") == ([3], [])


def test_a_late_ack_is_overtaken_by_that_of_the_next_attempt(strike: Callable[..., Path]) -> None:
    wire = Wire(strike(Kind.LATE, Place.REQUEST, "ack"))
    assert wire.request("ack", partition=3) == ([], [])
    assert wire.request("ack", partition=2) == ([2], [])
    assert wire.request("locate", partition=3) == ([3], [])
    assert wire.request("ack", partition=3) == ([4, 1], [])


def test_an_error_in_place_of_an_answer(strike: Callable[..., Path]) -> None:
    wire = Wire(strike(Kind.ERROR, Place.REPLY, "ack"))
    wire.request("ack")
    assert [m.kind for m in wire.reply(1)] == ["error"]


def test_a_late_answer_is_overtaken_by_that_to_the_next_attempt(strike: Callable[..., Path]) -> None:
    wire = Wire(strike(Kind.LATE, Place.REPLY, "ack"))
    wire.request("ack", partition=1)
    wire.request("ack", partition=1)
    assert wire.reply(1) == []
    assert [m.id for m in wire.reply(2)] == [2, 1]


def test_calls_without_a_fault_pass(strike: Callable[..., Path]) -> None:
    wire = Wire(strike(Kind.ERROR, Place.REPLY, "trigger"))
    assert [m.kind for m in wire.reply(-1)] == ["ok"]


def test_a_notification_gets_lost(strike: Callable[..., Path]) -> None:
    wire = Wire(strike(Kind.DROPPED, Place.REPLY, "notify"))
    notification = Message(-1, "notify", "j", json.dumps({"event": "complete", "version": 1}).encode())
    assert wire.relay.reply(notification).to_driver == []
    assert wire.relay.reply(notification).to_driver == [notification]


def test_a_late_trigger_only_takes_its_time(strike: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("tests.faults.relay.time.sleep", pauses.append)
    wire = Wire(strike(Kind.LATE, Place.REQUEST, "trigger", skip=1))
    assert wire.request("trigger", location="x") == ([1], [])
    assert pauses == [SLOW_SECONDS]


def test_executors_cannot_write_until_a_task_has_failed(strike: Callable[..., Path]) -> None:
    folder = strike(Kind.ERROR, Place.SHARED, "trigger", skip=1)
    shared = folder / "checkpoint" / "ckpt" / "shared"
    shared.mkdir(parents=True)
    (shared / "delta-1").touch()
    wire = Wire(folder)
    wire.request("trigger", location="x")
    assert shared.is_file()
    wire.request("task_failed")
    assert [file.name for file in shared.iterdir()] == ["delta-1"]
