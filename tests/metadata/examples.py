"""Systematic metadata examples, not left to chance: every code in every position, and extreme lengths and numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from spark_ckpt import metadata as m
from spark_ckpt.metadata.codes import code_of
from spark_ckpt.metadata.traversal import parts_of

MIN_LONG, MAX_LONG = -(2**63), 2**63 - 1
RANGE = m.KeyGroupRange(3, 4)
OFFSETS = m.KeyGroupRangeOffsets.of(3, [0, 70])
INLINE = m.ByteStreamStateHandle("inline", b"state")

STREAMS: dict[int, m.StreamStateHandle] = {
    1: INLINE,
    2: m.FileStateHandle("s3://b/f", 7),
    3: m.KeyGroupsStateHandle(OFFSETS, INLINE),
    6: m.RelativeFileStateHandle("f", 8),
    15: m.SegmentFileStateHandle("/f", 4, 9, m.CheckpointedStateScope.SHARED, "logical"),
    16: m.EmptySegmentFileStateHandle(),
}
_IN_MEMORY = m.InMemoryChangelogStateHandle((m.StateChange(-1, b"meta"), m.StateChange(3, b"c")), 5, 7, RANGE, "nine")
_IN_FILES = m.ChangelogStateHandleStreamImpl((m.HandleAndOffset(INLINE, 6),), RANGE, 3, 2, "ten")
CHANGES: dict[int, m.ChangelogStateHandle] = {
    9: _IN_MEMORY,
    10: _IN_FILES,
    13: replace(_IN_FILES, storage_identifier="filesystem"),
}
_KEY_GROUPS = m.KeyGroupsStateHandle(OFFSETS, INLINE, "twelve")
_INCREMENTAL = m.IncrementalRemoteKeyedStateHandle("backend", RANGE, 8, INLINE)
_CHANGELOG = m.ChangelogStateBackendHandle((), (), RANGE, 5, 4, "eight")
KEYED: dict[int, m.KeyedStateHandle] = {
    3: replace(_KEY_GROUPS, state_handle_id=None),
    5: _INCREMENTAL,
    7: m.KeyGroupsSavepointStateHandle(OFFSETS, INLINE),
    8: _CHANGELOG,
    11: replace(_INCREMENTAL, checkpointed_size=3, state_handle_id="eleven"),
    12: _KEY_GROUPS,
    14: replace(_CHANGELOG, checkpoint_id=6),
    **CHANGES,
}
STATES = {"state": m.StateMetaInfo((0, 9), m.DistributionMode.UNION)}
OPERATOR: dict[int, m.OperatorStateHandle] = {
    4: m.OperatorStreamStateHandle(STATES, INLINE),
    17: m.FileMergingOperatorStreamStateHandle(STATES, "/owned", "/shared", m.EmptySegmentFileStateHandle()),
}

NOTHING: dict[int, Any] = {0: None}
POSITIONS: dict[str, dict[int, Any]] = {
    "OperatorState.coordinator_state": NOTHING | {1: INLINE},
    "OperatorSubtaskState.managed_operator_state": NOTHING | OPERATOR,
    "OperatorSubtaskState.raw_operator_state": NOTHING | OPERATOR,
    "OperatorSubtaskState.managed_keyed_state": NOTHING | KEYED,
    "OperatorSubtaskState.raw_keyed_state": NOTHING | KEYED,
    "InputChannelStateHandle.delegate": STREAMS,
    "ResultSubpartitionStateHandle.delegate": STREAMS,
    "KeyGroupsStateHandle.delegate_state_handle": STREAMS,
    "KeyGroupsSavepointStateHandle.delegate_state_handle": STREAMS,
    "IncrementalRemoteKeyedStateHandle.meta_data_state_handle": NOTHING | STREAMS,
    "HandleAndLocalPath.handle": STREAMS,
    "HandleAndOffset.handle": NOTHING | STREAMS,
    "ChangelogStateBackendHandle.materialized_state_handles": NOTHING | KEYED,
    "ChangelogStateBackendHandle.non_materialized_state_handles": CHANGES,
    "OperatorStreamStateHandle.delegate_state_handle": STREAMS,
    "FileMergingOperatorStreamStateHandle.delegate_state_handle": {code: STREAMS[code] for code in (15, 16)},
}
"""Positions of handles, and an example of each allowed kind by code. Version 2 has no coordinators and channels."""

ONLY_LATER = ("OperatorState.coordinator_state", "InputChannelStateHandle.", "ResultSubpartitionStateHandle.")


def positions(version: int) -> set[tuple[str, int]]:
    """All positions in a file of the version, with each allowed code."""
    return {
        (position, code)
        for position, handles in POSITIONS.items()
        for code in handles
        if version > 2 or code == 0 or not position.startswith(ONLY_LATER)
    }


def positions_in(metadata: m.CheckpointMetadata) -> Iterator[tuple[str, int]]:
    """Positions in a checkpoint, with their codes."""
    for part in parts_of(metadata):
        assert is_dataclass(part)
        for field in fields(part):
            position = f"{type(part).__name__}.{field.name}"
            value = getattr(part, field.name)
            for handle in value if isinstance(value, tuple) else (value,):
                if position in POSITIONS:
                    yield position, code_of(handle) or 0


def everywhere(version: int) -> Iterator[m.CheckpointMetadata]:
    """Checkpoints that together cover every code in every position."""
    for position, code in sorted(positions(version)):
        class_name, _, field = position.partition(".")
        yield _HOLDERS[class_name](field, POSITIONS[position][code])


def checkpoint(subtask: m.OperatorSubtaskState, **fields: Any) -> m.CheckpointMetadata:
    """Checkpoint of one operator with one subtask."""
    return m.CheckpointMetadata(1, (), (m.OperatorState(bytes(range(16)), 1, 8, {0: subtask}, **fields),))


def keyed(handle: m.KeyedStateHandle) -> m.CheckpointMetadata:
    """Checkpoint with a single handle of keyed state."""
    return checkpoint(m.OperatorSubtaskState(managed_keyed_state=handle))


def _with(handle: Any, field: str, value: Any) -> Any:
    return replace(handle, **{field: value})


def _of_operator(handle: m.OperatorStateHandle, field: str, value: Any) -> m.CheckpointMetadata:
    return checkpoint(m.OperatorSubtaskState(managed_operator_state=_with(handle, field, value)))


_HOLDERS: dict[str, Callable[[str, Any], m.CheckpointMetadata]] = {
    "OperatorState": lambda field, value: checkpoint(m.OperatorSubtaskState(), **{field: value}),
    "OperatorSubtaskState": lambda field, value: checkpoint(m.OperatorSubtaskState(**{field: value})),
    "InputChannelStateHandle": lambda field, value: checkpoint(
        m.OperatorSubtaskState(
            input_channel_state=(m.InputChannelStateHandle(0, m.InputChannelInfo(1, 2), (3,), 4, value),)
        )
    ),
    "ResultSubpartitionStateHandle": lambda field, value: checkpoint(
        m.OperatorSubtaskState(
            result_subpartition_state=(
                m.ResultSubpartitionStateHandle(0, m.ResultSubpartitionInfo(1, 2), (3,), 4, value),
            )
        )
    ),
    "KeyGroupsStateHandle": lambda field, value: keyed(_with(KEYED[12], field, value)),
    "KeyGroupsSavepointStateHandle": lambda field, value: keyed(_with(KEYED[7], field, value)),
    "IncrementalRemoteKeyedStateHandle": lambda field, value: keyed(_with(KEYED[11], field, value)),
    "HandleAndLocalPath": lambda field, value: keyed(
        replace(
            _INCREMENTAL,
            shared_state=(m.HandleAndLocalPath("shared", value),) * 2,
            private_state=(m.HandleAndLocalPath("private", value),),
        )
    ),
    "HandleAndOffset": lambda field, value: keyed(
        replace(_IN_FILES, handles_and_offsets=(m.HandleAndOffset(value, 5), m.HandleAndOffset(INLINE, 6)))
    ),
    "ChangelogStateBackendHandle": lambda field, value: keyed(_with(_CHANGELOG, field, (value, value))),
    "OperatorStreamStateHandle": lambda field, value: _of_operator(OPERATOR[4], field, value),
    "FileMergingOperatorStreamStateHandle": lambda field, value: _of_operator(OPERATOR[17], field, value),
}

# ---- extremes --------------------------------------------------------------------------------------------------------

NAMES = {
    "an empty name": "",
    "a name with NUL": "a\0b",
    "a name of the basic plane": "\u0001\u007f\u0080\u07ff\u0800\uffff",
    "a name with surrogate pairs": "\U0001f600\U00010000\U0010ffff",
    "a name with lone surrogates": "\ud83d \ude00",
    "a name of 65,535 bytes": "n" * 65535,
    "a name of 65,535 bytes in threes": "\uffff" * 21845,
}
MANY = 2000


def _operators(number: int, subtask: m.OperatorSubtaskState) -> tuple[m.OperatorState, ...]:
    return tuple(m.OperatorState(n.to_bytes(16, "big"), 2, 4, {n % 2: subtask}) for n in range(number))


def _named(name: str) -> m.CheckpointMetadata:
    """Checkpoint with the name in all text fields except paths."""
    state = m.OperatorStreamStateHandle(
        {name: m.StateMetaInfo((), m.DistributionMode.BROADCAST)}, m.ByteStreamStateHandle(name, b"")
    )
    files = (m.HandleAndLocalPath(name, INLINE),)
    parts = (
        replace(_KEY_GROUPS, state_handle_id=name),
        m.IncrementalRemoteKeyedStateHandle(name, RANGE, 1, None, files, files, 0, name),
        replace(_IN_MEMORY, state_handle_id=name),
        replace(_IN_FILES, state_handle_id=name, storage_identifier=name),
    )
    subtask = m.OperatorSubtaskState(
        managed_operator_state=state, managed_keyed_state=m.ChangelogStateBackendHandle(parts, (), RANGE, 0, 0, name, 0)
    )
    return replace(checkpoint(subtask), master_states=(m.MasterState(name, b"", 0),))


def _numbers(number: int) -> m.CheckpointMetadata:
    """Checkpoint with the number in all 64-bit fields, and its upper half in all 32-bit fields."""
    half = number >> 32
    stream = m.SegmentFileStateHandle("/f", number, number, m.CheckpointedStateScope.EXCLUSIVE, "id")
    parts = (
        m.KeyGroupsStateHandle(m.KeyGroupRangeOffsets.of(0, [number, number]), stream, "id"),
        m.IncrementalRemoteKeyedStateHandle("b", RANGE, number, stream, (), (), max(number, -1), "id"),
        m.ChangelogStateHandleStreamImpl((m.HandleAndOffset(stream, number),), RANGE, number, number, "id", "s"),
    )
    keyed = m.ChangelogStateBackendHandle(parts, (), RANGE, number, number, "id", number)
    states = {"s": m.StateMetaInfo((number, number), m.DistributionMode.SPLIT_DISTRIBUTE)}
    return m.CheckpointMetadata(
        max(number, 0),
        (m.MasterState("m", b"", half),),
        checkpoint(m.OperatorSubtaskState(m.OperatorStreamStateHandle(states, stream), None, keyed)).operator_states,
    )


def _nested(depth: int) -> m.KeyGroupsStateHandle:
    stream: m.StreamStateHandle = INLINE
    for _ in range(depth):
        stream = m.KeyGroupsStateHandle(OFFSETS, stream)
    return m.KeyGroupsStateHandle(OFFSETS, stream, "nested")


EXTREMES: dict[str, m.CheckpointMetadata] = {
    "no operators": m.CheckpointMetadata(0),
    "the highest checkpoint id": m.CheckpointMetadata(MAX_LONG),
    "many operators": m.CheckpointMetadata(1, (), _operators(MANY, m.OperatorSubtaskState())),
    "many master states": m.CheckpointMetadata(1, (m.MasterState("same", b"", 1),) * MANY),
    "many subtasks": m.CheckpointMetadata(
        1, (), (m.OperatorState(bytes(16), MANY, MANY, dict.fromkeys(range(MANY), m.OperatorSubtaskState())),)
    ),
    "no subtasks": m.CheckpointMetadata(1, (), (m.OperatorState(bytes(16), 0, 0),)),
    "the highest parallelism": m.CheckpointMetadata(1, (), (m.OperatorState(bytes(16), 2**31 - 1, 2**31 - 1),)),
    "32,768 key groups": keyed(m.KeyGroupsStateHandle(m.KeyGroupRangeOffsets.of(0, np.arange(32768)), INLINE, "all")),
    "the last key group": keyed(m.KeyGroupsStateHandle(m.KeyGroupRangeOffsets.of(2**31 - 2, [0]), INLINE, "last")),
    "an empty range": keyed(m.KeyGroupsStateHandle(m.KeyGroupRangeOffsets.of(5, []), INLINE, "none")),
    "several MB inline": keyed(m.KeyGroupsStateHandle(OFFSETS, m.ByteStreamStateHandle("large", bytes(4 << 20)), "l")),
    "nothing inline": keyed(m.KeyGroupsStateHandle(OFFSETS, m.ByteStreamStateHandle("", b""), "")),
    "an unknown size": keyed(m.KeyGroupsStateHandle(OFFSETS, m.FileStateHandle("/f", -1), "")),
    "many offsets": checkpoint(
        m.OperatorSubtaskState(
            m.OperatorStreamStateHandle(
                {"s": m.StateMetaInfo(tuple(range(MANY)), m.DistributionMode.SPLIT_DISTRIBUTE)}, INLINE
            )
        )
    ),
    "handles within one another": keyed(_nested(12)),
    "the highest numbers": _numbers(MAX_LONG),
    "the lowest numbers": _numbers(MIN_LONG),
    **{description: _named(name) for description, name in NAMES.items()},
}
"""Extreme checkpoints by description; all versions can hold them."""

LATER_EXTREMES: dict[str, m.CheckpointMetadata] = {
    "a finished operator": m.CheckpointMetadata(1, (), (m.FullyFinishedOperatorState(bytes(16), 4, 8),)),
    "a partly finished operator": m.CheckpointMetadata(
        1,
        (),
        (
            m.OperatorState(
                bytes(16),
                2**31 - 1,
                2**31 - 1,
                {},
                INLINE,
            ),
            m.OperatorState(
                bytes(16),
                3,
                8,
                {0: m.FinishedOperatorSubtaskState(), 2: m.OperatorSubtaskState(), 1: m.FinishedOperatorSubtaskState()},
            ),
        ),
    ),
}
"""Extreme checkpoints that version 2 cannot hold."""


def extremes(version: int) -> dict[str, m.CheckpointMetadata]:
    """Checkpoints with the longest, largest and smallest contents of a file of the version."""
    return EXTREMES if version == 2 else EXTREMES | LATER_EXTREMES
