"""Encoder of `_metadata` files of versions 2 to 6; `decoder` describes the layout.

Flink's own writers: `SavepointV2Serializer` (version 2, up to 1.10), `MetadataV3Serializer` (1.11 to 1.15),
`MetadataV4Serializer` (1.16 to 1.20), `MetadataV5Serializer` (2.0), `MetadataV6Serializer` (2.1). Every release since
1.11 reads version 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.data_output import DataOutput
from spark_ckpt.metadata.decoder import (
    INPUT_CHANNEL,
    MAGIC_NUMBER,
    MASTER_STATE_MAGIC_NUMBER,
    RESULT_SUBPARTITION,
)
from spark_ckpt.metadata.errors import MetadataFormatError
from spark_ckpt.metadata.handle_encoder import write_keyed_state_handle, write_operator_state_handle, write_stream
from spark_ckpt.metadata.handles import OperatorStateHandle
from spark_ckpt.metadata.model import (
    CheckpointMetadata,
    InputChannelStateHandle,
    MasterState,
    OperatorState,
    OperatorSubtaskState,
    ResultSubpartitionStateHandle,
)
from spark_ckpt.metadata.properties import NULL_PROPERTIES, read
from spark_ckpt.metadata.versions import check_version

_V2_CHAIN_LENGTH = 1
_V2_DURATION = -1
_V2_LEGACY_STATES = 0
_FULLY_FINISHED = -1

_Channel = TypeVar("_Channel", InputChannelStateHandle, ResultSubpartitionStateHandle)


def encode(metadata: CheckpointMetadata, version: int) -> bytes:
    """Bytes of a whole file.

    Args:
        metadata: checkpoint to encode; its own `version` is ignored.
        version: 2 to 6. Version 2 cannot hold coordinator state, channel state, and finished operators or subtasks.
            Files have properties since version 4: the bytes in `metadata`, or a null object if these are empty. They
            have names and uids of operators since version 5.

    Raises:
        UnsupportedMetadataVersionError: another version.
        MetadataLossError: the version cannot hold some of the state.
        MetadataValueError: no file can hold a value, named by `field`.
    """
    check_version(metadata, version)
    out = DataOutput()
    out.raw(MAGIC_NUMBER.to_bytes(4, "big"))
    out.i32(version, "version")
    out.i64(metadata.checkpoint_id, "checkpoint_id")
    out.i32(len(metadata.master_states), "master_states")
    for index, master_state in enumerate(metadata.master_states):
        out.enter("master_states", index)
        _master_state(out, master_state)
        out.leave()
    out.i32(len(metadata.operator_states), "operator_states")
    write_operator_state = _WRITERS[version]
    for index, operator_state in enumerate(metadata.operator_states):
        out.enter("operator_states", index)
        write_operator_state(out, operator_state)
        out.leave()
    if version >= 4:
        _properties(out, metadata.properties or NULL_PROPERTIES)
    return out.getvalue()


def _master_state(out: DataOutput, state: MasterState) -> None:
    fields = DataOutput()
    fields.i32(state.version, "version")
    fields.utf(state.name, "name")
    fields.byte_array(state.payload, "payload")
    out.raw(MASTER_STATE_MAGIC_NUMBER.to_bytes(4, "big"))
    out.byte_array(fields.getvalue(), "length")


def _properties(out: DataOutput, properties: bytes) -> None:
    data = DataInput(properties, "<properties>")
    try:
        read(data)
    except MetadataFormatError as error:
        raise out.error("properties", f"{error.reason} ({error.field})") from None
    if data.remaining:
        raise out.error("properties", f"{data.remaining} trailing bytes")
    out.raw(properties)


def _operator_head(out: DataOutput, state: OperatorState) -> None:
    out.raw(state.operator_id)
    out.i32(state.parallelism, "parallelism")
    out.i32(state.max_parallelism, "max_parallelism")


def _operator_state_v2(out: DataOutput, state: OperatorState) -> None:
    _operator_head(out, state)
    out.i32(_V2_CHAIN_LENGTH, "chain_length")
    out.i32(len(state.subtask_states), "subtask_states")
    for position, (index, subtask) in enumerate(state.subtask_states.items()):
        out.enter("subtask_states", position)
        out.i32(index, "index")
        out.i64(_V2_DURATION, "duration")
        out.i32(_V2_LEGACY_STATES, "legacy_states")
        _subtask_state(out, subtask)
        out.leave()


def _operator_state_v3(out: DataOutput, state: OperatorState, *, channel_types: bool = False) -> None:
    _operator_head(out, state)
    write_stream(out, state.coordinator_state, "coordinator_state")
    if state.is_fully_finished:
        out.i32(_FULLY_FINISHED, "subtask_states")
        return
    out.i32(len(state.subtask_states), "subtask_states")
    for position, (index, subtask) in enumerate(state.subtask_states.items()):
        out.enter("subtask_states", position)
        if subtask.is_finished:
            # Negative to differ from an index; offset by one so that subtask 0 is negative, too.
            out.i32(-(index + 1), "index")
        else:
            out.i32(index, "index")
            _subtask_state(out, subtask)
            types = (INPUT_CHANNEL, RESULT_SUBPARTITION) if channel_types else (None, None)
            _channels(out, subtask.input_channel_state, "input_channel_state", _input_channel, types[0])
            results = subtask.result_subpartition_state
            _channels(out, results, "result_subpartition_state", _result_subpartition, types[1])
        out.leave()


def _operator_state_v5(out: DataOutput, state: OperatorState, *, channel_types: bool = False) -> None:
    out.utf(state.name or "", "name")
    out.utf(state.uid or "", "uid")
    _operator_state_v3(out, state, channel_types=channel_types)


def _operator_state_v6(out: DataOutput, state: OperatorState) -> None:
    _operator_state_v5(out, state, channel_types=True)


_WRITERS: Mapping[int, Callable[[DataOutput, OperatorState], None]] = {
    2: _operator_state_v2,
    3: _operator_state_v3,
    4: _operator_state_v3,
    5: _operator_state_v5,
    6: _operator_state_v6,
}


def _subtask_state(out: DataOutput, state: OperatorSubtaskState) -> None:
    _optional_operator_state_handle(out, state.managed_operator_state, "managed_operator_state")
    _optional_operator_state_handle(out, state.raw_operator_state, "raw_operator_state")
    write_keyed_state_handle(out, state.managed_keyed_state, "managed_keyed_state")
    write_keyed_state_handle(out, state.raw_keyed_state, "raw_keyed_state")


def _optional_operator_state_handle(out: DataOutput, handle: OperatorStateHandle | None, field: str) -> None:
    if handle is None:
        out.i32(0, field)
    else:
        out.i32(1, field)
        write_operator_state_handle(out, handle, field)


def _channels(
    out: DataOutput,
    handles: tuple[_Channel, ...],
    field: str,
    write_info: Callable[[DataOutput, _Channel], None],
    channel_type: int | None,
) -> None:
    out.i32(len(handles), field)
    for index, handle in enumerate(handles):
        out.enter(field, index)
        if channel_type is not None:
            out.i8(channel_type, "type")
        out.i32(handle.subtask_index, "subtask_index")
        write_info(out, handle)
        out.i64_sequence(handle.offsets, "offsets")
        out.i64(handle.state_size, "state_size")
        write_stream(out, handle.delegate, "delegate")
        out.leave()


def _input_channel(out: DataOutput, handle: InputChannelStateHandle) -> None:
    out.i32(handle.info.gate_idx, "gate_idx")
    out.i32(handle.info.input_channel_idx, "input_channel_idx")


def _result_subpartition(out: DataOutput, handle: ResultSubpartitionStateHandle) -> None:
    out.i32(handle.info.partition_idx, "partition_idx")
    out.i32(handle.info.sub_partition_idx, "sub_partition_idx")
