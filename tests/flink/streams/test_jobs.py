"""State of jobs that ran in Flink 1.10 to 1.20: every stream reads to its last byte and holds the job's results.

The jobs' sources count: subtask i emits i * 1,000,000 and upwards, and its state is the number of emitted values. So
the operator state of the sources determines the input and the expected state of each operator.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from spark_ckpt import metadata as m
from spark_ckpt.flink.streams import (
    BackendStateType,
    KeyedState,
    KeyGroup,
    Layout,
    ManagedOperatorState,
    Part,
    StateStream,
    Timer,
    read_buffers,
    read_changes,
    read_keyed_header,
    read_raw_parts,
)
from spark_ckpt.flink.streams.assignment import key_group_of
from spark_ckpt.flink.streams.full_snapshot import read_full_entries
from spark_ckpt.flink.streams.headers import read_operator_header
from spark_ckpt.flink.streams.heap_snapshot import read_heap_entries
from spark_ckpt.metadata.traversal import parts_of
from tests.flink.streams.corpus import JOBS, KeyGroups, StateVector, entries_of, values_of

FIRST_EVENT_TIMER, FIRST_PROCESSING_TIMER = 10**12, 4 * 10**12
EMITTED_APART = 1_000_000
OPTIONS_OF_ROCKSDB = b"# This is a RocksDB option file."
"""Start of the only files that differ from the original ones: a directory in them was replaced."""
KEYED = [vector for vector in JOBS if any(True for _ in vector.key_groups())]


def keyed_states(vector: StateVector) -> Iterator[tuple[KeyedState, StateStream, KeyGroups, m.OperatorState]]:
    for operator, handle in vector.key_groups():
        with vector.files.open(handle.delegate_state_handle) as stream:
            yield KeyedState(handle, stream, operator.max_parallelism), stream, handle, operator


def handles_of(vector: StateVector, kind: type) -> list[Any]:
    return [part for part in parts_of(vector.metadata) if isinstance(part, kind)]


# ---- to the last byte ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", JOBS, ids=str)
def test_every_file_is_the_one_that_flink_read(vector: StateVector) -> None:
    expected = Counter(digests(json.loads((vector.directory / "dump.json").read_text())))
    found: Counter[str] = Counter()
    options = 0
    changelogs = {
        id(p.handle) for h in handles_of(vector, m.ChangelogStateHandleStreamImpl) for p in h.handles_and_offsets
    }
    for handle in (*handles_of(vector, m.FileStateHandle), *handles_of(vector, m.RelativeFileStateHandle)):
        with vector.files.open(handle, size_is_known=id(handle) not in changelogs) as stream:
            content = stream.input().raw(stream.size, "all")
        if content.startswith(OPTIONS_OF_ROCKSDB):
            options += 1
        else:
            found[hashlib.sha256(content).hexdigest()] += 1
    assert found <= expected
    assert (expected - found).total() == options


def digests(dump: object) -> Iterator[str]:
    if isinstance(dump, dict):
        if dump.get("type") in ("FileStateHandle", "RelativeFileStateHandle"):
            yield dump["contentSha256"]
        for item in dump.values():
            yield from digests(item)
    elif isinstance(dump, list):
        for item in dump:
            yield from digests(item)


@pytest.mark.parametrize("vector", KEYED, ids=str)
def test_key_groups_end_where_the_stream_ends(vector: StateVector) -> None:
    for state, stream, handle, operator in keyed_states(vector):
        data = stream.input()
        header = read_keyed_header(data)
        assert header == state.header
        read = read_full_entries if state.layout is Layout.FULL else read_heap_entries
        groups = state.key_groups()
        assert min(group.offset for group in groups) == data.position
        assert sum(group.size for group in groups) == stream.size - data.position
        for group in groups:
            part = stream.input(group.offset, group.offset + group.size)
            # Nothing may follow, not even after the last key group.
            for _ in read(part, header, group.key_group, operator.max_parallelism, open_end=False):
                pass
        expected = set(handle.key_group_range)
        assert {group.key_group for group in groups} == expected or state.layout is Layout.FULL


@pytest.mark.parametrize("vector", KEYED, ids=str)
def test_the_bytes_of_all_entries_make_up_the_stream(vector: StateVector) -> None:
    for state, stream, _, _ in keyed_states(vector):
        if state.header.compressed:
            continue
        data = stream.input()
        read_keyed_header(data)
        size = data.position
        for group in state.key_groups():
            entries = list(state.entries(group))
            size += sum(entry.size for entry in entries)
            if state.layout is Layout.HEAP:
                size += 4 + (2 + 4) * len(state.header.states)
            else:
                # Two lengths and a key-group byte per entry, an id per state, and the end marker.
                size += (4 + 4 + 1) * len(entries) + 2 * len({entry.state for entry in entries}) + 2
        assert size == stream.size


@pytest.mark.parametrize("vector", JOBS, ids=str)
def test_operator_state_reads_to_the_last_byte(vector: StateVector) -> None:
    for _, _, subtask in vector.subtasks():
        handle = subtask.managed_operator_state
        if handle is None:
            continue
        with vector.files.open(handle.delegate_state_handle) as stream:
            state = ManagedOperatorState(handle, stream)
            data = stream.input()
            read_operator_header(data)
            entries = list(state.entries())
            offsets = handle.state_name_to_partition_offsets
            elements = sum(len(offsets[meta.name].offsets) for meta in state.header.list_states)
            assert sum(entry.state < len(state.header.list_states) for entry in entries) == elements
            if not state.header.compressed:
                counts = 4 * len(state.header.broadcast_states)
                assert data.position + counts + sum(entry.size for entry in entries) == stream.size


@pytest.mark.parametrize("vector", [v for v in JOBS if handles_of(v, m.ChangelogStateHandleStreamImpl)], ids=str)
def test_changelog_files_read_to_the_last_byte(vector: StateVector) -> None:
    read: defaultdict[str, int] = defaultdict(int)
    sizes: dict[str, int] = {}
    for handle in handles_of(vector, m.ChangelogStateHandleStreamImpl):
        size = 0
        for part in handle.handles_and_offsets:
            with vector.files.open(part.handle, size_is_known=False) as stream:
                sizes[stream.path] = stream.size
                changes = list(read_changes(stream, part.offset))
            size += sum(len(change.change) for change in changes)
            groups = {change.key_group for change in changes}
            assert groups - {-1} <= set(handle.key_group_range)
            read[stream.path] += 4 + 8 * len(groups) + sum(4 + len(change.change) for change in changes)
        # Flink's own total of the bytes of all changes.
        assert size == handle.state_size
    assert {path: 1 + size for path, size in read.items()} == sizes


@pytest.mark.parametrize("vector", [v for v in JOBS if handles_of(v, m.InputChannelStateHandle)], ids=str)
def test_channel_state_reads_to_the_last_byte(vector: StateVector) -> None:
    read: defaultdict[str, int] = defaultdict(int)
    sizes: dict[str, int] = {}
    channels = (*handles_of(vector, m.InputChannelStateHandle), *handles_of(vector, m.ResultSubpartitionStateHandle))
    for channel in channels:
        with vector.files.open(channel.delegate) as stream:
            sizes[stream.path] = stream.size
            read[stream.path] += sum(4 + len(buffer) for buffer in read_buffers(channel, stream))
    assert {path: 4 + size for path, size in read.items()} == sizes


def test_raw_state_reads_to_the_last_byte() -> None:
    (vector,) = (vector for vector in JOBS if "raw" in str(vector))
    for _, _, subtask in vector.subtasks():
        if isinstance(subtask.raw_keyed_state, m.KeyGroupsStateHandle):
            offsets = subtask.raw_keyed_state.group_range_offsets.offsets.tolist()
            with vector.files.open(subtask.raw_keyed_state.delegate_state_handle) as stream:
                parts = dict(read_raw_parts(stream, offsets))
                assert sum(map(len, parts.values())) == stream.size
            # For each key group, the operator has written ten times its number.
            first = subtask.raw_keyed_state.key_group_range.start
            assert parts == {i: (10 * (first + i)).to_bytes(4, "big") for i in range(len(offsets))}


@pytest.mark.parametrize("vector", [v for v in JOBS if handles_of(v, m.IncrementalRemoteKeyedStateHandle)], ids=str)
def test_the_meta_stream_of_rocksdb_is_a_header(vector: StateVector) -> None:
    for handle in handles_of(vector, m.IncrementalRemoteKeyedStateHandle):
        with vector.files.open(handle.meta_data_state_handle) as stream:
            data = stream.input()
            header = read_keyed_header(data)
            assert data.at_end()
        assert str(header.key_serializer) == "Long"
        assert {state.keyed_state_type for state in header.states} == {"VALUE", "LIST", "MAP", None}


# ---- results of the jobs ---------------------------------------------------------------------------------------------


def emitted(vector: StateVector) -> list[int] | None:
    """Values emitted by the sources; None if a source has no state any more, or if the job has other sources."""
    for operator in vector.metadata.operator_states:
        values = []
        for index, subtask in operator.subtask_states.items():
            handle = subtask.managed_operator_state
            if handle is None or "offset" not in handle.state_name_to_partition_offsets:
                break
            with vector.files.open(handle.delegate_state_handle) as stream:
                (entry,) = ManagedOperatorState(handle, stream).entries()
            count = entry.parts[Part.ELEMENT].value
            assert isinstance(count, int)
            values += [index * EMITTED_APART + i for i in range(count)]
        else:
            if len(operator.subtask_states) == operator.parallelism:
                return values
    return None


def expected_state(values: list[int], name: str | None, keys: int) -> dict[str, list[tuple[Any, ...]]]:
    """Expected state of an operator after these input values."""
    by_key: defaultdict[Any, list[int]] = defaultdict(list)
    for value in values:
        by_key[value % keys if name is None else f"{name}{value % keys}"].append(value)
    return {
        "sum": sorted((key, sum(seen)) for key, seen in by_key.items()),
        "list": sorted((key, sorted(f"v{value}" for value in seen)) for key, seen in by_key.items()),
        "map": sorted(
            (key, f"k{r}", n) for key, seen in by_key.items() for r, n in Counter(v % 3 for v in seen).items()
        ),
        "event": sorted((key, FIRST_EVENT_TIMER + value) for key, seen in by_key.items() for value in seen),
        "processing": sorted((key, FIRST_PROCESSING_TIMER + value) for key, seen in by_key.items() for value in seen),
    }


def found_state(vector: StateVector) -> dict[str, list[tuple[Any, ...]]]:
    """State in the streams of a vector, in the form of `expected_state`."""
    found: dict[str, list[tuple[Any, ...]]] = {"sum": [], "list": [], "map": [], "event": [], "processing": []}
    for state, _, _, _ in keyed_states(vector):
        values: Any = values_of(state)
        for meta in state.header.states:
            entries = values[meta.name]
            if meta.kind is BackendStateType.PRIORITY_QUEUE:
                timers = "event" if "event" in meta.name else "processing"
                found[timers] += [(entry["element"].key, entry["element"].timestamp) for entry in entries]
            elif meta.keyed_state_type == "VALUE":
                found["sum"] += [(entry["key"], entry["value"]) for entry in entries]
            elif meta.keyed_state_type == "LIST":
                found["list"] += [(entry["key"], sorted(entry["value"])) for entry in entries]
            elif state.layout is Layout.HEAP:
                found["map"] += [(entry["key"], *pair) for entry in entries for pair in entry["value"]]
            else:
                found["map"] += [(entry["key"], entry["map key"], entry["value"]) for entry in entries]
    return {name: sorted(entries) for name, entries in found.items()}


COUNTED = [
    vector for vector in KEYED if not handles_of(vector, m.ChangelogStateBackendHandle) and emitted(vector) is not None
]


def test_most_jobs_can_be_counted() -> None:
    layouts = {str(vector): {state.layout for state, _, _, _ in keyed_states(vector)} for vector in COUNTED}
    assert len(layouts) >= 10
    assert sum(layout == {Layout.FULL} for layout in layouts.values()) >= 3
    assert any("compressed" in name for name in layouts) and any("string" in name for name in layouts)


@pytest.mark.parametrize("vector", COUNTED, ids=str)
def test_the_state_is_what_the_emitted_values_make(vector: StateVector) -> None:
    values = emitted(vector)
    found = found_state(vector)
    assert values
    keys = [key for key, _ in found["sum"]]
    name = None if isinstance(keys[0], int) else keys[0].rstrip("0123456789")
    assert found == expected_state(values, name, len(keys))


@pytest.mark.parametrize("vector", [v for v in KEYED if v not in COUNTED and "onevalue" not in str(v)], ids=str)
def test_states_of_one_operator_agree(vector: StateVector) -> None:
    # This state was materialised before the checkpoint, or comes from sources that have finished.
    found = found_state(vector)
    lists = dict(found["list"])
    assert lists
    assert dict(found["sum"]) == {key: sum(int(text[1:]) for text in seen) for key, seen in lists.items()}
    counts = Counter({(key, f"k{r}"): 0 for key in lists for r in range(3)})
    counts.update((key, f"k{int(text[1:]) % 3}") for key, seen in lists.items() for text in seen)
    assert found["map"] == sorted((key, name, n) for (key, name), n in counts.items() if n)


def test_operator_state_is_what_each_subtask_has_put_there() -> None:
    for vector in (v for v in JOBS if "opstate" in str(v)):
        for _, index, subtask in vector.subtasks():
            handle = subtask.managed_operator_state
            assert handle is not None
            with vector.files.open(handle.delegate_state_handle) as stream:
                state = ManagedOperatorState(handle, stream)
                found: defaultdict[str, list[Any]] = defaultdict(list)
                for entry in state.entries():
                    found[state.states[entry.state].name].append(tuple(d.value for d in entry.parts.values()))
            if "bcast" not in found:
                continue
            numbers = [index * EMITTED_APART + i for i in range(7)]
            assert found.pop("split") == [(number,) for number in numbers]
            assert found.pop("bcast") == [(i, f"b{i}") for i in range(4)]
            (union,) = found.values()
            assert union == [(f"u{number}",) for number in numbers]


@pytest.mark.parametrize("vector", KEYED, ids=str)
def test_entries_lie_in_the_key_groups_of_their_keys(vector: StateVector) -> None:
    # Flink has put each key, including String keys, into the key group of its hash.
    keys = 0
    for state, _, handle, operator in keyed_states(vector):
        assert state.header.key_serializer is not None
        for group, entry in entries_of(state):
            key: Any = entry.parts[Part.KEY].value if Part.KEY in entry.parts else entry.parts[Part.ELEMENT].value
            key = key.key if isinstance(key, Timer) else key
            hash_code = state.header.key_serializer.hash_code(key)
            assert hash_code is not None
            assert key_group_of(hash_code, operator.max_parallelism) == group
            assert group in handle.key_group_range
            keys += 1
    assert keys


@pytest.mark.parametrize("vector", KEYED, ids=str)
def test_subtasks_own_the_key_groups_that_flink_assigns(vector: StateVector) -> None:
    for operator, index, subtask in vector.subtasks():
        groups, parallelism = operator.max_parallelism, operator.parallelism
        first, last = -(-index * groups // parallelism), ((index + 1) * groups - 1) // parallelism
        for handle in (subtask.managed_keyed_state, subtask.raw_keyed_state):
            if handle is not None:
                assert handle.key_group_range == m.KeyGroupRange(first, last)


def test_a_key_group_in_the_wrong_place_is_noticed() -> None:
    (vector,) = (v for v in JOBS if str(v) == "f120-heap-p1-file")
    ((_, handle),) = vector.key_groups()
    with vector.files.open(handle.delegate_state_handle) as stream:
        state = KeyedState(handle, stream, 128)
        group = next(g for g in state.key_groups() if any(True for _ in state.entries(g)))
        other = KeyGroup(group.key_group + 1, group.offset, group.size)
        with pytest.raises(ValueError, match=f"key group {group.key_group} instead of {other.key_group}"):
            next(state.entries(other))
