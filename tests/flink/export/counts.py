"""A savepoint with an operator for each type of key, and what Flink is to make of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_ckpt.flink.export.model import FlinkOperator, FlinkState, Rows, StateKind
from spark_ckpt.flink.export.writer import write_savepoint
from spark_ckpt.flink.streams import Serializer
from spark_ckpt.flink.streams.types.composites import TupleSerializer
from spark_ckpt.flink.streams.types.primitives import INT, LONG
from spark_ckpt.flink.streams.types.row_data import RowDataSerializer
from spark_ckpt.flink.streams.types.text import STRING
from spark_ckpt.flink.types.lookup import arrow_type
from spark_ckpt.storage import LocalStorage
from tests.flink.streams.types.flink_serializers import BIGINT, VARCHAR
from tests.support.flink_restore import Answer

LIST_DELIMITERS = 0x2C2C2C2C2C2C2C2C
"""Number whose bytes are those between the elements of a list."""
PAST, FUTURE = 1_000, 4_000_000_000_000
NUMBER = 42

STATES = (
    FlinkState("sum", StateKind.VALUE, LONG),
    FlinkState("list", StateKind.LIST, LONG),
    FlinkState("map", StateKind.MAP, LONG, STRING),
    FlinkState.timers(StateKind.EVENT_TIMER),
    FlinkState.timers(StateKind.PROCESSING_TIMER),
)


@dataclass
class Counted:
    """State of one key: what each of `STATES` has for it."""

    total: int | None
    elements: list[int]
    entries: dict[str, int | None]
    event_timers: list[int] = field(default_factory=list)
    processing_timers: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, number: int) -> Counted:
        """State of the key with this number. Some have no sum, no list, no map or no timers, or only timers."""
        return cls(
            None if number % 7 == 6 else 100 + number,
            [number, 44, -number, LIST_DELIMITERS][: number % 5],
            {("ä😀" if each == 3 else f"m{each}"): None if each == 2 else number * each for each in range(number % 4)},
            [-5, 1_000_000 + number][: number % 3],
            [PAST + number] if number % 5 == 1 else [FUTURE + number] if number % 5 == 0 else [],
        )

    @property
    def has_rows(self) -> bool:
        """True if a state beside the timers has a row."""
        return self.total is not None or bool(self.elements) or bool(self.entries)


@dataclass(frozen=True)
class Keys:
    """Keys of one type: as JSON that the judge understands.

    Args:
        kind: name of the type there.
        serializer: its serializer.
        keys: the keys.
        new: a key that the savepoint lacks.
    """

    kind: str
    serializer: Serializer
    keys: Sequence[Any]
    new: Any

    @property
    def uid(self) -> str:
        return f"by-{self.kind}"

    def states(self) -> list[tuple[Any, Counted]]:
        """Each key with its state."""
        return [(key, Counted.of(number)) for number, key in enumerate(self.keys)]

    def in_arrow(self, keys: Sequence[Any]) -> pa.Array:
        kind = arrow_type(self.serializer).type
        if pa.types.is_struct(kind):
            values = [[0, *key] if self.kind == "row" else key for key in keys]
            return pa.array([dict(zip([each.name for each in kind], value, strict=True)) for value in values], kind)
        return pa.array(keys, kind)

    def operator(self, max_parallelism: int) -> FlinkOperator:
        return FlinkOperator.of_uid(self.uid, self.serializer, STATES, max_parallelism)

    def rows(self) -> dict[str, Rows]:
        """Rows of each state, in batches of seven."""
        states = self.states()
        lists = [(key, state.elements) for key, state in states]
        sums = [(key, state.total) for key, state in states if state.total is not None]
        entries = [(key, (each, value)) for key, state in states for each, value in state.entries.items()]
        found = {
            "sum": self._batch(sums, {"value": (pa.int64(), lambda value: value)}),
            "list": self._batch(lists, {"value": (pa.list_(pa.int64()), lambda value: value)}),
            "map": self._batch(
                entries, {"map_key": (pa.string(), lambda entry: entry[0]), "value": (pa.int64(), lambda e: e[1])}
            ),
        }
        for state, timers in zip(STATES[3:], ("event_timers", "processing_timers"), strict=True):
            times = [(key, time) for key, counted in states for time in getattr(counted, timers)]
            found[state.name] = self._batch(times, {"timestamp": (pa.int64(), lambda value: value)})
        return found

    def _batch(self, rows: Sequence[tuple[Any, Any]], columns: dict[str, tuple[pa.DataType, Any]]) -> Rows:
        arrays = {"key": self.in_arrow([key for key, _ in rows])}
        for name, (kind, value_of) in columns.items():
            arrays[name] = pa.array([value_of(value) for _, value in rows], kind)
        batch = pa.RecordBatch.from_pydict(arrays)

        def pieces() -> Iterator[pa.RecordBatch]:
            yield from (batch.slice(at, 7) for at in range(0, len(batch), 7))

        return pieces()


ALL = {
    keys.kind: keys
    for keys in (
        Keys("string", STRING, [*(f"key-ä-{number}" for number in range(NUMBER)), "", "😀", "x" * 200], "new"),
        Keys("long", LONG, [*range(-NUMBER // 2, NUMBER // 2), 1 << 40, -(1 << 63)], 777_777),
        Keys("int", INT, [*range(-NUMBER // 2, NUMBER // 2), -(1 << 31)], 777_777),
        Keys(
            "row",
            RowDataSerializer((VARCHAR, BIGINT)),
            [
                *([f"k{number}" if number % 3 else f"a long key {number}", number] for number in range(NUMBER)),
                *([None, 3], ["x", None], ["", None], [None, None], ["ä名", -1]),
            ],
            ["new", 1],
        ),
        Keys(
            "tuple",
            TupleSerializer.of(STRING, LONG),
            [*([f"k{number}", number - 20] for number in range(NUMBER)), ["", 0], ["😀", -(1 << 63)]],
            ["new", 1],
        ),
    )
}
"""All types of keys, by name."""


def write(directory: Path, kinds: Sequence[str], *, max_parallelism: int = 128, parallelism: int = 3) -> None:
    """Write a savepoint with an operator for each of some types of keys."""
    operators = [(ALL[kind].operator(max_parallelism), ALL[kind].rows()) for kind in kinds]
    write_savepoint(LocalStorage(directory), operators, parallelism=parallelism)


def read_request(directory: Path, kind: str, backend: str) -> dict[str, Any]:
    """Request for all state of an operator through the State Processor API."""
    return {
        "do": "read",
        "savepoint": str(directory),
        "uid": ALL[kind].uid,
        "key": kind,
        "backend": backend,
        "ignoreOthers": True,
    }


def restore_request(
    directory: Path, kind: str, backend: str, *, max_parallelism: int = 128, parallelism: int = 2
) -> dict[str, Any]:
    """Request for a job that counts each key of an operator once more, and a new one."""
    return {
        **read_request(directory, kind, backend),
        "do": "restore",
        "keys": [*ALL[kind].keys, ALL[kind].new],
        "parallelism": parallelism,
        "maxParallelism": max_parallelism,
        "due": sum(time < FUTURE for _, state in ALL[kind].states() for time in state.processing_timers),
    }


def assert_equal(answer: Answer, *, repeats: bool = False) -> None:
    """Assert that Flink answers a request with what the savepoint was made of.

    Args:
        answer: the answer.
        repeats: True to accept that a row comes several times.
    """
    expected = (_read if answer.request["do"] == "read" else _restored)(ALL[answer.request["key"]])
    found = Counter(map(_text, answer.parsed))
    if repeats:
        found = Counter(found.keys())
    assert found == Counter(map(_text, expected)), f"{answer.request}"


def _text(row: Any) -> str:
    return json.dumps(row, sort_keys=True)


def _read(keys: Keys) -> list[Any]:
    return [
        [key, state.total, state.elements, state.entries, sorted(state.event_timers), sorted(state.processing_timers)]
        for key, state in keys.states()
        if state.has_rows
    ]


def _restored(keys: Keys) -> list[Any]:
    """Each key counted, and each timer that is due, once. A watermark at the end is later than all event times."""
    found: list[Any] = []
    for key, state in [*keys.states(), (keys.new, Counted(None, [], {}))]:
        found.append(["counted", key, (state.total or 0) + 1, [*state.elements, -1], {**state.entries, "counted": 1}])
        found += [["EVENT_TIME", key, time] for time in state.event_timers]
        found += [["PROCESSING_TIME", key, time] for time in state.processing_timers if time < FUTURE]
    return found
