"""Flink reads our files with the intended content, and we read the same content from what Flink writes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from spark_ckpt import metadata as m
from spark_ckpt.metadata import modified_utf8
from spark_ckpt.metadata.properties import NULL_PROPERTIES
from spark_ckpt.metadata.traversal import parts_of, with_parts
from tests.metadata.corpus import FLINK, MUTANTS
from tests.metadata.examples import INLINE, MANY, MAX_LONG, OFFSETS, everywhere, extremes, positions, positions_in
from tests.metadata.strategies import checkpoints
from tests.support.flink_check import MODULE, MODULE_OF_1_10, assert_flink_agrees, check, class_path, rewritten_by_1_10
from tests.support.flink_form import as_flink_loads, as_flink_writes, files_by_name

RANDOM_DOCUMENTS = 200
TRIMMED = "".join(map(chr, range(ord(" ") + 1)))
"""Characters removed by `String.trim`, and thus from paths by Flink 1.10."""

PROPERTIES = sorted({m.loads(vector.content).properties for vector in FLINK if vector.version == 4})


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Builds the check before the first test starts its timer."""
    class_path(MODULE)
    class_path(MODULE_OF_1_10)


def drawn(strategy: st.SearchStrategy[m.CheckpointMetadata], count: int) -> list[m.CheckpointMetadata]:
    """Batch of random examples, because a JVM for each would take minutes."""
    examples: list[m.CheckpointMetadata] = []

    @settings(
        max_examples=count,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(metadata: m.CheckpointMetadata) -> None:
        examples.append(metadata)

    draw()
    return examples


def documents(version: int) -> list[m.CheckpointMetadata]:
    """Systematic and random checkpoints. Those of version 4 have each kind of properties, in turn."""
    found = [*everywhere(version), *extremes(version).values(), *drawn(checkpoints(version), RANDOM_DOCUMENTS)]
    if version < 4:
        return [replace(metadata, version=version) for metadata in found]
    kinds = [NULL_PROPERTIES, *PROPERTIES]
    return [
        replace(metadata, version=version, properties=kinds[number % len(kinds)])
        for number, metadata in enumerate(found)
    ]


def written(directory: Path, checkpoints: Iterable[m.CheckpointMetadata]) -> dict[Path, m.CheckpointMetadata]:
    paths = {}
    for number, metadata in enumerate(checkpoints):
        path = directory / f"{number}" / "_metadata"
        path.parent.mkdir()
        path.write_bytes(m.dumps(metadata, metadata.version))
        paths[path] = metadata
    return paths


def read_back(content: bytes) -> m.CheckpointMetadata:
    """Metadata read from Flink's bytes; asserts that writing it yields the same bytes."""
    metadata = m.loads(content)
    assert m.dumps(metadata, metadata.version) == content
    return metadata


@pytest.mark.parametrize("version", [2, 3, 4])
def test_there_and_back(tmp_path: Path, version: int) -> None:
    checkpoints = written(tmp_path, documents(version))
    verdicts = check(checkpoints, write=True)
    seen_positions: set[tuple[str, int]] = set()
    seen_traits: set[str] = set()
    for path, metadata in checkpoints.items():
        verdict = verdicts[path]
        read = assert_flink_agrees(path, verdict)
        assert read == metadata
        assert verdict.bytes_consumed == path.stat().st_size
        assert verdict.written is not None
        assert read_back(verdict.written) == as_flink_writes(read, max(version, 3))
        seen_positions.update(positions_in(read))
        seen_traits.update(traits(read))
    assert seen_positions == positions(version)
    assert seen_traits == TRAITS - (LATER_TRAITS if version == 2 else set())
    assert len(checkpoints) > RANDOM_DOCUMENTS


def test_there_and_back_with_the_last_writer_of_version_2(tmp_path: Path) -> None:
    checkpoints = written(tmp_path, (with_parts(metadata, _known_to_1_10) for metadata in documents(2)))
    again = rewritten_by_1_10(list(checkpoints))
    for path, metadata in checkpoints.items():
        assert files_by_name(read_back(again[path])) == files_by_name(as_flink_loads(metadata))
    codes = {code for metadata in checkpoints.values() for _, code in positions_in(metadata)}
    assert codes == {0, 1, 2, 3, 4, 5}
    assert len(checkpoints) > RANDOM_DOCUMENTS


def _known_to_1_10(part: Any) -> Any:
    """Similar part with one of the codes 0 to 5, which Flink 1.10 knows."""
    if isinstance(part, (m.RelativeFileStateHandle, m.SegmentFileStateHandle)):
        return m.FileStateHandle("/instead", max(part.state_size, -1))
    if isinstance(part, m.FileStateHandle) and part.file_path != part.file_path.strip(TRIMMED):
        return replace(part, file_path="/instead")
    if isinstance(part, m.EmptySegmentFileStateHandle):
        return INLINE
    if isinstance(part, m.KeyGroupsSavepointStateHandle):
        part = m.KeyGroupsStateHandle(part.group_range_offsets, part.delegate_state_handle)
    if isinstance(part, m.KeyGroupsStateHandle):
        delegate = part.delegate_state_handle
        return m.KeyGroupsStateHandle(part.group_range_offsets, INLINE if _is_key_groups(delegate) else delegate)
    if isinstance(part, m.HandleAndLocalPath) and _is_key_groups(part.handle):
        return replace(part, handle=INLINE)
    if isinstance(part, m.IncrementalRemoteKeyedStateHandle):
        meta = part.meta_data_state_handle
        needed = INLINE if meta is None or _is_key_groups(meta) else meta
        return replace(part, meta_data_state_handle=needed, checkpointed_size=None, state_handle_id=None)
    if isinstance(part, m.ChangelogStateBackendHandle):
        return part.materialized_state_handles[0] if part.materialized_state_handles else None
    if isinstance(part, (m.InMemoryChangelogStateHandle, m.ChangelogStateHandleStreamImpl)):
        return m.KeyGroupsStateHandle(OFFSETS, INLINE)
    if isinstance(part, (m.OperatorStreamStateHandle, m.FileMergingOperatorStreamStateHandle)):
        delegate = INLINE if _is_key_groups(part.delegate_state_handle) else part.delegate_state_handle
        return m.OperatorStreamStateHandle(part.state_name_to_partition_offsets, delegate)
    return part


def _is_key_groups(stream: Any) -> bool:
    return isinstance(stream, m.KeyGroupsStateHandle)


# ---- traits of the documents -----------------------------------------------------------------------------------------

LATER_TRAITS = {"finished operator", "partly finished operator"}
TRAITS = LATER_TRAITS | {
    "no operators",
    "many operators",
    "many master states",
    "many subtasks",
    "many offsets",
    "subtask without state",
    "32,768 key groups",
    "last key group",
    "empty range",
    "4 MiB inline",
    "nothing inline",
    "unknown size",
    "highest checkpoint id",
    "highest parallelism",
    "highest number",
    "lowest number",
    "12 nested handles",
    "text with NUL",
    "text with a surrogate pair",
    "text with a lone surrogate",
    "text of 65,535 bytes",
    "empty text",
}


def traits(metadata: m.CheckpointMetadata) -> Iterator[str]:
    """Elements of `TRAITS` that apply to a checkpoint."""
    yield from _if(not metadata.operator_states, "no operators")
    yield from _if(len(metadata.operator_states) >= MANY, "many operators")
    yield from _if(len(metadata.master_states) >= MANY, "many master states")
    yield from _if(metadata.checkpoint_id == MAX_LONG, "highest checkpoint id")
    for part in parts_of(metadata):
        if isinstance(part, m.OperatorState):
            finished = sum(subtask.is_finished for subtask in part.subtask_states.values())
            yield from _if(part.is_fully_finished, "finished operator")
            yield from _if(0 < finished < len(part.subtask_states), "partly finished operator")
            yield from _if(part.parallelism == 2**31 - 1, "highest parallelism")
            yield from _if(len(part.subtask_states) >= MANY, "many subtasks")
        elif isinstance(part, m.OperatorSubtaskState):
            yield from _if(part == m.OperatorSubtaskState(), "subtask without state")
        elif isinstance(part, m.KeyGroupsStateHandle):
            depth = sum(isinstance(inner, m.KeyGroupsStateHandle) for inner in parts_of(part))
            yield from _if(depth > 12, "12 nested handles")
        elif isinstance(part, m.KeyGroupRange):
            yield from _if(len(part) == 32768, "32,768 key groups")
            yield from _if(part.end == 2**31 - 2, "last key group")
            yield from _if(not len(part), "empty range")
        elif isinstance(part, m.ByteStreamStateHandle):
            yield from _if(len(part.data) >= 4 << 20, "4 MiB inline")
            yield from _if(not part.data, "nothing inline")
            yield from _of_text(part.handle_name)
        elif isinstance(part, m.FileStateHandle):
            yield from _if(part.state_size == -1, "unknown size")
        elif isinstance(part, m.StateMetaInfo):
            yield from _if(len(part.offsets) >= MANY, "many offsets")
            yield from _if(MAX_LONG in part.offsets, "highest number")
            yield from _if(-MAX_LONG - 1 in part.offsets, "lowest number")


def _of_text(text: str) -> Iterator[str]:
    yield from _if(not text, "empty text")
    yield from _if("\0" in text, "text with NUL")
    yield from _if(any(ord(character) > 0xFFFF for character in text), "text with a surrogate pair")
    yield from _if(any(0xD800 <= ord(character) < 0xE000 for character in text), "text with a lone surrogate")
    yield from _if(len(modified_utf8.encode(text)) == modified_utf8.MAX_BYTES, "text of 65,535 bytes")


def _if(condition: bool, trait: str) -> tuple[str, ...]:
    return (trait,) if condition else ()


# ---- files that Flink wrote, and our own layout ----------------------------------------------------------------------


def test_flink_says_the_same_of_the_corpus_as_the_corpus() -> None:
    verdicts = check([vector.path for vector in (*FLINK, *MUTANTS)])
    for vector in (*FLINK, *MUTANTS):
        verdict = verdicts[vector.path]
        assert verdict.loads == vector.loads, vector
        if verdict.loads:
            assert_flink_agrees(vector.path, verdict)
            assert verdict.bytes_consumed == vector.dump["bytesConsumed"]


def test_our_layout_of_base_and_deltas(tmp_path: Path) -> None:
    """The coordinator's layout: key-group handles on shared files in the materialised list, the base before deltas."""
    base = m.KeyGroupsStateHandle(
        m.KeyGroupRangeOffsets.of(0, [0, 40, 80, 80]), m.FileStateHandle("s3://b/ckpt/shared/a", 120), "base"
    )
    delta = m.KeyGroupsStateHandle(
        m.KeyGroupRangeOffsets.of(0, [7000, 7000, 7020, 7100]), m.RelativeFileStateHandle("../shared/m", 9000), "delta"
    )
    inline = m.KeyGroupsStateHandle(m.KeyGroupRangeOffsets.of(2, [0]), m.ByteStreamStateHandle("d", b"x" * 30), "last")
    keyed = m.ChangelogStateBackendHandle((base, delta, inline), (), m.KeyGroupRange(0, 3), 150, 3, "subtask", 3)
    source = m.OperatorStreamStateHandle(
        {"kafka": m.StateMetaInfo((0, 17, 40), m.DistributionMode.SPLIT_DISTRIBUTE)},
        m.ByteStreamStateHandle("offsets", b"o" * 60),
    )
    metadata = m.CheckpointMetadata(
        3,
        (m.MasterState("spark-batch", b'{"batch_id": 2}', 1),),
        (
            m.OperatorState(bytes(range(16)), 2, 8, {0: m.OperatorSubtaskState(managed_keyed_state=keyed)}),
            m.OperatorState(bytes(16), 1, 1, {0: m.OperatorSubtaskState(managed_operator_state=source)}),
        ),
    )
    checkpoints = written(tmp_path, (replace(metadata, version=version) for version in (2, 3)))
    verdicts = check(checkpoints)
    for path in checkpoints:
        assert assert_flink_agrees(path, verdicts[path]).operator_states == metadata.operator_states


def test_assert_flink_agrees_notices_a_difference(tmp_path: Path) -> None:
    path = tmp_path / "_metadata"
    m.dump(m.CheckpointMetadata(1), path)
    verdict = check([tmp_path])[tmp_path]
    m.dump(m.CheckpointMetadata(2), path)
    with pytest.raises(AssertionError):
        assert_flink_agrees(tmp_path, verdict)
    path.write_bytes(b"no metadata")
    with pytest.raises(AssertionError, match="Flink refuses"):
        assert_flink_agrees(tmp_path)
