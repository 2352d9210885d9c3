"""Minimum Flink release of a reader, checked against the releases that wrote the corpus."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spark_ckpt import metadata as m
from tests.metadata.corpus import FLINK, Vector

STREAM = m.ByteStreamStateHandle("inline", b"state")
RELATIVE = m.RelativeFileStateHandle("file", 5)
RANGE = m.KeyGroupRange(0, 0)
KEY_GROUPS = m.KeyGroupsStateHandle(m.KeyGroupRangeOffsets(RANGE, np.array([0])), STREAM)
INCREMENTAL = m.IncrementalRemoteKeyedStateHandle("backend", RANGE, 1, STREAM)
CHANGES = m.ChangelogStateHandleStreamImpl((), RANGE, 0, 0, "id")
IN_MEMORY = m.InMemoryChangelogStateHandle((), 0, 0, RANGE, "id")
MERGED = m.FileMergingOperatorStreamStateHandle({}, "/taskowned", "/shared", m.EmptySegmentFileStateHandle())
CHANGELOG = m.ChangelogStateBackendHandle((), (), RANGE, 0, 0, "id")


def checkpoint(subtask: m.OperatorSubtaskState, version: int = 2) -> m.CheckpointMetadata:
    return m.CheckpointMetadata(1, (), (m.OperatorState(bytes(16), 1, 1, {0: subtask}),), version)


def keyed(handle: m.KeyedStateHandle) -> m.OperatorSubtaskState:
    return m.OperatorSubtaskState(managed_keyed_state=handle)


def stream(handle: m.StreamStateHandle) -> m.OperatorSubtaskState:
    return keyed(replace(KEY_GROUPS, delegate_state_handle=handle))


@pytest.mark.parametrize(
    ("subtask", "release", "code"),
    [
        (keyed(KEY_GROUPS), "1.3", None),
        (stream(m.FileStateHandle("/x", 1)), "1.3", None),
        (keyed(INCREMENTAL), "1.3", None),
        (m.OperatorSubtaskState(managed_operator_state=m.OperatorStreamStateHandle({}, STREAM)), "1.3", None),
        (stream(RELATIVE), "1.11", 6),
        (keyed(m.KeyGroupsSavepointStateHandle(KEY_GROUPS.group_range_offsets, STREAM)), "1.13", 7),
        (keyed(CHANGELOG), "1.14", 8),
        (keyed(IN_MEMORY), "1.14", 9),
        (keyed(CHANGES), "1.14", 10),
        (keyed(replace(INCREMENTAL, checkpointed_size=1, state_handle_id="id")), "1.15", 11),
        (keyed(replace(KEY_GROUPS, state_handle_id="id")), "1.15", 12),
        (keyed(replace(CHANGES, storage_identifier="filesystem")), "1.16", 13),
        (keyed(replace(CHANGELOG, checkpoint_id=1)), "1.16", 14),
        (stream(m.SegmentFileStateHandle("/x", 0, 1, m.CheckpointedStateScope.SHARED, "id")), "1.20", 15),
        (stream(m.EmptySegmentFileStateHandle()), "1.20", 16),
        (m.OperatorSubtaskState(raw_operator_state=MERGED), "1.20", 17),
    ],
)
def test_codes(subtask: m.OperatorSubtaskState, release: str, code: int | None) -> None:
    required = m.required_release(checkpoint(subtask))
    assert str(required.release) == release
    assert ("version 2" if code is None else f"code {code}") in {reason.split(" (")[0] for reason in required.reasons}
    # The operator handle of a merged file contains a part of that file, which needs the same release.
    assert len(required.reasons) == (2 if code == 17 else 1)


def test_the_newest_part_decides_however_deep_it_lies() -> None:
    nested = replace(KEY_GROUPS, delegate_state_handle=replace(KEY_GROUPS, delegate_state_handle=RELATIVE))
    within = replace(CHANGELOG, materialized_state_handles=(nested, replace(KEY_GROUPS, state_handle_id="id")))
    required = m.required_release(checkpoint(keyed(within)))
    assert required == m.RequiredRelease(m.FlinkRelease(1, 15), ("code 12 (KeyGroupsStateHandle)",))
    assert m.required_release(checkpoint(keyed(nested))).reasons == ("code 6 (RelativeFileStateHandle)",)


@pytest.mark.parametrize(("version", "release"), [(2, "1.3"), (3, "1.11"), (4, "1.16")])
def test_versions(version: int, release: str) -> None:
    required = m.required_release(m.CheckpointMetadata(1, version=version))
    assert (str(required.release), required.reasons) == (release, (f"version {version}",))


def test_finished_subtasks_and_operators() -> None:
    finished = m.CheckpointMetadata(1, (), (m.FullyFinishedOperatorState(bytes(16), 1, 1),))
    assert m.required_release(finished) == m.RequiredRelease(m.FlinkRelease(1, 14), ("finished operators",))
    subtask = checkpoint(m.FinishedOperatorSubtaskState(), 3)
    assert m.required_release(subtask) == m.RequiredRelease(m.FlinkRelease(1, 14), ("finished subtasks",))


def test_release_lines_are_ordered_by_number() -> None:
    assert m.FlinkRelease(1, 9) < m.FlinkRelease(1, 11) < m.FlinkRelease(2, 0)


@pytest.mark.parametrize("vector", FLINK, ids=str)
def test_no_file_needs_a_newer_release_than_the_one_that_wrote_it(vector: Vector) -> None:
    writer = m.FlinkRelease(1, int(vector.directory.name[2:4]))
    required = m.required_release(m.loads(vector.content))
    assert required.release <= writer
    # Lower bound: the first release that reads the file's version.
    assert (
        required.release
        >= {2: m.FlinkRelease(1, 3), 3: m.FlinkRelease(1, 11), 4: m.FlinkRelease(1, 16)}[vector.version]
    )
