"""Small savepoints of Flink whose bytes stand for very much, or for nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spark_ckpt import metadata as m
from spark_ckpt.flink.export.headers import keyed_header
from spark_ckpt.flink.export.model import FlinkState, StateKind
from spark_ckpt.flink.streams.assignment import hash_of_long, key_group_of
from spark_ckpt.flink.streams.types import primitives
from spark_ckpt.flink.streams.types.base import Serializer

KEY_GROUPS = 128


def savepoint(folder: Path, serializer: Serializer, values: tuple[bytes, ...] = ()) -> Path:
    """Savepoint with a value state `s` of a serializer, whose values are given as bytes, and keys of 8 bytes."""
    folder.mkdir(parents=True)
    header = keyed_header(primitives.LONG, [FlinkState("s", StateKind.VALUE, serializer)])
    key_group = key_group_of(hash_of_long(1), KEY_GROUPS)
    offsets = np.zeros(KEY_GROUPS, np.int64)
    rows = []
    for number, value in enumerate(values, 1):
        first = key_group | (0x80 if number == len(values) else 0)
        key = bytes([first]) + (1).to_bytes(8, "big") + b"\0"
        rows.append(len(key).to_bytes(4, "big") + key + len(value).to_bytes(4, "big") + value)
    if rows:
        offsets[key_group] = len(header)
    content = header + (b"\0\0" + b"".join(rows) + b"\xff\xff" if rows else b"")
    (folder / "state").write_bytes(content)
    handle = m.KeyGroupsSavepointStateHandle(
        m.KeyGroupRangeOffsets(m.KeyGroupRange(0, KEY_GROUPS - 1), offsets),
        m.RelativeFileStateHandle("state", len(content)),
    )
    subtask = m.OperatorSubtaskState(managed_keyed_state=handle)
    operator = m.OperatorState(bytes(range(16)), 1, KEY_GROUPS, {0: subtask})
    (folder / m.METADATA_FILE_NAME).write_bytes(m.dumps(m.CheckpointMetadata(1, (), (operator,)), version=3))
    return folder


class JavaWriter:
    """Writer of serialised Java objects, whose handles count up from 0."""

    def __init__(self) -> None:
        self._handles = 0

    def handle(self) -> int:
        """Handle of the next object."""
        self._handles += 1
        return self._handles - 1

    def string(self, text: str) -> bytes:
        self.handle()
        return b"\x74" + _utf(text)

    def class_of(self, name: str, flags: int, *fields: tuple[str, str]) -> bytes:
        """Description of a class without a superclass: types and names of its fields."""
        self.handle()
        described = [
            kind.encode() + _utf(field) + (self.string("Lx;") if kind == "L" else b"") for kind, field in fields
        ]
        return (
            b"\x72" + _utf(name) + bytes(8) + bytes([flags]) + len(fields).to_bytes(2, "big") + b"".join(described)
        ) + b"\x78\x70"

    def constant(self, name: str) -> bytes:
        described = self.class_of("java.lang.Enum", 0x12)
        self.handle()
        return b"\x7e" + described + self.string(name)

    def type_of(self, java: str, root: str, *children: str) -> tuple[bytes, int]:
        """A logical type up to its children, and its handle."""
        fields = [("Z", "isNullable"), ("L", "typeRoot"), *(("L", child) for child in children)]
        described = self.class_of(f"org.apache.flink.table.types.logical.{java}", 2, *fields)
        handle = self.handle()
        return b"\x73" + described + b"\1" + self.constant(root), handle


def reference(handle: int) -> bytes:
    """Reference to an object before."""
    return b"\x71" + (0x7E0000 + handle).to_bytes(4, "big")


def _utf(text: str) -> bytes:
    encoded = text.encode()
    return len(encoded).to_bytes(2, "big") + encoded
