"""`inspect --streams`: contents and damage of the streams in Flink's checkpoints and in ours."""

from __future__ import annotations

import base64
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from spark_ckpt import metadata as m
from spark_ckpt.checkpoint.batch import Source
from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.checkpoint.segment_table import SegmentTable
from spark_ckpt.cli.results.streams import _value_json
from spark_ckpt.flink.streams import KeyedState, UnknownSerializerError
from spark_ckpt.flink.streams.values import RowData
from spark_ckpt.format.segments import HEADER_BYTES, Section, SegmentKind
from spark_ckpt.metadata.traversal import parts_of
from tests.flink.streams.corpus import (
    JOBS,
    STORAGE_ROOT,
    StateVector,
    backend,
    entries_of,
    job,
    lay_out,
    with_unknown_class,
)
from tests.support.cli import Run, run
from tests.support.locations import KEY, OFFSETS, make_batch
from tests.support.metadata_model import compose
from tests.support.s3 import S3
from tests.support.segments import encode_segment, segment_ref


def inspect(place: Path, root: Path, *arguments: object) -> Run:
    return run("inspect", place, "--streams", *moved(place, root), *arguments)


def moved(place: Path, root: Path) -> tuple[str, ...]:
    has_absolute_paths = any(isinstance(part, m.FileStateHandle) for part in parts_of(m.load(place)))
    return ("--map", f"{STORAGE_ROOT}={root}") if has_absolute_paths else ()


def lines_of(shown: Run) -> list[str]:
    """Lines of the tree of streams."""
    lines = [line.strip("│├└─ ") for line in shown.stdout.splitlines()]
    first = next(i for i, line in enumerate(lines) if line.endswith((" stream", " streams")))
    return [" ".join(line.split()) for line in lines[first:]]


# ---- Flink's checkpoints ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", JOBS, ids=str)
def test_every_stream_of_every_job(vector: StateVector, tmp_path: Path) -> None:
    shown = inspect(lay_out(vector, tmp_path), tmp_path, "--json")
    assert (shown.status, shown.stderr) == (0, "")
    streams = shown.json["streams"]
    assert not [stream for stream in streams if stream["errors"] or stream["failed"]]
    assert len(streams) == sum(
        bool(subtask.managed_operator_state)
        + bool(subtask.raw_operator_state)
        + bool(subtask.raw_keyed_state)
        + len(subtask.input_channel_state)
        + len(subtask.result_subpartition_state)
        for _, _, subtask in vector.subtasks()
    ) + sum(1 for _ in vector.keyed())
    found = {
        (stream["path"], state["name"]): (
            state["entries"],
            dict(zip(state["key_groups"], state["entries_by_key_group"], strict=True)),
        )
        for stream in streams
        if stream["form"] in ("heap snapshot", "full snapshot")
        for state in stream["states"]
    }
    expected: dict[tuple[str, str], tuple[int, dict[int, int]]] = {}
    for operator, handle in vector.key_groups():
        with vector.files.open(handle.delegate_state_handle) as stream:
            state = KeyedState(handle, stream, operator.max_parallelism)
            path = stream.path.replace(str(vector.directory), str(tmp_path / str(vector)))
            for index, meta in enumerate(state.header.states):
                groups = [group for group, entry in entries_of(state) if entry.state == index]
                expected[path, meta.name] = len(groups), {group: groups.count(group) for group in sorted(set(groups))}
    assert found == expected


def test_text(tmp_path: Path) -> None:
    place = lay_out(job("f120-heap-p1-file"), tmp_path)
    shown = inspect(place, tmp_path, "--entries", 2)
    assert shown.status == 0
    lines = lines_of(shown)
    (file,) = (file for file in place.parent.iterdir() if file.stat().st_size == 8499)
    assert lines[0] == "2 streams"
    for expected in (
        f"subtask 0, managed keyed state: heap snapshot, 8.3 KiB, keys Long, {file}",
        "STATE KIND SERIALIZERS KEY GROUPS ENTRIES REMOVED BYTES",
        "sum VALUE namespace VoidNamespace, value Long 9 10 170",
        "map MAP namespace VoidNamespace, value Map<String, Long> 9 10 490",
        "_timer_state/event_user-timers PRIORITY_QUEUE value Timer<Long, VoidNamespace> 9 40 680",
        "sum has entries in key groups 7 (1), 15 (1), 18 (1), 51 (1), 86 (1), 94 (1), 113 (2), 126 (1), 127 (1)",
        "sum: namespace None, key 4, value 76",
        "offset SPLIT_DISTRIBUTE value Long 1 8",
        "offset: element 40",
    ):
        assert expected in lines
    assert sum(line.startswith("list: ") for line in lines) == 2
    assert "streams" not in run("inspect", place).stdout
    assert not any(line.startswith("sum: ") for line in lines_of(inspect(place, tmp_path)))


def test_values_in_json(tmp_path: Path) -> None:
    place = lay_out(backend("types-full-compressed"), tmp_path)
    (stream,) = inspect(place, tmp_path, "--entries", 100, "--json").json["streams"]
    assert (stream["role"], stream["form"], stream["compressed"]) == ("managed keyed state", "full snapshot", True)
    assert (stream["subtask"], stream["key_serializer"], stream["name"]) == (0, "Int", None)
    states = {state["name"]: state for state in stream["states"]}
    window = {"start": -1000, "end": 59000}
    assert {"key": 2, "namespace": window, "value": 0.2} in states["double"]["samples"]
    assert {"key": 2, "namespace": window, "value": {"base64": "AgICAg=="}} in states["bytes"]["samples"]
    assert {"key": 2, "namespace": window, "value": [[[2, "a"]], []]} in states["nested"]["samples"]
    assert {"key": 2, "namespace": window, "map key": "null", "value": None} in states["map"]["samples"]
    timer = {"timestamp": -4998, "key": 2, "namespace": window}
    assert {"element": timer} in states["_timer_state/event_x"]["samples"]
    assert states["string"]["serializers"] == {"namespace": "TimeWindow", "value": "String"}
    assert [len(state["samples"]) for state in states.values()] == [state["entries"] for state in states.values()]


def test_a_savepoint_of_rocksdb(tmp_path: Path) -> None:
    place = lay_out(job("f120-savepoint-native-rocksdb-p2"), tmp_path)
    streams = inspect(place, tmp_path, "--json").json["streams"]
    sizes = sum(file.stat().st_size for file in place.parent.iterdir() if file.name != "_metadata")
    assert sum(stream["size"] for stream in streams) == sizes
    rocksdb = [stream for stream in streams if stream["form"] == "files of RocksDB"]
    assert len(rocksdb) == 2
    assert all(state["entries"] is None for stream in rocksdb for state in stream["states"])
    assert "sum VALUE namespace VoidNamespace, value Long not countable" in lines_of(inspect(place, tmp_path))


def test_changes_in_memory(tmp_path: Path) -> None:
    vector = job("f120-changelog-memory-p2")
    streams = inspect(lay_out(vector, tmp_path), tmp_path, "--json").json["streams"]
    changes = [stream for stream in streams if stream["form"] == "changelog"]
    handles = [handle for _, handle in vector.keyed()]
    assert [sum(state["entries"] for state in stream["states"]) for stream in changes] == [
        len(handle.changes) for handle in handles if isinstance(handle, m.InMemoryChangelogStateHandle)
    ]


@pytest.mark.parametrize("damage", ["missing", "cut off", "changed"])
def test_damage_is_told_where_it_is(tmp_path: Path, damage: str) -> None:
    vector = job("f113-heap-p2-file")
    place = lay_out(vector, tmp_path)
    _, handle = next(vector.key_groups())
    with vector.files.open(handle.delegate_state_handle) as stream:
        file = place.parent / Path(stream.path).name
    content = file.read_bytes()
    # Changes the number of the second key group.
    at = int(handle.group_range_offsets.offsets[1])
    damaged = {"missing": None, "cut off": content[:-1], "changed": content[:at] + b"\1" + content[at + 1 :]}[damage]
    file.unlink()
    if damaged is not None:
        file.write_bytes(damaged)
    shown = inspect(place, tmp_path, "--json")
    assert shown.status == 1
    assert (shown.error["error"], shown.error["unread"], shown.error["streams"]) == ("UnreadStreamsError", 1, 4)
    (failed,) = (stream for stream in shown.json["streams"] if stream["failed"])
    ((error,),) = (failed["errors"],)
    kinds = {"missing": "StateFileNotFoundError", "cut off": "StateFileSizeError", "changed": "StateStreamFormatError"}
    assert error["error"] == kinds[damage]
    assert error["path"] == str(file) and str(file) in error["message"]
    # Entries read before the damage and all other streams are still shown.
    assert bool(failed["states"]) == (damage == "changed")
    assert sum(bool(stream["states"]) for stream in shown.json["streams"] if not stream["failed"]) == 3
    text = inspect(place, tmp_path)
    assert text.status == 1
    assert f"Error: {error['message']}" in lines_of(text)
    assert text.stderr.startswith("Error: ") and "1 of 4 streams could not be read" in text.stderr


def test_files_of_rocksdb_that_are_missing(tmp_path: Path) -> None:
    place = lay_out(job("f113-rocksdb-incr-p2"), tmp_path)
    gone = sorted((place.parent.parent / "shared").iterdir())[:3]
    for file in gone:
        file.unlink()
    streams = inspect(place, tmp_path, "--json").json["streams"]
    assert sorted(error["path"] for stream in streams for error in stream["errors"]) == [str(file) for file in gone]


def test_files_outside_are_opened_only_if_allowed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"secret")
    info = m.StateMetaInfo((0,), m.DistributionMode.SPLIT_DISTRIBUTE)
    handle = m.OperatorStreamStateHandle({"_default_": info}, m.FileStateHandle(f"file:{outside}", 6))
    subtask = m.OperatorSubtaskState(raw_operator_state=handle)
    place = tmp_path / "job" / "chk-1" / "_metadata"
    m.dump(m.CheckpointMetadata(1, (), (m.OperatorState(bytes(16), 1, 8, {0: subtask}),)), place)
    shown = run("inspect", place, "--streams", "--entries", 1, "--json")
    assert shown.status == 1
    (stream,) = shown.json["streams"]
    assert [error["error"] for error in stream["errors"]] == ["StateFileOutsideError"]
    assert (stream["failed"], stream["states"][0]["samples"]) == (True, [])
    for arguments in (["--allow-outside"], ["--map", f"{tmp_path}/={tmp_path}"]):
        shown = run("inspect", place, "--streams", "--entries", 1, "--json", *arguments)
        (stream,) = shown.json["streams"]
        assert (shown.status, stream["errors"]) == (0, [])
        assert stream["states"][0]["samples"] == [{"partition": {"base64": base64.b64encode(b"secret").decode()}}]


def test_values_of_java_have_their_parts_in_json(tmp_path: Path) -> None:
    shown = inspect(lay_out(backend("unknown-heap"), tmp_path), tmp_path, "--json", "--entries", 1)
    (stream,) = shown.json["streams"]
    (instant,) = (state for state in stream["states"] if state["name"] == "instant")
    assert instant["samples"][0]["value"] == {"seconds": 7, "nanos": 0}
    assert _value_json(RowData(3, (Decimal("1.50"), None), b"row")) == {"kind": 3, "fields": ["1.50", None]}


def test_an_unknown_serializer_is_no_damage(tmp_path: Path) -> None:
    heap, full = (with_unknown_class(backend(f"unknown-{kind}"), tmp_path / "copies") for kind in ("heap", "full"))
    shown = inspect(lay_out(heap, tmp_path), tmp_path, "--json")
    assert (shown.status, shown.stderr) == (0, "")
    (stream,) = shown.json["streams"]
    ((error,),) = (stream["errors"],)
    assert error["error"] == UnknownSerializerError.__name__
    assert error["class_name"].endswith("UnknownSerializerSnapshot")
    assert stream["failed"] is False
    *known, whole = stream["states"]
    assert known and all(state["entries"] is None for state in known)
    assert (whole["name"], whole["entries"], whole["key_groups"]) == ("key groups as a whole", 8, list(range(8)))
    (stream,) = inspect(lay_out(full, tmp_path), tmp_path, "--json", "--entries", 1).json["streams"]
    assert [state["entries"] for state in stream["states"]] == [1, 1, 1]
    (unknown,) = (state for state in stream["states"] if state["name"] == "instant")
    assert unknown["serializers"]["value"].endswith("UnknownSerializerSnapshot")
    assert (unknown["samples"][0]["key"], unknown["samples"][0]["value"]) == (7, {"base64": "AAAAAAAAAAcAAAAA"})


def test_names_cannot_control_the_terminal(tmp_path: Path) -> None:
    info = m.StateMetaInfo((0,), m.DistributionMode.SPLIT_DISTRIBUTE)
    name = "\x1b[2J[bold]state"
    handle = m.OperatorStreamStateHandle({name: info}, m.ByteStreamStateHandle("\x1b]0;", b"\x1b"))
    subtask = m.OperatorSubtaskState(raw_operator_state=handle)
    m.dump(m.CheckpointMetadata(1, (), (m.OperatorState(bytes(16), 1, 8, {0: subtask}),)), tmp_path / "_metadata")
    shown = run("inspect", tmp_path, "--streams", "--entries", 1)
    assert shown.status == 0
    assert "\x1b" not in shown.stdout
    assert "\\x1b[2J[bold]state: partition 0x1b" in lines_of(shown)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--entries", 3],
        ["--allow-outside"],
        ["--map", "a=b"],
        ["--streams", "--map", "a"],
        ["--streams", "--entries", 0],
    ],
    ids=str,
)
def test_wrong_usage(tmp_path: Path, arguments: list[object]) -> None:
    m.dump(m.CheckpointMetadata(1), tmp_path / "_metadata")
    assert run("inspect", tmp_path, *arguments).status == 2


def test_a_mapping_that_fits_nothing(tmp_path: Path) -> None:
    place = lay_out(job("f113-rocksdb-incr-p2"), tmp_path)
    shown = run("inspect", place, "--streams", "--map", f"oracle://other={tmp_path}", "--json")
    assert (shown.status, shown.error["error"]) == (1, "NothingToRelocateError")


def test_a_checkpoint_without_streams(tmp_path: Path) -> None:
    m.dump(m.CheckpointMetadata(1), tmp_path / "_metadata")
    assert run("inspect", tmp_path, "--streams", "--json").json["streams"] == []
    assert lines_of(run("inspect", tmp_path, "--streams")) == ["0 streams"]


@pytest.mark.parametrize("kind", ["memory", "s3"])
def test_other_file_systems(kind: str, request: pytest.FixtureRequest) -> None:
    root = "memory://bucket"
    if kind == "s3":
        bucket: S3 = request.getfixturevalue("s3")
        root = bucket.url
    vector = job("f115-changelog-fs-heap-p2")
    for path in vector.directory.rglob("*"):
        if path.is_file():
            with fsspec.open(f"{root}/{vector}/{path.relative_to(vector.directory)}", "wb") as file:
                file.write(path.read_bytes())
    place = f"{root}/{vector}/{vector.place.relative_to(vector.directory)}"
    with fsspec.open(place, "wb") as file:
        file.write((vector.directory / "_metadata").read_bytes())
    try:
        shown = run("inspect", place, "--streams", "--map", f"{STORAGE_ROOT}={root}/", "--json")
    finally:
        MemoryFileSystem.store.clear()
    assert (shown.status, shown.stderr) == (0, "")
    assert [stream["form"] for stream in shown.json["streams"]].count("changelog") == 2
    assert all(state["entries"] is not None for stream in shown.json["streams"] for state in stream["states"])


# ---- our checkpoints -------------------------------------------------------------------------------------------------


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """`_metadata` of our own, with an inline delta and a base in a shared file, after another subtask's base."""
    base = encode_segment(
        SegmentKind.BASE,
        2,
        {
            0: [
                Section(((b"key", b"value"), (b"key 2", b"value"))),
                Section(((b"k", (b"r", b"ow")),), "rows", lists=True),
            ],
            2: [Section(((b"key 3", b""),))],
        },
    )
    delta = encode_segment(SegmentKind.DELTA, 3, {0: [Section(((b"key", None), (b"key 4", b"v")))]})
    other = encode_segment(SegmentKind.BASE, 2, {4: [Section(((b"other", b"state"),))]})
    shared = tmp_path / "ckpt" / "shared" / "base-1"
    shared.parent.mkdir(parents=True)
    shared.write_bytes(other.data + base.data)
    size = shared.stat().st_size
    offsets = base.offsets + len(other.data)
    chains = [
        Chain(
            "a" * 32,
            4,
            (
                segment_ref(0, 2, base.key_groups, offsets, len(base.data), "shared/base-1", size),
                segment_ref(3, 3, delta.key_groups, delta.offsets, len(delta.data), data=delta.data),
            ),
        ),
        Chain(
            "b" * 32, 1, (segment_ref(0, 2, other.key_groups, other.offsets, len(other.data), "shared/base-1", size),)
        ),
    ]
    batch = make_batch(3)
    store = replace(
        batch.stores[0],
        rows=tuple(chain.rows for chain in chains),
        state_ids=tuple(chain.state_id for chain in chains),
        segments=SegmentTable.of(chains),
    )
    sources = [Source("kafka", '{"orders":{"0":17,"1":40}}')]
    content = compose(7, replace(batch, stores=(store,)), {KEY: chains}, sources, OFFSETS)
    place = tmp_path / "ckpt" / "chk-7" / "_metadata"
    m.dump(content, place)
    return place


def streams_of(place: Path, *arguments: object) -> list[dict[str, Any]]:
    streams: list[dict[str, Any]] = run("inspect", place, "--streams", "--json", *arguments).json["streams"]
    return streams


def test_our_segments(ours: Path) -> None:
    base, delta, other, source = streams_of(ours, "--entries", 9)
    assert [stream["form"] for stream in (base, delta, other)] == [
        "segment, base of version 2",
        "segment, delta of version 3",
        "segment, base of version 2",
    ]
    assert [(stream["name"], stream["subtask"]) for stream in (base, delta, other)] == [
        ("stateStoreSave 0/default", subtask) for subtask in (0, 0, 1)
    ]
    file = ours.parent.parent / "shared" / "base-1"
    assert (base["path"], base["path"]) == (other["path"], str(file))
    assert base["size"] + other["size"] == file.stat().st_size
    default, rows = base["states"]
    assert (default["name"], default["kind"], default["entries"], default["removed"]) == ("default", "VALUE", 3, 0)
    assert (default["key_groups"], default["entries_by_key_group"]) == ([0, 2], [2, 1])
    assert default["size"] == len(b"key" + b"value" + b"key 2" + b"value" + b"key 3")
    assert (rows["name"], rows["kind"], rows["entries"], rows["key_groups"]) == ("rows", "LIST", 1, [0])
    assert rows["samples"] == [{"key": {"base64": "aw=="}, "value": {"base64": base64.b64encode(b"row").decode()}}]
    (changed,) = delta["states"]
    assert (changed["entries"], changed["removed"]) == (2, 1)
    assert [sample.keys() for sample in changed["samples"]] == [{"key"}, {"key", "value"}]
    # Offsets of a source are text in the source's own format; each of its partitions is an element.
    assert (source["form"], source["states"][0]["name"]) == ("raw bytes", "source-offsets")
    assert source["states"][0]["entries"] == 2


def test_our_segments_as_text(ours: Path) -> None:
    shown = run("inspect", ours, "--streams")
    assert shown.status == 0
    streams = [line.strip("│├└─ ") for line in shown.stdout.partition("4 streams")[2].splitlines()]
    assert "source kafka (kafka orders)" in streams
    assert [line for line in streams if line.startswith("topic orders")] == [
        "topic orders, partition 0, offset 17",
        "topic orders, partition 1, offset 40",
    ]
    lines = lines_of(shown)
    assert lines[:2] == ["4 streams", "stateStoreSave 0/default"]
    assert "default has entries in key groups 0 (2), 2 (1)" in lines
    assert "default VALUE 1 2 1 9" in lines


def test_a_missing_segment_file(ours: Path) -> None:
    (ours.parent.parent / "shared" / "base-1").unlink()
    base, delta, other, _ = streams_of(ours)
    assert [stream["failed"] for stream in (base, delta, other)] == [True, False, True]
    assert base["errors"][0]["error"] == "StateFileNotFoundError"


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (0, b"X", "not a block"),
        (11, b"\7", "damaged"),
        (24, b"\xff", "body has -"),
        (24, b"\x7f", "body has 2130706"),
        (HEADER_BYTES + 5, b"\xee", "damaged"),
    ],
    ids=["magic", "key group", "negative length", "wild length", "body"],
)
def test_a_damaged_block(ours: Path, at: int, value: bytes, reason: str) -> None:
    file = ours.parent.parent / "shared" / "base-1"
    content = file.read_bytes()
    file.write_bytes(content[:at] + value + content[at + 1 :])
    base, _, other, _ = streams_of(ours)
    assert (base["failed"], other["failed"]) == (False, True)
    (error,) = other["errors"]
    assert error["error"] == "SegmentError"
    assert error["path"] == str(file)
    assert reason in error["reason"]
    assert run("inspect", ours, "--streams").status == 1


def test_a_block_of_another_key_group(ours: Path) -> None:
    metadata = m.load(ours)
    store, *others = metadata.operator_states
    handle = store.subtask_states[1].managed_keyed_state
    assert isinstance(handle, m.KeyGroupsStateHandle)
    offsets = handle.group_range_offsets.offsets.copy()
    shifted = m.KeyGroupRangeOffsets.of(handle.key_group_range.start + 1, np.asarray(offsets))
    subtask = m.OperatorSubtaskState(managed_keyed_state=replace(handle, group_range_offsets=shifted))
    changed = replace(store, subtask_states={**store.subtask_states, 1: subtask})
    m.dump(replace(metadata, operator_states=(changed, *others)), ours)
    *_, other, _ = streams_of(ours)
    assert other["errors"][0]["reason"] == "found key group 4; expected 5"
