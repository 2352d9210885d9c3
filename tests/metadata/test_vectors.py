"""On files written by Flink and on handmade edge cases, we read and refuse the same files as Flink."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt.metadata import (
    CheckpointMetadata,
    MetadataFormatError,
    OperatorState,
    UnsupportedMetadataVersionError,
    convert,
    dumps,
    load,
    loads,
)
from spark_ckpt.metadata.properties import CheckpointProperties, SnapshotType, decode
from tests.flink.streams.corpus import ROWS, WINDOWS, StateVector
from tests.metadata.corpus import FLINK, MUTANTS, NEWER_FLINK, VECTORS, Vector
from tests.support.metadata_report import report

OF_FLINK_2_1 = sorted((VECTORS / "flink-2.1").iterdir())
OF_JOBS_OF_FLINK_2_1 = [vector for vector in (*ROWS, *WINDOWS) if vector.job["flinkVersion"].startswith("2.1")]
LOADING_MUTANTS = [vector for vector in MUTANTS if vector.loads]
REFUSED_MUTANTS = [vector for vector in MUTANTS if not vector.loads]

# Fields that Flink ignores and entries replaced by later ones are not written again.
NOT_REPRODUCED = {
    "operator-flag-2",
    "subtask-twice",
    "trailing-bytes-v2",
    "v2-duration-and-chain-any",
    "v2-legacy-negative",
}


def comparable(dump: Any) -> Any:
    """Dump without details of state files, and without ids that are not in the metadata file."""
    if isinstance(dump, list):
        return [comparable(item) for item in dump]
    if not isinstance(dump, dict):
        return dump
    kept = {key: comparable(value) for key, value in dump.items() if key not in ("contentSha256", "fileBytes")}
    if kept.get("stateHandleId", "") is None:
        del kept["stateHandleId"]
    if kept.get("type") == "ByteStreamStateHandle":
        assert kept.pop("size") == kept["bytes"]["length"]
    return kept


def assert_reads_what_flink_reads(vector: Vector) -> CheckpointMetadata:
    metadata = load(vector.path)
    dump = comparable(vector.dump)
    assert metadata.version == dump["version"]
    assert report(metadata) == {key: dump[key] for key in ("checkpointId", "masterStates", "operatorStates")}
    assert described(decode(metadata.properties)) == dump["properties"]
    return metadata


def described(properties: CheckpointProperties | None) -> dict[str, Any] | None:
    if properties is None:
        return None
    kind = properties.checkpoint_type
    assert isinstance(kind, SnapshotType)
    details: dict[str, Any] = {"class": kind.class_name, "name": kind.name}
    if kind.class_name == "SavepointType":
        details |= {"formatType": kind.format_type, "postCheckpointAction": kind.post_checkpoint_action}
    else:
        details["sharingFilesStrategy"] = kind.sharing_files_strategy
    return {
        "class": "CheckpointProperties",
        "checkpointType": details,
        "discardCancelled": properties.discard_cancelled,
        "discardFailed": properties.discard_failed,
        "discardFinished": properties.discard_finished,
        "discardSubsumed": properties.discard_subsumed,
        "discardSuspended": properties.discard_suspended,
        "forced": properties.forced,
        "unclaimed": properties.unclaimed,
    }


def test_the_corpus_is_complete() -> None:
    assert (len(FLINK), len(NEWER_FLINK), len(MUTANTS)) == (32, 2, 81)
    assert {vector.version for vector in FLINK} == {2, 3, 4}


@pytest.mark.parametrize("vector", FLINK, ids=str)
def test_files_that_flink_wrote(vector: Vector) -> None:
    metadata = assert_reads_what_flink_reads(vector)
    assert dumps(metadata, metadata.version) == vector.content
    assert len(vector.content) == vector.dump["bytesConsumed"]


@pytest.mark.parametrize("vector", [vector for vector in FLINK if vector.version == 4], ids=str)
def test_version_3_is_version_4_without_properties(vector: Vector) -> None:
    metadata = loads(vector.content)
    version_3 = dumps(metadata, 3)
    assert version_3[8:] + metadata.properties == vector.content[8:]
    assert loads(version_3).operator_states == metadata.operator_states


@pytest.mark.parametrize("vector", NEWER_FLINK, ids=str)
def test_files_of_flink_2_0(vector: Vector) -> None:
    metadata, dump = loads(vector.content), comparable(vector.dump)
    names = [(operator.pop("name"), operator.pop("uid")) for operator in dump["operatorStates"]]
    assert [(operator.name, operator.uid) for operator in metadata.operator_states] == names
    assert any(uid for _, uid in names)
    assert report(metadata) == {key: dump[key] for key in ("checkpointId", "masterStates", "operatorStates")}
    assert described(decode(metadata.properties)) == dump["properties"]
    assert dumps(metadata, 5) == vector.content
    assert loads(dumps(metadata, 4)).operator_states == convert(metadata, 4).operator_states


@pytest.mark.parametrize("path", OF_FLINK_2_1, ids=lambda path: path.name)
def test_files_of_flink_2_1(path: Path) -> None:
    """Flink 2.1 has read a file of an earlier release and written it again."""
    metadata, before = load(path), load(VECTORS / "flink" / path.name)
    assert metadata.version == 6
    assert dumps(metadata, 6) == (path / "_metadata").read_bytes()
    assert by_id(convert(metadata, 5)) == by_id(convert(before, 5))


@pytest.mark.parametrize("vector", OF_JOBS_OF_FLINK_2_1, ids=str)
def test_files_of_jobs_of_flink_2_1(vector: StateVector) -> None:
    metadata = load(vector.directory)
    assert metadata.version == 6
    assert dumps(metadata, 6) == (vector.directory / "_metadata").read_bytes()
    assert metadata.checkpoint_id == int(vector.job["metadata"].split("/")[-2].removeprefix("chk-"))
    (keyed,) = (o for o in metadata.operator_states if any(s.managed_keyed_state for s in o.subtask_states.values()))
    assert (keyed.parallelism, keyed.max_parallelism) == (vector.job["parallelism"], vector.job["maxParallelism"])
    assert keyed.uid == ("windows" if vector in WINDOWS else "by-row")


def by_id(metadata: CheckpointMetadata) -> dict[bytes, OperatorState]:
    """Operators by their ids. Flink does not keep their order."""
    return {operator.operator_id: operator for operator in metadata.operator_states}


def test_the_files_of_flink_2_1_have_channel_state() -> None:
    subtasks = [s for path in OF_FLINK_2_1 for o in load(path).operator_states for s in o.subtask_states.values()]
    assert any(subtask.input_channel_state for subtask in subtasks)
    assert any(subtask.result_subpartition_state for subtask in subtasks)


def test_merged_channel_state_is_refused_by_name() -> None:
    (path,) = (path for path in OF_FLINK_2_1 if "unaligned" in path.name)
    content = (path / "_metadata").read_bytes()
    subtasks = [s for o in load(path).operator_states for s in o.subtask_states.values()]
    handle = next(s.input_channel_state[0] for s in subtasks if s.input_channel_state)
    head = struct.pack(">iii", handle.subtask_index, handle.info.gate_idx, handle.info.input_channel_idx)
    place = content.index(b"\x01" + head)
    for kind, message in ((3, "merged channel state"), (2, "type 2 instead of 1"), (9, "type 9 instead of 1")):
        with pytest.raises(MetadataFormatError, match=message) as refused:
            loads(content[:place] + bytes((kind,)) + content[place + 1 :])
        assert refused.value.offset == place
        assert refused.value.field.endswith("input_channel_state[0].type")


@pytest.mark.parametrize(
    ("version", "named"),
    [(1, r"version 1 \(Flink 1.1"), (7, r"version 7 \(.*regional checkpoints"), (8, "unknown version 8")],
)
def test_another_version_is_refused_by_name(version: int, named: str) -> None:
    content = NEWER_FLINK[0].content
    with pytest.raises(UnsupportedMetadataVersionError, match=named) as refused:
        loads(content[:7] + bytes((version,)) + content[8:])
    assert refused.value.version == version


@pytest.mark.parametrize("vector", LOADING_MUTANTS, ids=str)
def test_mutants_that_flink_loads(vector: Vector) -> None:
    metadata = assert_reads_what_flink_reads(vector)
    again = dumps(metadata, metadata.version)
    assert loads(again) == metadata
    assert (again == vector.content) == (vector.directory.name not in NOT_REPRODUCED)


@pytest.mark.parametrize("vector", REFUSED_MUTANTS, ids=str)
def test_mutants_that_flink_refuses(vector: Vector) -> None:
    with pytest.raises(MetadataFormatError) as refused:
        load(vector.path)
    assert refused.value.path == str(vector.path)
    assert 0 <= refused.value.offset <= len(vector.content)
    assert refused.value.field
    assert refused.value.reason in str(refused.value)
