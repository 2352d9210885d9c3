from __future__ import annotations

import base64
import json
import uuid
from pathlib import Path

import fsspec
import numpy as np
import pytest

from spark_ckpt import metadata as m
from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.cli.results.inspection import segment_json, segment_text, segments_of_table
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.format.segment_flags import COMPRESSED
from tests.cli.sources import BEFORE, TABLE
from tests.metadata.corpus import FLINK, MUTANTS, Vector
from tests.support import locations
from tests.support.cli import run
from tests.support.locations import OFFSETS, make_location
from tests.support.queries import make_query
from tests.support.segments import segment_ref

INLINE = m.ByteStreamStateHandle("inline", b"state")


def test_the_newest_checkpoint_of_a_location(tmp_path: Path) -> None:
    shown = run("inspect", make_location(tmp_path))
    assert shown.status == 0
    lines = [line.strip("│├└─ ") for line in shown.stdout.splitlines()]
    assert lines[0].startswith("checkpoint 3, metadata version 3, ")
    assert lines[0].endswith(f"{tmp_path}/ckpt/chk-3/_metadata")
    for expected in (
        "completed 2023-11-14T22:13:21.000Z in 1,234 ms, generation 1, by process 4711 on node-1 (run run-1)",
        "state 1.0 KiB, 12 rows; 3.0 MiB new",
        "batch 2, state version 3, Spark 4.2.0",
        "query query-1 'orders by [hour]', run run-1",
        "8 key groups, key-group factors [2, 2, 2]",
        "stateStoreSave 0/default: 12 rows",
        '{"orders":{"0":17,"1":40}}',
        f"subtask 0, 12 rows, state id {uuid.UUID(int=0x3A)}",
        "chain: base v2 1,000 bytes, delta v3 40 bytes",
        "managed keyed state: changelog, key groups [0, 3], materialisation 2",
        "key groups [0, 2], 3 offsets from 0 to 500, 1 without data in file ../shared/base-1, 4.0 KiB",
        "key groups [0, 0], 1 offset from 0 to 0 in inline, 40 bytes, delta-3",
        "source-offsets: SPLIT_DISTRIBUTE, 2 elements from 0 to 19",
        "topic orders, partition 0, offset 17",
        "topic orders, partition 1, offset 40",
    ):
        assert expected in lines
    (operator,) = (line for line in lines if line.startswith("stateStoreSave 0/default, id "))
    assert operator.endswith("parallelism 2 of 8, 1.0 KiB, 12 rows")
    (source,) = (line for line in lines if line.startswith("source kafka (kafka orders), id "))
    assert source.endswith("parallelism 1 of 8, 38 bytes")


def test_compressed_segments_say_so(tmp_path: Path) -> None:
    groups, offsets = np.array([0], np.uint32), np.array([0], np.int64)
    base = segment_ref(0, 1, groups, offsets, 1000, "shared/base-1", 4096)
    delta = segment_ref(2, 2, groups, offsets, 40, data=b"d" * 40, flags=COMPRESSED.bit)
    chain = Chain(str(uuid.UUID(int=1)), 5, (base, delta))
    segments = segments_of_table(locations.store_state(StoreKey(0, "default"), "dedupe", [chain], None).segments, 0)
    assert [segment_text(segment) for segment in segments] == ["base v1 1,000 bytes", "delta v2 40 bytes compressed"]
    assert [segment_json(segment) for segment in segments] == [
        {"kind": "base", "version": 1, "size": 1000},
        {"kind": "delta", "version": 2, "compressed": True, "size": 40},
    ]


def test_merged_deltas_show_the_versions_that_they_cover(tmp_path: Path) -> None:
    groups, offsets = np.array([0], np.uint32), np.array([0], np.int64)
    base = segment_ref(0, 1, groups, offsets, 1000, "shared/base-1", 4096)
    merged = segment_ref(2, 4, groups, offsets, 40, data=b"d" * 40)
    state = locations.store_state(
        StoreKey(0, "default"), "dedupe", [Chain(str(uuid.UUID(int=1)), 5, (base, merged))], None
    )
    segments = segments_of_table(state.segments, 0)
    assert [segment_text(segment) for segment in segments] == ["base v1 1,000 bytes", "delta v2-4 40 bytes"]
    assert [segment_json(segment) for segment in segments] == [
        {"kind": "base", "version": 1, "size": 1000},
        {"kind": "delta", "version": 4, "first_version": 2, "size": 40},
    ]


def test_an_older_checkpoint_by_id(tmp_path: Path) -> None:
    location = make_location(tmp_path)
    assert run("inspect", location, "--id", 2, "--json").json["checkpoint_id"] == 2
    missing = run("inspect", location, "--id", 9, "--json")
    assert missing.status == 1
    assert missing.error["error"] == "CheckpointNotFoundError"
    assert (missing.error["checkpoint_id"], missing.error["available"]) == (9, [2, 3])


def test_json_of_a_location_is_complete(tmp_path: Path) -> None:
    shown = run("inspect", make_location(tmp_path), "--json").json
    assert shown["record"]["batch_id"] == 2
    batch, offsets = shown["master_states"]
    assert batch["payload"]["query_name"] == "orders by [hour]"
    assert offsets == {"name": "spark-offsets", "version": 1, "size": len(OFFSETS), "payload": OFFSETS.decode()}
    store, source = shown["operator_states"]
    assert (store["name"], source["name"]) == ("stateStoreSave 0/default", "source kafka (kafka orders)")
    assert store["source"] is None
    assert source["source"] == {
        "name": "kafka",
        "kind": "kafka",
        "positions": [
            {"type": "kafka", "topic": "orders", "partition": 0, "offset": 17},
            {"type": "kafka", "topic": "orders", "partition": 1, "offset": 40},
        ],
    }
    assert store["state_size"] == 1040
    assert store["store"] == {
        "operator_id": 0,
        "name": "stateStoreSave",
        "store": "default",
        "state_format_version": 2,
        "rows": 12,
    }
    (subtask,) = store["subtask_states"]
    assert (subtask["index"], subtask["rows"]) == (0, 12)
    assert subtask["segments"] == [
        {"kind": "base", "version": 2, "size": 1000},
        {"kind": "delta", "version": 3, "size": 40},
    ]
    base, delta = subtask["managed_keyed_state"]["materialized_state_handles"]
    assert base["group_range_offsets"] == {"start": 0, "end": 2, "offsets": [0, -1, 500]}
    assert base["delegate_state_handle"] == {
        "type": "RelativeFileStateHandle",
        "relative_path": "../shared/base-1",
        "state_size": 4096,
    }
    assert base64.b64decode(delta["delegate_state_handle"]["data"]) == b"d" * 40


def test_sources_of_every_kind(tmp_path: Path) -> None:
    shown = run("inspect", make_location(tmp_path, sources=BEFORE)).stdout
    lines = [line.strip("│├└─ ") for line in shown.splitlines()]
    for number, (what, position) in enumerate(
        (
            (" (kafka orders, returns)", "topic returns, partition 0, offset 0"),
            (f" (delta table {TABLE})", f"table {TABLE}, version 3, index -1"),
            (" (file)", "offset 3"),
            (" (rate-micro-batch)", "offset 20, timestamp 1000 ms"),
            (" (partitions)", "partition 0, offset 5"),
            (" (number)", "offset 17"),
            ("", 'offset {"at":[1,2]}'),
        )
    ):
        assert sum(line.startswith(f"source {number}{what}, id ") for line in lines) == 1, lines
        assert position in lines
    assert "source 7" not in shown


@pytest.mark.parametrize("vector", FLINK, ids=str)
def test_what_flink_wrote(vector: Vector) -> None:
    text = run("inspect", vector.directory)
    assert text.status == 0
    assert text.stdout == run("inspect", vector.path).stdout
    shown = run("inspect", vector.directory, "--json").json
    metadata = m.load(vector.path)
    assert shown["checkpoint_id"] == metadata.checkpoint_id
    assert shown["record"] is None
    assert len(shown["master_states"]) == len(metadata.master_states)
    assert [operator["operator_id"] for operator in shown["operator_states"]] == [
        operator.operator_id.hex() for operator in metadata.operator_states
    ]
    offsets = [
        subtask["managed_keyed_state"]["group_range_offsets"]["offsets"]
        for operator in shown["operator_states"]
        for subtask in operator["subtask_states"]
        if "group_range_offsets" in (subtask["managed_keyed_state"] or {})
    ]
    assert offsets == [
        subtask.managed_keyed_state.group_range_offsets.offsets.tolist()
        for operator in metadata.operator_states
        for subtask in operator.subtask_states.values()
        if isinstance(subtask.managed_keyed_state, (m.KeyGroupsStateHandle, m.KeyGroupsSavepointStateHandle))
    ]
    assert ("Savepoint (" in text.stdout) == (vector.version == 4 and "savepoint" in vector.directory.name)


@pytest.mark.parametrize("vector", MUTANTS, ids=str)
def test_edge_cases_are_shown_or_refused(vector: Vector) -> None:
    shown = run("inspect", vector.path, "--json")
    assert shown.status == (0 if vector.loads else 1)
    assert run("inspect", vector.path).status == shown.status
    if not vector.loads:
        assert shown.stdout == ""
        assert {"path", "offset", "field", "reason"} <= shown.error.keys()


def test_the_directory_of_a_flink_job(tmp_path: Path) -> None:
    for number in (9, 10):
        m.dump(m.CheckpointMetadata(number), tmp_path / f"chk-{number}" / "_metadata")
    (tmp_path / "chk-11").mkdir()
    (tmp_path / "shared").mkdir()
    assert run("inspect", tmp_path, "--json").json["checkpoint_id"] == 10
    assert run("inspect", tmp_path, "--json", "--id", 9).json["path"] == f"{tmp_path}/chk-9/_metadata"
    missing = run("inspect", tmp_path, "--json", "--id", 11)
    assert (missing.status, missing.error["available"]) == (1, [9, 10])


def test_a_file_with_another_id(tmp_path: Path) -> None:
    m.dump(m.CheckpointMetadata(9), tmp_path / "_metadata")
    assert run("inspect", tmp_path, "--id", 9).status == 0
    assert run("inspect", tmp_path, "--id", 0, "--json").error["available"] == [9]


def test_a_url_of_another_file_system() -> None:
    m.dump(m.CheckpointMetadata(5), "memory://job/chk-5/_metadata")
    try:
        for place in ("memory://job", "memory://job/chk-5", "memory://job/chk-5/_metadata"):
            shown = run("inspect", place, "--json").json
            assert (shown["checkpoint_id"], shown["path"]) == (5, "memory://job/chk-5/_metadata")
    finally:
        fsspec.filesystem("memory").rm("/job", recursive=True)


def test_missing_and_foreign_places(tmp_path: Path) -> None:
    missing = run("inspect", tmp_path / "absent", "--json")
    assert (missing.status, missing.error["error"]) == (1, "LocationNotFoundError")
    foreign = run("inspect", tmp_path, "--json")
    assert (foreign.status, foreign.error["error"]) == (1, "ForeignLocationError")
    (tmp_path / "text").write_text("no metadata")
    no_metadata = run("inspect", tmp_path / "text")
    assert no_metadata.status == 1
    assert "not checkpoint metadata" in no_metadata.stderr
    unknown = run("inspect", "gopher://host/x", "--json")
    assert (unknown.status, unknown.error["error"]) == (1, "StorageError")


def test_a_location_without_a_checkpoint(tmp_path: Path) -> None:
    shown = run("inspect", make_location(tmp_path, batches=0))
    assert shown.status == 1
    assert "no checkpoint has completed yet" in shown.stderr


def test_metadata_that_is_not_what_the_record_says(tmp_path: Path) -> None:
    location = make_location(tmp_path)
    path = tmp_path / "ckpt" / "chk-3" / "_metadata"
    path.write_bytes(path.read_bytes() + b"\0")
    damaged = run("inspect", location, "--json")
    assert (damaged.status, damaged.error["error"]) == (1, "DamagedCheckpointError")
    assert run("inspect", path).status == 0
    path.unlink()
    assert run("inspect", location, "--json").error["error"] == "StateFileNotFoundError"
    assert run("inspect", location, "--id", 2).status == 0


def test_the_name_of_our_master_state_in_other_hands(tmp_path: Path) -> None:
    states = (m.MasterState("spark-batch", b"[1]", 1), m.MasterState("raw", b"\xff\xfe", 2))
    m.dump(m.CheckpointMetadata(1, states), tmp_path / "_metadata")
    shown = run("inspect", tmp_path, "--json").json["master_states"]
    assert [state.get("payload", state.get("payload_base64")) for state in shown] == [[1], "//4="]
    assert "fffe" in run("inspect", tmp_path).stdout


def test_text_from_a_file_cannot_control_the_terminal(tmp_path: Path) -> None:
    states = (m.MasterState("\x1b[2J[red]x\ud83d", json.dumps({"a": {"b": "\x1b[1m"}}).encode(), 1),)
    operator = m.OperatorSubtaskState(
        managed_operator_state=m.OperatorStreamStateHandle(
            {"\x07": m.StateMetaInfo((), m.DistributionMode.UNION)}, INLINE
        )
    )
    m.dump(m.CheckpointMetadata(1, states, (m.OperatorState(bytes(16), 1, 1, {0: operator}),)), tmp_path / "_metadata")
    shown = run("inspect", tmp_path).stdout
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\\x1b[2J[red]x\\ud83d, version 1" in shown
    assert "\\x07: UNION, no elements" in shown
    assert run("inspect", tmp_path, "--json").json["master_states"][0]["name"] == "\x1b[2J[red]x\ud83d"


def test_values_of_master_states_stand_as_in_json(tmp_path: Path) -> None:
    make_query(tmp_path)
    shown = run("inspect", tmp_path).stdout
    assert '"status": "completed"' in shown
    assert "None" not in shown
    assert "{'" not in shown
