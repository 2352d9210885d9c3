"""Handles and checkpoints with given paths."""

from __future__ import annotations

import numpy as np

from spark_ckpt import metadata as m

RANGE = m.KeyGroupRange(0, 0)
OFFSETS = m.KeyGroupRangeOffsets(RANGE, np.array([0]))


def file(path: str) -> m.FileStateHandle:
    return m.FileStateHandle(path, 1)


def checkpoint(*paths: str) -> m.CheckpointMetadata:
    """Checkpoint with one state file per path."""
    subtasks = {
        index: m.OperatorSubtaskState(managed_keyed_state=m.KeyGroupsStateHandle(OFFSETS, file(path)))
        for index, path in enumerate(paths)
    }
    return m.CheckpointMetadata(1, (), (m.OperatorState(bytes(16), len(paths), 100, subtasks),))


def everywhere(root: str) -> m.CheckpointMetadata:
    """Checkpoint with a path below `root` in every field that can hold one."""
    names = iter(range(100))

    def stream() -> m.FileStateHandle:
        return file(f"{root}/{next(names)}")

    def segment() -> m.SegmentFileStateHandle:
        return m.SegmentFileStateHandle(f"{root}/{next(names)}", 0, 1, m.CheckpointedStateScope.SHARED, "id")

    key_groups = m.KeyGroupsStateHandle(OFFSETS, m.KeyGroupsStateHandle(OFFSETS, stream()))
    incremental = m.IncrementalRemoteKeyedStateHandle(
        "backend",
        RANGE,
        1,
        stream(),
        (m.HandleAndLocalPath("1.sst", stream()), m.HandleAndLocalPath("2.sst", segment())),
        (m.HandleAndLocalPath("CURRENT", stream()),),
    )
    changes = m.ChangelogStateHandleStreamImpl((m.HandleAndOffset(stream(), 0),), RANGE, 1, 1, "id")
    changelog = m.ChangelogStateBackendHandle((key_groups, incremental), (changes,), RANGE, 1, 1, "id")
    merged = m.FileMergingOperatorStreamStateHandle({}, f"{root}/taskowned", f"{root}/shared", segment())
    plain = m.OperatorStreamStateHandle({"s": m.StateMetaInfo((0, 1), m.DistributionMode.UNION)}, stream())
    subtask = m.OperatorSubtaskState(
        merged,
        plain,
        changelog,
        m.KeyGroupsSavepointStateHandle(OFFSETS, stream()),
        (m.InputChannelStateHandle(0, m.InputChannelInfo(0, 0), (), 1, stream()),),
        (m.ResultSubpartitionStateHandle(0, m.ResultSubpartitionInfo(0, 0), (), 1, segment()),),
    )
    return m.CheckpointMetadata(1, (), (m.OperatorState(bytes(16), 1, 8, {0: subtask}),))
