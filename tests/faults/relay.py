"""The messages between the JVM and the coordinator, with the fault injected."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from spark_ckpt.bridge.codec import error
from spark_ckpt.bridge.protocol import Message
from spark_ckpt.checkpoint.layout import CKPT, SHARED
from tests.faults.injection import SLOW_SECONDS, Injector
from tests.faults.points import REPEATED, Kind, Place

_GIVEN_UP = ("task_failed", "decline")


class _Asked(NamedTuple):
    kind: str
    subtask: tuple[object, ...]
    injector: Injector


class Passed(NamedTuple):
    """Messages to pass on in response to a message."""

    to_coordinator: list[Message]
    to_driver: list[Message]


@dataclass
class _Held:
    message: Message
    asked: _Asked


class Relay:
    """Decides the fate of each message. One thread passes in requests, another one replies.

    A late request or answer is overtaken: it is passed on after the next one of the same subtask, which comes from a
    new attempt of the task. For messages that no attempt repeats, it is only delayed.

    Args:
        injector_of: returns the fault at a location named by a `trigger`.
    """

    def __init__(self, injector_of: Callable[[str], Injector]) -> None:
        self._injector_of = injector_of
        self._injectors: dict[str, Injector] = {}
        self._asked: dict[int, _Asked] = {}
        self._held: dict[Place, _Held] = {}

    def request(self, message: Message) -> Passed:
        """Handles a message from the JVM."""
        header = json.loads(message.header)
        job = message.job
        if message.kind == "trigger":
            self._injectors[job] = self._injector_of(header["location"])
        injector = self._injectors.get(job)
        if injector is None:
            return Passed([message], [])
        asked = self._asked[message.id] = _Asked(message.kind, _subtask(header), injector)
        if injector.strike(Place.SHARED, message.kind) is Kind.ERROR:
            _block(injector.folder)
        if message.kind in _GIVEN_UP:
            _unblock(injector.folder)
        kind = injector.strike(Place.REQUEST, message.kind, f"{header.get('batch_id')} {asked.subtask}")
        if kind is Kind.ERROR:
            return Passed([], [_injected(message.id)])
        return Passed(self._pass(Place.REQUEST, kind, message, asked), [])

    def reply(self, message: Message) -> Passed:
        """Handles a message from the coordinator."""
        if message.kind == "notify":
            header = json.loads(message.header)
            asked = _Asked(message.kind, _subtask(header), self._injectors[message.job])
        elif message.id in self._asked:
            asked = self._asked.pop(message.id)
        else:
            return Passed([], [message])
        kind = asked.injector.strike(Place.REPLY, asked.kind)
        if kind is Kind.DROPPED:
            return Passed([], [])
        if kind is Kind.ERROR:
            return Passed([], [_injected(message.id)])
        return Passed([], self._pass(Place.REPLY, kind, message, asked))

    def _pass(self, place: Place, kind: Kind | None, message: Message, asked: _Asked) -> list[Message]:
        if kind is Kind.LATE and asked.kind in REPEATED:
            self._held[place] = _Held(message, asked)
            return []
        if kind is Kind.LATE:
            time.sleep(SLOW_SECONDS)
        held = self._held.get(place)
        if held is None or held.asked != asked:
            return [message]
        return [message, self._held.pop(place).message]


def _subtask(header: dict[str, Any]) -> tuple[object, ...]:
    return tuple(header.get("subtask", ()))


def _injected(request_id: int) -> Message:
    return error(request_id, "InjectedError", "injected", fatal=False)


def _block(folder: Path) -> None:
    """Replaces the directory of the executors' state files with a file."""
    shared = folder / "checkpoint" / CKPT / SHARED
    shared.rename(folder / "shared-away")
    shared.touch()


def _unblock(folder: Path) -> None:
    away = folder / "shared-away"
    if away.exists():
        shared = folder / "checkpoint" / CKPT / SHARED
        shared.unlink()
        away.rename(shared)
