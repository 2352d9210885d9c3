"""Savepoints of the tests of Flink's SQL planner, and their keyed state as Flink reads it.

They come with the planner's test jars of two lines of Flink. Most of the older ones are in the newer jar as well.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from spark_ckpt import metadata as m
from spark_ckpt.flink.streams import Entry, Part
from spark_ckpt.flink.streams.values import RowData
from tests.support.flink_check import HEAP, MODULE, PACKAGE, RUN_SECONDS, class_path

LINES = ("1.20", "2.1")
_NEWEST_VERSION = 4
"""Newest version of metadata that Flink 1.20 reads."""


@dataclass(frozen=True)
class Savepoint:
    """A savepoint, and the number of the jars' savepoints with the same bytes."""

    directory: Path
    number: int

    def __str__(self) -> str:
        return "/".join(self.directory.parts[-3:-1])


@cache
def savepoints() -> tuple[Savepoint, ...]:
    """All savepoints with different bytes. Skips the test without a JDK or Maven."""
    module = MODULE / "serializers"
    class_path(module)
    found = [
        file for line in LINES for file in sorted((module / "target" / "savepoints" / line).rglob(m.METADATA_FILE_NAME))
    ]
    contents = {file: b"".join(each.read_bytes() for each in sorted(file.parent.iterdir())) for file in found}
    numbers = Counter(contents.values())
    first = {content: file for file, content in reversed(contents.items())}
    return tuple(Savepoint(file.parent, numbers[content]) for content, file in sorted(first.items(), key=_file))


def _file(item: tuple[bytes, Path]) -> Path:
    return item[1]


State = tuple[str, Counter[str]]
"""Kind of a state and its entries, as text."""


def flinks_states(chosen: Iterable[Savepoint], scratch: Path) -> list[dict[tuple[str, str], State]]:
    """Keyed states as Flink 1.20 reads them, by operator and name, of each savepoint."""
    directories = [_readable(savepoint, scratch / str(number)) for number, savepoint in enumerate(chosen)]
    command = ["java", HEAP, "-XX:+UseSerialGC", "-cp", class_path(MODULE / "serializers"), f"{PACKAGE}.KeyedStates"]
    run = subprocess.run(
        command,
        input="\n".join(map(str, directories)),
        capture_output=True,
        timeout=RUN_SECONDS,
        text=True,
        encoding="utf-8",
    )
    assert run.returncode == 0, run.stderr
    return [
        {
            (operator, name): (state["kind"], Counter(as_text(entry) for entry in state["entries"]))
            for operator, states in json.loads(line).items()
            for name, state in states.items()
        }
        for line in run.stdout.splitlines()
    ]


def _readable(savepoint: Savepoint, scratch: Path) -> Path:
    """The savepoint, with metadata that Flink 1.20 reads."""
    metadata = m.load(savepoint.directory)
    if metadata.version <= _NEWEST_VERSION:
        return savepoint.directory
    scratch.mkdir(parents=True)
    for file in savepoint.directory.iterdir():
        if file.name != m.METADATA_FILE_NAME:
            (scratch / file.name).symlink_to(file)
    (scratch / m.METADATA_FILE_NAME).write_bytes(m.dumps(metadata, version=3))
    return scratch


def entry_of(parts: Entry) -> list[Any]:
    """An entry in the form of `KeyedStates`."""
    return [plain(parts.parts[part].value) for part in Part if part in parts.parts]


def plain(value: Any) -> Any:
    """A value as lists, numbers and text, as `Plain` has it."""
    if isinstance(value, RowData):
        return [value.kind, [plain(field) for field in value.fields]]
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, Decimal) else value


def as_text(value: Any) -> str:
    """A value of JSON as text. Lists of pairs may be maps, whose order says nothing."""
    return json.dumps(_ordered(value), sort_keys=True)


def _ordered(value: Any) -> Any:
    if isinstance(value, list):
        items = [_ordered(item) for item in value]
        if all(isinstance(item, list) and len(item) == 2 for item in items):
            return sorted(items, key=json.dumps)
        return items
    return value


def numbers(states: Iterable[Mapping[tuple[str, str], State]]) -> tuple[int, int, int]:
    """Operators, states and entries."""
    found = list(states)
    return (
        sum(len({operator for operator, _ in each}) for each in found),
        sum(map(len, found)),
        sum(entries.total() for each in found for _, entries in each.values()),
    )
