"""State written by Flink's backends from `BackendVectors.java`: all types, namespaces, compression."""

from __future__ import annotations

import struct
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt import metadata as m
from spark_ckpt.flink.streams import (
    Datum,
    KeyedState,
    Layout,
    ManagedOperatorState,
    Part,
    Timer,
    TimeWindow,
    UnknownSerializerError,
    read_changes,
)
from spark_ckpt.flink.streams.values import Instant
from tests.flink.streams.corpus import (
    StateVector,
    backend,
    entries_of,
    values_of,
    with_unknown_class,
    with_unknown_end,
)

KEYS = 12
WINDOW = TimeWindow(-1000, 59_000)
COMPRESSED = pytest.mark.parametrize("suffix", ["", "-compressed"], ids=["plain", "compressed"])


def read_keyed(vector: StateVector) -> tuple[KeyedState, dict[str, list[dict[str, Any]]]]:
    ((operator, handle),) = vector.key_groups()
    with vector.files.open(handle.delegate_state_handle) as stream:
        state = KeyedState(handle, stream, operator.max_parallelism)
        return state, values_of(state)


def by_key(entries: list[dict[str, Any]]) -> dict[Any, Any]:
    values = {entry["key"]: entry["value"] for entry in entries}
    assert len(values) == len(entries)
    return values


@COMPRESSED
@pytest.mark.parametrize("layout", Layout)
def test_types(layout: Layout, suffix: str) -> None:
    state, found = read_keyed(backend(f"types-{layout.name.lower()}{suffix}"))
    assert state.layout is layout
    assert state.header.compressed == bool(suffix)
    keys = range(-2, KEYS - 2)
    assert by_key(found["boolean"]) == {key: key % 2 == 0 for key in keys}
    assert by_key(found["byte"]) == {key: key * 10 for key in keys}
    assert by_key(found["short"]) == {key: key * -1000 for key in keys}
    assert by_key(found["int"]) == {key: key * 1_000_000 for key in keys}
    assert by_key(found["long"]) == {key: key * -(10**12) for key in keys}
    assert by_key(found["float"]) == {key: key * 0.5 for key in keys}
    assert by_key(found["double"]) == {key: key * 0.1 for key in keys}
    assert by_key(found["string"]) == {key: "\0ä名😀" * (key + 2) for key in keys}
    assert by_key(found["bytes"]) == {key: struct.pack("b", key) * (key + 2) for key in keys}
    assert by_key(found["nested"]) == {key: (((key, "a"),), ()) for key in keys}
    assert by_key(found["list"]) == {key: tuple(f",{i}" for i in range(key + 3)) for key in keys}
    assert {entry["namespace"] for name in ("boolean", "nested", "list") for entry in found[name]} == {WINDOW}
    timers = [entry["element"] for entry in found["_timer_state/event_x"]]
    assert sorted(timers) == [Timer(-5000 + key, key, WINDOW) for key in keys]
    expected = {(key, name, value) for key in keys for name, value in (("twice", str(key * 2)), ("null", None))}
    if layout is Layout.HEAP:
        pairs = {(entry["key"], *pair) for entry in found["map"] for pair in entry["value"]}
    else:
        pairs = {(entry["key"], entry["map key"], entry["value"]) for entry in found["map"]}
    assert pairs == expected


@COMPRESSED
@pytest.mark.parametrize("layout", Layout)
def test_keys_and_namespaces_of_any_length(layout: Layout, suffix: str) -> None:
    state, found = read_keyed(backend(f"namespaces-{layout.name.lower()}{suffix}"))
    assert state.layout is layout
    entries = [(key, namespace) for key in range(KEYS) for namespace in ("", "n" * 300)]
    values = {(entry["key"], entry["namespace"]): entry["value"] for entry in found["value"]}
    assert values == {("k" * key * 30, namespace): key + len(namespace) for key, namespace in entries}
    if layout is Layout.HEAP:
        maps = {(entry["key"], entry["namespace"]): entry["value"] for entry in found["map"]}
    else:
        maps = {(e["key"], e["namespace"]): ((e["map key"], e["value"]),) for e in found["map"]}
    assert maps == {("k" * key * 30, namespace): ((key, namespace),) for key, namespace in entries}
    assert len(found["value"]) == len(found["map"]) == len(entries)


def test_keys_beyond_32_bits_lie_in_the_key_groups_of_their_hashes() -> None:
    # Reading verifies that each key belongs to the key group in which Flink has put it.
    _, found = read_keyed(backend("long-keys-heap"))
    keys = {-(2**63), -(2**40) - 5, -1, 2**32, 123_456_789_012, 2**63 - 1}
    assert by_key(found["key"]) == {key: key for key in keys}


@COMPRESSED
def test_operator_state(suffix: str) -> None:
    ((_, _, subtask),) = backend(f"operator{suffix}").subtasks()
    handle = subtask.managed_operator_state
    assert handle is not None
    found: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    with backend(f"operator{suffix}").files.open(handle.delegate_state_handle) as stream:
        state = ManagedOperatorState(handle, stream)
        assert state.header.compressed == bool(suffix)
        assert {meta.name for meta in state.states} == {"split", "union", "empty", "broadcast", "empty broadcast"}
        for entry in state.entries():
            found[state.states[entry.state].name].append(tuple(datum.value for datum in entry.parts.values()))
    lengths = [70_000 if suffix and i == 5 else i * 20 for i in range(KEYS)]
    assert found == {
        "split": [(i * 7,) for i in range(KEYS)],
        "union": [("u" * length,) for length in lengths],
        "broadcast": [(i, f"b{i}") for i in range(KEYS)],
    }


@COMPRESSED
def test_changelog(suffix: str) -> None:
    vector = backend(f"changelog{suffix}")
    ((_, handle),) = vector.keyed()
    assert isinstance(handle, m.ChangelogStateHandleStreamImpl)
    found = []
    for part in handle.handles_and_offsets:
        assert part.handle is not None
        with vector.files.open(part.handle, size_is_known=False) as stream:
            found.append([(change.key_group, change.change.decode()) for change in read_changes(stream, part.offset)])
    # The handle has the first and the last of three sets. Within a set, changes are sorted by key group.
    assert found == [
        [
            (-1, f"meta {number}"),
            *((group, f"change {number} {i}" * (i + 1)) for group in range(4) for i in range(group, KEYS, 4)),
        ]
        for number in (0, 2)
    ]


@pytest.mark.parametrize("layout", Layout)
def test_a_single_key_group(layout: Layout) -> None:
    # Here both layouts begin with the same four bytes, and Flink 1.13 writes both with the same kind of handle.
    vector = backend(f"one-key-group-{layout.name.lower()}")
    ((operator, handle),) = vector.key_groups()
    as_before = m.KeyGroupsStateHandle(handle.group_range_offsets, handle.delegate_state_handle)
    with vector.files.open(as_before) as stream:
        state = KeyedState(as_before, stream, operator.max_parallelism)
        assert stream.input(state.key_groups()[0].offset).i32("beginning") == 0
        assert state.layout is layout
        assert [entry["value"] for entry in values_of(state)["only"]] == [49]


@pytest.mark.parametrize("name", ["unknown-full", "unknown-heap"])
def test_instants(name: str) -> None:
    vector = backend(name)
    ((operator, handle),) = vector.key_groups()
    with vector.files.open(handle.delegate_state_handle) as stream:
        state = KeyedState(handle, stream, operator.max_parallelism)
        names = [meta.name for meta in state.header.states]
        found = {
            names[entry.state]: (entry.parts[Part.KEY].value, entry.parts[Part.VALUE].value)
            for _, entry in entries_of(state)
        }
    assert found.keys() == {"known", "instant", "behind"}
    assert found["instant"] == (7, Instant(7, 0))


def test_unknown_serializer_in_a_full_snapshot(tmp_path: Path) -> None:
    vector = with_unknown_class(backend("unknown-full"), tmp_path)
    ((operator, handle),) = vector.key_groups()
    with vector.files.open(handle.delegate_state_handle) as stream:
        state = KeyedState(handle, stream, operator.max_parallelism)
        unknown = state.header.unknown
        assert unknown is not None
        assert unknown.class_name.endswith(".UnknownSerializer$UnknownSerializerSnapshot")
        assert str(state.header.key_serializer) == "Long"
        names = [meta.name for meta in state.header.states]
        assert set(names) == {"known", "instant", "behind"}
        assert state.can_read_entries
        found = {names[entry.state]: entry.parts for _, entry in entries_of(state)}
    assert {name: parts[Part.KEY].value for name, parts in found.items()} == dict.fromkeys(names, 7)
    assert found["instant"][Part.VALUE] == Datum(struct.pack(">qi", 7, 0), known=False)
    assert (found["known"][Part.VALUE].value, found["behind"][Part.VALUE].value) == (49, 50)


@pytest.mark.parametrize("name", ["unknown-full", "unknown-heap"])
def test_a_header_whose_end_is_unknown(name: str, tmp_path: Path) -> None:
    """A byte more before the first key group: the snapshot of the unknown serializer has no possible end."""
    vector = with_unknown_end(with_unknown_class(backend(name), tmp_path))
    ((operator, handle),) = vector.key_groups()
    with vector.files.open(handle.delegate_state_handle) as stream:
        state = KeyedState(handle, stream, operator.max_parallelism)
        assert (state.header.is_complete, len(state.header.states)) == (False, 2)
        if name == "unknown-heap":
            with pytest.raises(UnknownSerializerError, match="UnknownSerializerSnapshot"):
                next(state.entries(state.key_groups()[0]))
            return
        (entry,) = (entry for _, entry in entries_of(state) if entry.state == 2)
    assert entry.parts == {
        Part.COMPOSITE_KEY: Datum(struct.pack(">qx", 7), known=False),
        Part.VALUE: Datum(struct.pack(">qi", 7, 0), known=False),
    }


def test_unknown_serializer_in_a_heap_snapshot(tmp_path: Path) -> None:
    vector = with_unknown_class(backend("unknown-heap"), tmp_path)
    ((operator, handle),) = vector.key_groups()
    with vector.files.open(handle.delegate_state_handle) as stream:
        state = KeyedState(handle, stream, operator.max_parallelism)
        assert state.layout is Layout.HEAP
        assert not state.can_read_entries
        groups = state.key_groups()
        names = [meta.name for meta in state.header.states]
        found = list(entries_of(state))
        # The raw bytes are still available, by key group.
        raw = [state.raw(group) for group in groups]
    assert [struct.unpack_from(">i", part)[0] for part in raw] == list(range(8))
    assert sum(map(len, raw)) + groups[0].offset == stream.size
    *separate, (key_group, rest) = found
    assert [entry.parts[Part.KEY].value for _, entry in separate] == [7] * len(separate)
    assert (names[rest.state], list(rest.parts)) == ("instant", [Part.VALUE])
    assert raw[key_group].endswith(rest.parts[Part.VALUE].raw)
    assert struct.pack(">qi", 7, 0) in rest.parts[Part.VALUE].raw
