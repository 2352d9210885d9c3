"""Decoder of `_metadata` files of versions 2 to 6.

    i32             magic number 0x4960672D
    i32             version
    i64             checkpoint id
    i32, then each  master states
    i32, then each  operator states
    properties      version 4 and later: one serialised Java object

Flink: `Checkpoints.loadCheckpointMetadata`, `MetadataV2V3SerializerBase` and `MetadataV2Serializer` to
`MetadataV6Serializer`. Like Flink, the decoder ignores bytes after the last field.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from spark_ckpt.metadata import properties
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.errors import MetadataValueError, UnsupportedMetadataVersionError
from spark_ckpt.metadata.handle_decoder import (
    read_keyed_state_handle,
    read_operator_state_handle,
    read_optional_stream,
    read_stream,
)
from spark_ckpt.metadata.handles import ByteStreamStateHandle, KeyedStateHandle, OperatorStateHandle
from spark_ckpt.metadata.model import (
    OPERATOR_ID_BYTES,
    CheckpointMetadata,
    FinishedOperatorSubtaskState,
    FullyFinishedOperatorState,
    InputChannelInfo,
    InputChannelStateHandle,
    MasterState,
    OperatorState,
    OperatorSubtaskState,
    ResultSubpartitionInfo,
    ResultSubpartitionStateHandle,
)

MAGIC_NUMBER = 0x4960672D
"""First four bytes of every file (`Checkpoints.HEADER_MAGIC_NUMBER`)."""

MASTER_STATE_MAGIC_NUMBER = 0xC96B1696
"""First four bytes of every master state (`MetadataV2V3SerializerBase.MASTER_STATE_MAGIC_NUMBER`)."""

INPUT_CHANNEL, RESULT_SUBPARTITION = 1, 2
"""Types of handles of channel state (`ChannelStateHandleSerializerV2`)."""

_MERGED = 2
"""Difference to the type of a handle whose offsets are merged."""

_MIN_MASTER_STATE = 4 + 4 + 4 + 2 + 4
_MIN_CHANNEL = 4 + 8 + 4 + 8 + 1

_Channel = TypeVar("_Channel")


class _Layout(NamedTuple):
    """Differences between the versions of the file."""

    coordinator_and_channels: bool
    """Version 3 and later: coordinator state, finished operators and subtasks, channel state."""
    properties: bool
    """Version 4 and later: a serialised Java object at the end."""
    names: bool = False
    """Version 5 and later: name and uid before the id of an operator."""
    channel_types: bool = False
    """Version 6: each handle of channel state begins with its type."""

    @property
    def min_operator(self) -> int:
        names = 2 + 2 if self.names else 0
        return names + OPERATOR_ID_BYTES + 4 + 4 + (1 if self.coordinator_and_channels else 4) + 4

    @property
    def min_subtask(self) -> int:
        # Since version 3, a finished subtask is only an index.
        return 4 if self.coordinator_and_channels else 4 + 8 + 4 + 4 + 4 + 1 + 1


# Shared instances: there may be many such subtasks.
_FINISHED = FinishedOperatorSubtaskState()
_WITHOUT_STATE = OperatorSubtaskState()

_LAYOUTS = {
    2: _Layout(coordinator_and_channels=False, properties=False),
    3: _Layout(coordinator_and_channels=True, properties=False),
    4: _Layout(coordinator_and_channels=True, properties=True),
    5: _Layout(coordinator_and_channels=True, properties=True, names=True),
    6: _Layout(coordinator_and_channels=True, properties=True, names=True, channel_types=True),
}


def decode(content: bytes, path: str) -> CheckpointMetadata:
    """Decode a whole file.

    Args:
        content: bytes of the file.
        path: name of the file, for errors.

    Raises:
        UnsupportedMetadataVersionError: the version is not 2 to 6.
        MetadataFormatError: malformed for its version.
    """
    data = DataInput(content, path)
    try:
        return _checkpoint_metadata(data, path)
    except MetadataValueError as invalid:
        # The model rejects what the constructors of Flink's classes reject. The position is after the record by then.
        data.fail(invalid.field, invalid.reason)


def has_magic_number(content: bytes) -> bool:
    """True if bytes begin like a `_metadata` file."""
    return content[:4] == MAGIC_NUMBER.to_bytes(4, "big")


def _checkpoint_metadata(data: DataInput, path: str) -> CheckpointMetadata:
    if not data.remaining:
        data.fail("magic_number", "not checkpoint metadata: the file is empty")
    magic_number = data.i32("magic_number") & 0xFFFFFFFF
    if magic_number != MAGIC_NUMBER:
        reason = f"not checkpoint metadata: it starts with {magic_number:08x} instead of {MAGIC_NUMBER:08x}"
        data.fail("magic_number", reason, 0)
    version = data.i32("version")
    if (layout := _LAYOUTS.get(version)) is None:
        raise UnsupportedMetadataVersionError(path, version)
    at = data.position
    checkpoint_id = data.i64("checkpoint_id")
    if checkpoint_id < 0:
        data.fail("checkpoint_id", f"{checkpoint_id} is negative", at)
    return CheckpointMetadata(
        checkpoint_id,
        tuple(_master_state(data) for _ in data.each("master_states", _MIN_MASTER_STATE)),
        tuple(_operator_state(data, layout) for _ in data.each("operator_states", layout.min_operator)),
        version,
        properties.read(data) if layout.properties else b"",
    )


def _master_state(data: DataInput) -> MasterState:
    at = data.position
    magic_number = data.i32("magic_number") & 0xFFFFFFFF
    if magic_number != MASTER_STATE_MAGIC_NUMBER:
        data.fail("magic_number", f"{magic_number:08x} instead of {MASTER_STATE_MAGIC_NUMBER:08x}", at)
    with data.limited(data.count("length", 1), "length"):
        version = data.i32("version")
        return MasterState(data.utf("name"), data.byte_array("payload"), version)


def _operator_state(data: DataInput, layout: _Layout) -> OperatorState:
    # An empty text stands for none.
    name = data.utf("name") or None if layout.names else None
    uid = data.utf("uid") or None if layout.names else None
    operator_id = data.raw(OPERATOR_ID_BYTES, "operator_id")
    parallelism = data.i32("parallelism")
    max_parallelism = data.i32("max_parallelism")
    coordinator_state = None
    if layout.coordinator_and_channels:
        coordinator_state = _coordinator_state(data)
    else:
        data.i32("chain_length")  # written as 1, never read
    fully_finished = layout.coordinator_and_channels and _is_negative(data)
    subtasks = dict(
        _subtask_state(data, parallelism, layout)
        for _ in data.each("subtask_states", layout.min_subtask, negative_is_none=True)
    )
    if not fully_finished:
        return OperatorState(operator_id, parallelism, max_parallelism, subtasks, coordinator_state, name, uid)
    if coordinator_state is not None:
        data.fail("coordinator_state", "a fully finished operator has no coordinator state")
    return FullyFinishedOperatorState(operator_id, parallelism, max_parallelism, name=name, uid=uid)


def _is_negative(data: DataInput) -> bool:
    at = data.position
    number = data.i32("subtask_states")
    data.position = at
    return number < 0


def _coordinator_state(data: DataInput) -> ByteStreamStateHandle | None:
    at = data.position
    handle = read_optional_stream(data, "coordinator_state")
    if handle is not None and not isinstance(handle, ByteStreamStateHandle):
        data.fail("coordinator_state", f"a {type(handle).__name__}; only inline bytes can be coordinator state", at)
    return handle


def _subtask_state(data: DataInput, parallelism: int, layout: _Layout) -> tuple[int, OperatorSubtaskState]:
    at = data.position
    stored_index = data.i32("index")
    finished = stored_index < 0 and layout.coordinator_and_channels
    index = -(stored_index + 1) if finished else stored_index
    if not 0 <= index < parallelism:
        data.fail("index", f"no subtask {index} at parallelism {parallelism}", at)
    return index, _FINISHED if finished else _running_subtask_state(data, layout)


def _running_subtask_state(data: DataInput, layout: _Layout) -> OperatorSubtaskState:
    if not layout.coordinator_and_channels:
        data.i64("duration")  # written as -1, never read
        at = data.position
        if data.i32("legacy_states") > 0:
            data.fail("legacy_states", "state of Flink releases before 1.3 is not supported", at)
    managed_operator_state = _optional_operator_state_handle(data, "managed_operator_state")
    raw_operator_state = _optional_operator_state_handle(data, "raw_operator_state")
    managed_keyed_state = _keyed_state_handle(data, "managed_keyed_state")
    raw_keyed_state = _keyed_state_handle(data, "raw_keyed_state")
    input_channel_state: tuple[InputChannelStateHandle, ...] = ()
    result_subpartition_state: tuple[ResultSubpartitionStateHandle, ...] = ()
    if layout.coordinator_and_channels:
        types = (INPUT_CHANNEL, RESULT_SUBPARTITION) if layout.channel_types else (None, None)
        input_channel_state = _channels(data, "input_channel_state", _input_channel, types[0])
        result_subpartition_state = _channels(data, "result_subpartition_state", _result_subpartition, types[1])
    states = (managed_operator_state, raw_operator_state, managed_keyed_state, raw_keyed_state)
    if not (any(states) or input_channel_state or result_subpartition_state):
        return _WITHOUT_STATE
    return OperatorSubtaskState(*states, input_channel_state, result_subpartition_state)


def _optional_operator_state_handle(data: DataInput, field: str) -> OperatorStateHandle | None:
    # Unlike keyed state, operator state has a flag before the code; any value but 0 announces a handle.
    if data.i32(field) == 0:
        return None
    data.enter(field)
    handle = read_operator_state_handle(data, "code")
    data.leave()
    return handle


def _keyed_state_handle(data: DataInput, field: str) -> KeyedStateHandle | None:
    data.enter(field)
    handle = read_keyed_state_handle(data, "code")
    data.leave()
    return handle


def _channels(
    data: DataInput, field: str, read: Callable[[DataInput], _Channel], expected: int | None
) -> tuple[_Channel, ...]:
    handles = []
    for _ in data.each(field, _MIN_CHANNEL, negative_is_none=True):
        if expected is not None:
            _channel_type(data, expected)
        handles.append(read(data))
    return tuple(handles)


def _channel_type(data: DataInput, expected: int) -> None:
    at = data.position
    if (found := data.u8("type")) == expected + _MERGED:
        data.fail("type", f"merged channel state (type {found}) is not supported; take an aligned checkpoint", at)
    if found != expected:
        data.fail("type", f"channel state of type {found} instead of {expected}", at)


def _input_channel(data: DataInput) -> InputChannelStateHandle:
    return InputChannelStateHandle(
        data.i32("subtask_index"),
        InputChannelInfo(data.i32("gate_idx"), data.i32("input_channel_idx")),
        data.i64_tuple("offsets"),
        data.i64("state_size"),
        read_stream(data, "delegate"),
    )


def _result_subpartition(data: DataInput) -> ResultSubpartitionStateHandle:
    return ResultSubpartitionStateHandle(
        data.i32("subtask_index"),
        ResultSubpartitionInfo(data.i32("partition_idx"), data.i32("sub_partition_idx")),
        data.i64_tuple("offsets"),
        data.i64("state_size"),
        read_stream(data, "delegate"),
    )
