"""The model refuses the same values as Flink's classes, so that no writer can create a file that Flink refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_ckpt import metadata as m
from spark_ckpt.errors import SparkCkptError

INLINE = m.ByteStreamStateHandle("h", b"12345")
KEYED = m.KeyGroupsStateHandle(m.KeyGroupRangeOffsets.of(0, [0, 3]), INLINE)
FILE = m.HandleAndLocalPath("000001.sst", m.FileStateHandle("/f", 100))


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: m.CheckpointMetadata(-1), "checkpoint_id"),
        (lambda: m.OperatorState(b"short", 1, 1), "operator_id"),
        (lambda: m.OperatorState(bytes(16), -1, 1), "parallelism"),
        (lambda: m.OperatorState(bytes(16), 9, 8), "parallelism"),
        (lambda: m.OperatorState(bytes(16), 1, 8, {1: m.OperatorSubtaskState()}), "subtask_states"),
        (lambda: m.OperatorState(bytes(16), 1, 8, {-1: m.OperatorSubtaskState()}), "subtask_states"),
        (lambda: m.FullyFinishedOperatorState(bytes(16), 1, 8, coordinator_state=INLINE), "subtask_states"),
        (lambda: m.FullyFinishedOperatorState(bytes(16), 9, 8), "parallelism"),
        (lambda: m.FinishedOperatorSubtaskState(managed_keyed_state=KEYED), "subtask_states"),
        (lambda: m.FileStateHandle("", 1), "file_path"),
        (lambda: m.FileStateHandle("/f", -2), "state_size"),
        (lambda: m.RelativeFileStateHandle("", 1), "relative_path"),
        (lambda: m.RelativeFileStateHandle("f", -2), "state_size"),
        (lambda: m.SegmentFileStateHandle("", 0, 0, m.CheckpointedStateScope.SHARED, "id"), "file_path"),
        (lambda: m.StateChange(-2, b""), "key_group"),
        (lambda: m.ChangelogStateBackendHandle((), (), m.KeyGroupRange(0, -1), 0, 0, "id"), "key_group_range"),
        (
            lambda: m.IncrementalRemoteKeyedStateHandle("b", m.KeyGroupRange(0, 1), 1, None, state_handle_id="id"),
            "checkpointed_size",
        ),
        (
            lambda: m.FileMergingOperatorStreamStateHandle({}, "", "/s", m.EmptySegmentFileStateHandle()),
            "task_owned_dir",
        ),
    ],
)
def test_what_no_file_may_hold(make: Callable[[], object], field: str) -> None:
    with pytest.raises(m.MetadataValueError) as refused:
        make()
    assert refused.value.field == field
    assert isinstance(refused.value, (SparkCkptError, ValueError))


def test_state_sizes_add_up() -> None:
    incremental = m.IncrementalRemoteKeyedStateHandle("b", m.KeyGroupRange(0, 1), 1, INLINE, (FILE,), (FILE, FILE))
    changes = m.InMemoryChangelogStateHandle(
        (m.StateChange(0, b"123"), m.StateChange(-1, b"4")), 0, 2, m.KeyGroupRange(0, 1), "id"
    )
    changelog = m.ChangelogStateBackendHandle((KEYED, incremental), (changes,), m.KeyGroupRange(0, 1), 0, 0, "id")
    channel = m.InputChannelStateHandle(0, m.InputChannelInfo(0, 0), (4,), 1000, INLINE)
    subtask = m.OperatorSubtaskState(
        managed_operator_state=m.OperatorStreamStateHandle({}, INLINE),
        managed_keyed_state=changelog,
        input_channel_state=(channel,),
    )
    assert incremental.state_size == 305
    assert changes.state_size == 4
    assert changelog.state_size == 5 + 305 + 4
    assert subtask.state_size == 5 + 314 + 1000
    operator = m.OperatorState(bytes(16), 2, 2, {0: subtask, 1: m.FinishedOperatorSubtaskState()}, INLINE)
    assert m.CheckpointMetadata(1, (), (operator, operator)).state_size == 2 * (1319 + 5)


def test_finished_is_told_apart() -> None:
    assert m.FinishedOperatorSubtaskState() != m.OperatorSubtaskState()
    assert m.FinishedOperatorSubtaskState().is_finished
    assert not m.OperatorSubtaskState().is_finished
    assert m.FullyFinishedOperatorState(bytes(16), 1, 1).is_fully_finished
    assert not m.OperatorState(bytes(16), 1, 1).is_fully_finished
