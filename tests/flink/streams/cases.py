"""Streams of every kind, each with a function that reads all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from spark_ckpt import metadata as m
from spark_ckpt.flink.streams import (
    KeyedState,
    ManagedOperatorState,
    StateFiles,
    StateStream,
    StateStreamFormatError,
    read_buffers,
    read_changes,
)
from tests.flink.streams.corpus import JOBS, backend, entries_of, inline


@dataclass(frozen=True)
class Case:
    """Stream with a function that reads all of it."""

    name: str
    content: bytes
    read: Callable[[StateStream], list[Any]]

    def __str__(self) -> str:
        return self.name

    def damaged(self, content: bytes) -> list[Any] | None:
        """Result of reading other bytes; None if they are refused with an error that has path, field and offset."""
        try:
            with StateFiles("/checkpoint/_metadata").open(inline(content, self.name)) as stream:
                return self.read(stream)
        except StateStreamFormatError as error:
            refused = error
        assert refused.path == self.name
        assert refused.field
        assert refused.offset >= -(2**63)
        return None


def keyed_case(name: str, operator: m.OperatorState, handle: Any, stream: StateStream) -> Case:
    def read(damaged: StateStream) -> list[Any]:
        state = KeyedState(handle, damaged, operator.max_parallelism)
        return [state.header, *((group, entry) for group, entry in entries_of(state))]

    return Case(name, stream.input().raw(stream.size, "all"), read)


def cases() -> Iterator[Case]:
    for vector in (
        *(v for v in JOBS if str(v) in ("f120-heap-p2-string-keys", "f113-rocksdb-full-p1", "f120-heap-p2-compressed")),
        *map(backend, ("types-full-compressed", "one-key-group-heap", "one-key-group-full", "unknown-full")),
    ):
        operator, handle = next(vector.key_groups())
        with vector.files.open(handle.delegate_state_handle) as stream:
            yield keyed_case(str(vector), operator, handle, stream)
    for name in ("operator", "operator-compressed"):
        ((_, _, subtask),) = backend(name).subtasks()
        operator_handle = subtask.managed_operator_state
        assert operator_handle is not None
        with backend(name).files.open(operator_handle.delegate_state_handle) as stream:
            content = stream.input().raw(stream.size, "all")
        yield Case(name, content, lambda s, h=operator_handle: list(ManagedOperatorState(h, s).entries()))  # type: ignore[misc]
    for name in ("changelog", "changelog-compressed"):
        content = (backend(name).directory / "changes").read_bytes()
        yield Case(name, content, lambda s: [change for at in (0, 1810) for change in read_changes(s, at)])
    (vector,) = (v for v in JOBS if str(v) == "f115-unaligned-p2")
    channel = next(c for _, _, subtask in vector.subtasks() for c in subtask.input_channel_state)
    with vector.files.open(channel.delegate) as stream:
        content = stream.input().raw(stream.size, "all")
    yield Case("channel state", content, lambda s: list(read_buffers(channel, s)))


CASES = list(cases())
