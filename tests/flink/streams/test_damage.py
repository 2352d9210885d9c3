"""Damaged streams lead to a typed error with the place or to a consistent result; memory never follows wild counts."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_ckpt import metadata as m
from spark_ckpt.flink.streams import (
    KeyedState,
    Layout,
    StateFiles,
    StateStreamFormatError,
    read_buffers,
    read_changes,
)
from tests.flink.streams.cases import CASES, Case
from tests.flink.streams.corpus import backend, entries_of, inline, open_stream
from tests.flink.streams.serializer_snapshots import LONG, MAP, VOID, composite, simple, utf
from tests.support.memory import traced_peak

IS_COMPRESSED = [case for case in CASES if "compressed" in case.name]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_truncated_anywhere(case: Case) -> None:
    whole = case.damaged(case.content)
    assert whole
    step = max(1, len(case.content) // 400)
    for length in (*range(0, len(case.content), step), len(case.content) - 1):
        assert case.damaged(case.content[:length]) is None, length


@settings(max_examples=400)
@given(st.sampled_from(CASES), st.data())
def test_flipped_bits(case: Case, data: st.DataObject) -> None:
    content = bytearray(case.content)
    for bit in data.draw(st.lists(st.integers(0, len(content) * 8 - 1), min_size=1, max_size=3)):
        content[bit // 8] ^= 1 << bit % 8
    read = case.damaged(bytes(content))
    # A damaged stream that is still readable gives the same result each time.
    assert repr(case.damaged(bytes(content))) == repr(read)


@settings(max_examples=200)
@given(st.sampled_from(IS_COMPRESSED), st.data())
def test_no_flipped_bit_of_compressed_data_goes_unnoticed(case: Case, data: st.DataObject) -> None:
    first = case.content.index(b"sNaPpY") - 4
    bit = data.draw(st.integers(first * 8, len(case.content) * 8 - 1))
    content = bytearray(case.content)
    content[bit // 8] ^= 1 << bit % 8
    read = case.damaged(bytes(content))
    # The same data has several compressed forms, and bytes without a handle are not read.
    assert read is None or repr(read) == repr(case.damaged(case.content))


@settings(max_examples=400)
@given(st.sampled_from(CASES), st.data())
def test_wild_counts(case: Case, data: st.DataObject) -> None:
    content = bytearray(case.content)
    at = data.draw(st.integers(0, len(content) - 4))
    struct.pack_into(">i", content, at, data.draw(st.sampled_from([2**31 - 1, -(2**31), 2**24, -1, 2**31 - 8])))
    case.damaged(bytes(content))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_wild_counts_allocate_nothing(case: Case) -> None:
    def read() -> None:
        for at in range(0, len(case.content) - 4, max(1, len(case.content) // 40)):
            case.damaged(case.content[:at] + b"\x7f\xff\xff\xf0" + case.content[at + 4 :])

    assert traced_peak(read) < 8 * 1024 * 1024


@settings(max_examples=300)
@given(st.sampled_from(CASES), st.binary(max_size=300))
def test_noise(case: Case, noise: bytes) -> None:
    case.damaged(noise)


# ---- detected damage -------------------------------------------------------------------------------------------------

KEY_GROUPS = 8


def heap_stream(entries: dict[int, list[tuple[int, int]]], count: int = 1) -> tuple[bytes, m.KeyGroupsStateHandle]:
    """Heap snapshot of `count` states with Long keys and values, and entries by key group."""
    states = b"".join(state_meta(f"state {i}") for i in range(count))
    content = struct.pack(">i?i", 6, False, 2) + simple(LONG) + struct.pack(">h", count) + states
    offsets = []
    for group in range(KEY_GROUPS):
        offsets.append(len(content))
        content += struct.pack(">i", group)
        for state in range(count):
            found = entries.get(group, [])
            content += struct.pack(">hi", state, len(found)) + b"".join(struct.pack(">xqq", *pair) for pair in found)
    return content, m.KeyGroupsStateHandle(m.KeyGroupRangeOffsets.of(0, offsets), inline(content))


def state_meta(name: str, kind: str = "VALUE", snapshot: bytes = simple(LONG)) -> bytes:
    def serializer(key: str, snapshot: bytes) -> bytes:
        return utf(key) + struct.pack(">i", 2) + snapshot

    serializers = serializer("NAMESPACE_SERIALIZER", simple(VOID)) + serializer("VALUE_SERIALIZER", snapshot)
    options = utf("KEYED_STATE_TYPE") + utf(kind)
    return utf(name) + struct.pack(">ii", 0, 1) + options + struct.pack(">i", 2) + serializers


def read_heap(handle: m.KeyGroupsStateHandle, content: bytes | None = None) -> list[Any]:
    changed = handle if content is None else replace(handle, delegate_state_handle=inline(content))
    with StateFiles("/checkpoint/_metadata").open(changed) as stream:
        state = KeyedState(changed, stream, KEY_GROUPS)
        assert state.layout is Layout.HEAP
        return list(entries_of(state))


# 0 hashes to 0. According to Flink, in `one-key-group` and `unknown-heap`, 7 belongs to key group 1 of 8.
WHOLE = {1: [(7, 49)]}


def test_a_handmade_stream_reads() -> None:
    _, handle = heap_stream(WHOLE)
    ((group, entry),) = read_heap(handle)
    assert (group, [datum.value for datum in entry.parts.values()]) == (1, [None, 7, 49])


def test_a_key_in_the_wrong_key_group() -> None:
    _, handle = heap_stream({2: [(7, 49)]})
    with pytest.raises(StateStreamFormatError, match="the key 7 belongs to key group 1, not 2") as error:
        read_heap(handle)
    assert error.value.field == "key_group[2].state 0.entries[0].key"


def test_a_state_that_comes_twice_in_a_key_group() -> None:
    content, handle = heap_stream(WHOLE, count=2)
    at = int(handle.group_range_offsets.offsets[0]) + 4
    assert content[at + 6 : at + 8] == b"\0\1"
    with pytest.raises(StateStreamFormatError, match="state 0 twice"):
        read_heap(handle, content[: at + 6] + b"\0\0" + content[at + 8 :])
    with pytest.raises(StateStreamFormatError, match="no state 2"):
        read_heap(handle, content[: at + 6] + b"\0\2" + content[at + 8 :])


def test_bytes_between_key_groups() -> None:
    content, handle = heap_stream(WHOLE)
    offsets = handle.group_range_offsets.offsets.copy()
    at = int(offsets[3])
    offsets[3:] += 1
    moved = replace(handle, group_range_offsets=m.KeyGroupRangeOffsets.of(0, offsets))
    with pytest.raises(StateStreamFormatError, match="trailing bytes after the last state"):
        read_heap(moved, content[:at] + b"\0" + content[at:])


def test_bytes_between_key_groups_of_a_full_snapshot() -> None:
    vector = backend("types-full")
    ((operator, handle),) = vector.key_groups()
    with vector.files.open(handle.delegate_state_handle) as stream:
        content = stream.input().raw(stream.size, "all")
    offsets = handle.group_range_offsets.offsets.copy()
    at = int(np.unique(offsets)[3])
    offsets[offsets >= at] += 1
    moved = m.KeyGroupsSavepointStateHandle(
        m.KeyGroupRangeOffsets.of(0, offsets), inline(content[:at] + b"\0" + content[at:])
    )
    with vector.files.open(moved.delegate_state_handle) as stream:
        state = KeyedState(moved, stream, operator.max_parallelism)
        with pytest.raises(StateStreamFormatError, match="trailing bytes after the key group"):
            list(entries_of(state))


def test_a_part_of_the_key_groups_of_a_stream() -> None:
    # Rescaling leaves such handles in the materialised part of a changelog.
    _, handle = heap_stream(WHOLE)
    part = handle.group_range_offsets.intersection(m.KeyGroupRange(0, 1))
    assert len(read_heap(replace(handle, group_range_offsets=part))) == 1


@pytest.mark.parametrize("offset", [-1, -(2**63), 2**62])
def test_offsets_outside_of_the_stream(offset: int) -> None:
    _, handle = heap_stream(WHOLE)
    offsets = handle.group_range_offsets.offsets.copy()
    offsets[5] = offset
    with pytest.raises(StateStreamFormatError, match=f"key group 5 begins at {offset} of "):
        read_heap(replace(handle, group_range_offsets=m.KeyGroupRangeOffsets.of(0, offsets)))


def test_key_groups_beyond_the_max_parallelism() -> None:
    _, handle = heap_stream(WHOLE)
    with (
        StateFiles("/checkpoint/_metadata").open(handle) as stream,
        pytest.raises(StateStreamFormatError, match=r"key groups \[0, 7\] of an operator with 7"),
    ):
        KeyedState(handle, stream, 7)


@pytest.mark.parametrize("name", ["changelog", "changelog-compressed"])
@pytest.mark.parametrize("offset", [-1, -(2**63), 2**40])
def test_changes_outside_of_the_stream(name: str, offset: int) -> None:
    content = (backend(name).directory / "changes").read_bytes()
    with open_stream(content) as stream, pytest.raises(StateStreamFormatError):
        list(read_changes(stream, offset))


def full_stream(key: bytes, value: bytes, *, is_map: bool = False) -> tuple[bytes, m.KeyGroupsSavepointStateHandle]:
    """Full snapshot of one entry in key group 1, of a map state or of a state with an unknown serializer."""
    header = struct.pack(">i?i", 6, False, 2) + simple(LONG) + struct.pack(">h", 1)
    if is_map:
        header += state_meta("map", "MAP", composite(MAP, simple(LONG), simple(LONG)))
    else:
        header += state_meta("unknown", "VALUE", simple("com.example.Snapshot"))
    entry = struct.pack(">hi", 0, len(key)) + key + struct.pack(">i", len(value)) + value + b"\xff\xff"
    offsets = m.KeyGroupRangeOffsets.of(1, [len(header)])
    return header + entry, m.KeyGroupsSavepointStateHandle(offsets, inline(header + entry))


@pytest.mark.parametrize(
    ("key", "value", "is_map", "reason"),
    [
        (b"\x81" + struct.pack(">qx", 7), b"\0" + bytes(8), False, None),
        (b"", b"\x81\0\0", False, "key group 0 in key group 1"),
        (b"\x81" + struct.pack(">qxq", 7, 1), b"\0" + bytes(8), True, None),
        (b"\x81" + struct.pack(">qxq", 7, 1), b"\1", True, None),
        (b"\x81" + struct.pack(">qxq", 7, 1), b"\1and more", True, None),
        (b"\x81" + struct.pack(">qxq", 7, 1), b"", True, "by its length"),
        (b"\x81" + struct.pack(">qxq", 7, 1) + b"\0", b"\1", True, "by its length"),
        (b"\x82" + struct.pack(">qxq", 7, 1), b"\1", True, "key group 2 in key group 1"),
    ],
    ids=["unknown", "no key", "map", "null", "null and more", "no value", "long key", "key group"],
)
def test_entries_are_as_long_as_they_say(key: bytes, value: bytes, is_map: bool, reason: str | None) -> None:
    _, handle = full_stream(key, value, is_map=is_map)
    with StateFiles("/checkpoint/_metadata").open(handle.delegate_state_handle) as stream:
        state = KeyedState(handle, stream, KEY_GROUPS)
        if reason is None:
            ((group, entry),) = entries_of(state)
            assert (group, entry.size) == (1, len(key) - 1 + len(value))
        else:
            with pytest.raises(StateStreamFormatError, match=reason):
                list(entries_of(state))


@pytest.mark.parametrize("version", [5, 7, 0])
def test_headers_of_other_versions(version: int) -> None:
    content, handle = heap_stream(WHOLE)
    with pytest.raises(StateStreamFormatError, match=f"unknown keyed stream version {version}"):
        read_heap(handle, struct.pack(">i", version) + content[4:])


def test_kinds_of_state_of_flink_2_are_named() -> None:
    content, handle = heap_stream(WHOLE)
    at = content.index(utf("state 0")) + len(utf("state 0"))
    for kind, message in ((4, "'state 0' is of kind KEY_VALUE_V2"), (5, "unknown kind 5")):
        with pytest.raises(StateStreamFormatError, match=message):
            read_heap(handle, content[:at] + struct.pack(">i", kind) + content[at + 4 :])


def test_buffers_of_another_size_than_the_handle_says() -> None:
    content = struct.pack(">i", 0) + struct.pack(">i", 3) + b"abc"
    info = m.InputChannelInfo(0, 0)
    whole = m.InputChannelStateHandle(0, info, (4,), 7, inline(content))
    with StateFiles("/checkpoint/_metadata").open(whole.delegate) as stream:
        assert list(read_buffers(whole, stream)) == [b"abc"]
        with pytest.raises(StateStreamFormatError, match="buffers of 7 bytes, but the handle states 8"):
            list(read_buffers(replace(whole, state_size=8), stream))


def test_memory_is_bounded_by_an_entry(tmp_path: Path) -> None:
    # 24 MB of state in a file, in entries of 60 KB.
    value = bytes(60_000)
    content, _ = heap_stream({})
    bytes_serializer = "org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer"
    at = content.rindex(utf(LONG))
    snapshot = utf(f"{bytes_serializer}$BytePrimitiveArraySerializerSnapshot")
    header = content[:at] + snapshot + struct.pack(">i", 3)
    keys = range(400)
    with (tmp_path / "state").open("wb") as file:
        file.write(header + struct.pack(">ihi", 0, 0, len(keys)))
        for key in keys:
            file.write(struct.pack(">xqi", key, len(value)) + value)
    size = (tmp_path / "state").stat().st_size
    handle = m.KeyGroupsStateHandle(
        m.KeyGroupRangeOffsets.of(0, [len(header)]), m.RelativeFileStateHandle("state", size)
    )

    def read() -> None:
        with StateFiles(tmp_path / "_metadata").open(handle) as stream:
            assert sum(1 for _ in entries_of(KeyedState(handle, stream, 1))) == len(keys)

    peak = traced_peak(read)
    assert size > 24_000_000
    assert peak < 2_000_000
