"""Writer of canonical savepoints, which Flink 1.11 and later restore with any state backend and parallelism.

    savepoint   a file per operator and subtask; `_metadata` of version 3, with relative paths, is written last
    file        header; then for each key group with rows, for each state with rows: i16 id, entries; i16 -1

Flink: `FullSnapshotAsyncWriter`, `KeyGroupsSavepointStateHandle`.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_ckpt import metadata as m
from spark_ckpt.errors import StorageError
from spark_ckpt.flink.export.check import check
from spark_ckpt.flink.export.entries import StateEncoder
from spark_ckpt.flink.export.errors import UnsupportedForFlinkError
from spark_ckpt.flink.export.headers import keyed_header
from spark_ckpt.flink.export.model import FlinkOperator, Rows, Written
from spark_ckpt.flink.export.operator_state import operator_state
from spark_ckpt.flink.export.runs import SortedState, SpillFile
from spark_ckpt.flink.streams.full_snapshot import END_OF_KEY_GROUP
from spark_ckpt.location.errors import TargetExistsError
from spark_ckpt.storage import Storage, Whose, create_and_find

_STATE_ID_BYTES = 2
_CHUNK = 1 << 20
_END = END_OF_KEY_GROUP.to_bytes(_STATE_ID_BYTES, "big")

_VERSION = 3


def write_savepoint(
    target: Storage,
    operators: Sequence[tuple[FlinkOperator, Mapping[str, Rows]]],
    *,
    checkpoint_id: int = 1,
    parallelism: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Written:
    """Write a canonical savepoint.

    All rows are encoded and sorted by key group before the first file is written. Memory is bounded: what exceeds it
    lies in a temporary file without a name.

    Args:
        target: storage of the savepoint's directory.
        operators: operators, each with the rows of its keyed states by name.
        checkpoint_id: id of the savepoint.
        parallelism: subtasks of each operator, and so files; at most its max parallelism. A restore may use another.
        progress: called with the number of rows encoded so far.

    Raises:
        TargetExistsError: the directory has a `_metadata`.
        UnsupportedForFlinkError: a type or an operator cannot be written.
        FlinkRowError: a row does not fit its state; nothing was written.
        StorageError: a file cannot be written, or the temporary file cannot be used.
    """
    for operator, rows in operators:
        check(operator)
        _check_rows(operator, rows, parallelism)
    if twice := _twice([operator.operator_id for operator, _ in operators]):
        title = next(operator.title for operator, _ in operators if operator.operator_id == twice)
        raise UnsupportedForFlinkError(title, None, "two operators of the savepoint have this id")
    if target.exists(m.METADATA_FILE_NAME):
        raise TargetExistsError(target.describe(m.METADATA_FILE_NAME))
    with SpillFile() as spill:
        count = _Count(progress)
        found = [_sorted(operator, rows, spill, count) for operator, rows in operators]
        # Elements that do not fit are found before the first file, too.
        states = [
            [operator_state(operator, subtask, parallelism) for subtask in range(parallelism)]
            for operator, _ in operators
        ]
        files: dict[str, int] = {}
        try:
            operator_states = tuple(
                _write_operator(target, operator, keyed, other, files)
                for (operator, _), keyed, other in zip(operators, found, states, strict=True)
            )
        except BaseException:
            _delete(target, files)
            raise
    content = m.dumps(m.CheckpointMetadata(checkpoint_id, (), operator_states), _VERSION)
    _create_metadata(target, content, files)
    return Written(
        (*files, m.METADATA_FILE_NAME),
        len(content) + sum(files.values()),
        {
            (operator.operator_id, state.name): each.rows
            for (operator, _), keyed in zip(operators, found, strict=True)
            for state, each in zip(operator.states, keyed, strict=True)
        },
    )


def _create_metadata(target: Storage, content: bytes, files: Mapping[str, int]) -> None:
    try:
        found = create_and_find(target, m.METADATA_FILE_NAME, content)
    except StorageError:
        # It was certainly not created.
        _delete(target, files)
        raise
    if found.whose is Whose.UNKNOWN:
        # `_metadata` may be there, or arrive later: the files that it refers to stay.
        reason = found.cause or "the storage does not report whether the file exists"
        raise StorageError(target.describe(m.METADATA_FILE_NAME), "create", reason) from found.cause
    if found.whose is Whose.OTHER:
        _delete(target, files)
        raise TargetExistsError(target.describe(m.METADATA_FILE_NAME))


def _delete(target: Storage, files: Mapping[str, int]) -> None:
    """Delete files to which nothing refers, as far as possible."""
    with contextlib.suppress(StorageError):
        target.delete_all(list(files))


def _check_rows(operator: FlinkOperator, rows: Mapping[str, Rows], parallelism: int) -> None:
    if not 1 <= parallelism <= operator.max_parallelism:
        reason = f"{parallelism} subtasks; the max parallelism allows 1 to {operator.max_parallelism}"
        raise UnsupportedForFlinkError(operator.title, None, reason)
    if other := rows.keys() ^ {state.name for state in operator.states}:
        raise UnsupportedForFlinkError(operator.title, min(other), "a state without rows, or rows without a state")


def _twice(ids: Sequence[bytes]) -> bytes | None:
    return next((each for number, each in enumerate(ids) if each in ids[:number]), None)


@dataclass
class _Count:
    """Rows encoded so far."""

    progress: Callable[[int], None] | None
    rows: int = 0

    def add(self, rows: int) -> None:
        self.rows += rows
        if self.progress is not None:
            self.progress(self.rows)


def _sorted(operator: FlinkOperator, rows: Mapping[str, Rows], spill: SpillFile, count: _Count) -> list[SortedState]:
    result = []
    for state in operator.states:
        encoder = StateEncoder(operator, state)
        entries = SortedState(operator.max_parallelism, spill)
        for batch in rows[state.name]:
            for part in encoder.encode(batch):
                entries.add(part)
            count.add(batch.num_rows)
        entries.finish()
        result.append(entries)
    return result


def _write_operator(
    target: Storage,
    operator: FlinkOperator,
    states: Sequence[SortedState],
    other: Sequence[m.OperatorStateHandle | None],
    files: dict[str, int],
) -> m.OperatorState:
    subtasks = {}
    sizes = np.array([state.sizes() for state in states], np.int64).reshape(len(states), operator.max_parallelism)
    for subtask, handle in enumerate(other):
        keyed = None
        if operator.key is not None:
            key_groups = key_groups_of_subtask(subtask, len(other), operator.max_parallelism)
            keyed = _write_subtask(target, operator, states, sizes, subtask, key_groups, files)
        subtasks[subtask] = m.OperatorSubtaskState(managed_operator_state=handle, managed_keyed_state=keyed)
    coordinator = operator.coordinator_state
    return m.OperatorState(
        operator.operator_id,
        len(other),
        operator.max_parallelism,
        subtasks,
        None if coordinator is None else m.ByteStreamStateHandle("coordinator", coordinator),
    )


def key_groups_of_subtask(subtask: int, parallelism: int, max_parallelism: int) -> m.KeyGroupRange:
    """Key groups of a subtask (`KeyGroupRangeAssignment.computeKeyGroupRangeForOperatorIndex`)."""
    first = -(-subtask * max_parallelism // parallelism)
    return m.KeyGroupRange(first, ((subtask + 1) * max_parallelism - 1) // parallelism)


def _write_subtask(
    target: Storage,
    operator: FlinkOperator,
    states: Sequence[SortedState],
    all_sizes: NDArray[np.int64],
    subtask: int,
    key_groups: m.KeyGroupRange,
    files: dict[str, int],
) -> m.KeyGroupsSavepointStateHandle:
    assert operator.key is not None
    header = keyed_header(operator.key, operator.states)
    sizes = all_sizes[:, key_groups.start : key_groups.end + 1]
    each = (sizes + _STATE_ID_BYTES * (sizes > 0)).sum(axis=0)
    each += _STATE_ID_BYTES * (each > 0)
    ends = len(header) + np.cumsum(each)
    # Offset 0 stands for a key group without rows.
    offsets = np.where(each > 0, ends - each, 0)

    def content() -> Iterator[bytes]:
        waiting = bytearray(header)
        for number, key_group in enumerate(key_groups):
            if not each[number]:
                continue
            for state_id, state in enumerate(states):
                if not sizes[state_id, number]:
                    continue
                waiting += state_id.to_bytes(_STATE_ID_BYTES, "big")
                for piece in state.read(key_group):
                    waiting += piece
                    if len(waiting) >= _CHUNK:
                        yield bytes(waiting)
                        waiting.clear()
            waiting += _END
        yield bytes(waiting)

    # Flink ignores the name. No name is used twice, not even after an attempt that failed.
    name = f"{operator.operator_id.hex()}-{subtask}-{uuid.uuid4().hex}"
    files[name] = size = len(header) + int(each.sum())
    target.write_chunks(name, content)
    return m.KeyGroupsSavepointStateHandle(
        m.KeyGroupRangeOffsets(key_groups, offsets), m.RelativeFileStateHandle(name, size)
    )
