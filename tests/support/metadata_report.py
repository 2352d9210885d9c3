"""Our metadata model in the report format of the Flink check."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, TypeAlias

from spark_ckpt import metadata as m
from tests.support.flink_path import as_flink_path, as_flink_uuid

Report: TypeAlias = dict[str, Any]


def report(metadata: m.CheckpointMetadata) -> Report:
    """Everything in the file except the properties of version 4. State handle ids absent from the file are left out."""
    return {
        "checkpointId": metadata.checkpoint_id,
        "masterStates": [
            {"name": state.name, "version": state.version, "payload": _bytes(state.payload)}
            for state in metadata.master_states
        ],
        "operatorStates": [_operator_state(state) for state in metadata.operator_states],
    }


def as_flink_size(handle: m.IncrementalRemoteKeyedStateHandle) -> int:
    """Checkpointed size. For an unknown size Flink computes the sum of all sizes, which may overflow."""
    if handle.checkpointed_size in (None, -1):
        return (handle.state_size + 2**63) % 2**64 - 2**63
    return handle.checkpointed_size


def _operator_state(state: m.OperatorState) -> Report:
    return {
        "operatorId": state.operator_id.hex(),
        "parallelism": state.parallelism,
        "maxParallelism": state.max_parallelism,
        "fullyFinished": state.is_fully_finished,
        "coordinatorState": _stream(state.coordinator_state),
        "subtasks": [
            {
                "index": index,
                "finished": subtask.is_finished,
                "managedOperatorState": _operator(subtask.managed_operator_state),
                "rawOperatorState": _operator(subtask.raw_operator_state),
                "managedKeyedState": _keyed(subtask.managed_keyed_state),
                "rawKeyedState": _keyed(subtask.raw_keyed_state),
                "inputChannelState": [_channel(handle) for handle in subtask.input_channel_state],
                "resultSubpartitionState": [_channel(handle) for handle in subtask.result_subpartition_state],
            }
            for index, subtask in sorted(state.subtask_states.items())
        ],
    }


def _operator(handle: m.OperatorStateHandle | None) -> list[Report]:
    if handle is None:
        return []
    told: Report = {
        "type": type(handle).__name__,
        "states": {
            name: {"distributionMode": info.distribution_mode.name, "offsets": list(info.offsets)}
            for name, info in handle.state_name_to_partition_offsets.items()
        },
        "stream": _stream(handle.delegate_state_handle),
    }
    if isinstance(handle, m.FileMergingOperatorStreamStateHandle):
        told |= {
            "taskOwnedDir": as_flink_path(handle.task_owned_dir),
            "sharedDir": as_flink_path(handle.shared_dir),
        }
        if handle.is_empty:
            told["type"] = "EmptyFileMergingOperatorStreamStateHandle"
    return [told]


def _channel(handle: m.InputChannelStateHandle | m.ResultSubpartitionStateHandle) -> Report:
    told: Report = {
        "type": type(handle).__name__,
        "subtaskIndex": handle.subtask_index,
        "offsets": list(handle.offsets),
        "stateSize": handle.state_size,
        "stream": _stream(handle.delegate),
    }
    if isinstance(handle, m.InputChannelStateHandle):
        return told | {"gateIdx": handle.info.gate_idx, "inputChannelIdx": handle.info.input_channel_idx}
    return told | {"partitionIdx": handle.info.partition_idx, "subPartitionIdx": handle.info.sub_partition_idx}


def _keyed(handle: m.KeyedStateHandle | None) -> list[Report]:
    return [] if handle is None else [_keyed_one(handle)]


def _keyed_one(handle: m.KeyedStateHandle) -> Report:
    told: Report = {"type": type(handle).__name__, "keyGroupRange": _range(handle.key_group_range)}
    if not isinstance(handle, m.KeyGroupsSavepointStateHandle) and handle.state_handle_id is not None:
        told["stateHandleId"] = handle.state_handle_id
    if isinstance(handle, (m.KeyGroupsStateHandle, m.KeyGroupsSavepointStateHandle)):
        return told | {
            "offsets": handle.group_range_offsets.offsets.tolist(),
            "stream": _stream(handle.delegate_state_handle),
        }
    if isinstance(handle, m.IncrementalRemoteKeyedStateHandle):
        return told | {
            "backendIdentifier": as_flink_uuid(handle.backend_identifier),
            "checkpointId": handle.checkpoint_id,
            "checkpointedSize": as_flink_size(handle),
            "metaStream": _stream(handle.meta_data_state_handle),
            "shared": _files(handle.shared_state),
            "private": _files(handle.private_state),
        }
    if isinstance(handle, m.ChangelogStateBackendHandle):
        absent = handle.checkpoint_id is None
        return told | {
            "type": "ChangelogStateBackendHandleImpl",
            "checkpointId": handle.materialization_id if absent else handle.checkpoint_id,
            "materializationId": handle.materialization_id,
            "checkpointedSize": handle.checkpointed_size,
            "materialized": [found for part in handle.materialized_state_handles for found in _keyed(part)],
            "nonMaterialized": [_keyed_one(part) for part in handle.non_materialized_state_handles],
        }
    if isinstance(handle, m.InMemoryChangelogStateHandle):
        changes = [{"keyGroup": change.key_group, "change": _bytes(change.change)} for change in handle.changes]
        return told | {"from": handle.from_, "to": handle.to, "changes": changes}
    return told | {
        "stateSize": handle.state_size,
        "checkpointedSize": handle.checkpointed_size,
        "storageIdentifier": "filesystem" if handle.storage_identifier is None else handle.storage_identifier,
        "handles": [{"offset": part.offset, "stream": _stream(part.handle)} for part in handle.handles_and_offsets],
    }


def _stream(handle: m.StreamStateHandle | None) -> Report | None:
    if handle is None:
        return None
    if isinstance(handle, m.KeyGroupsStateHandle):
        return _keyed_one(handle)
    told: Report = {"type": type(handle).__name__}
    if isinstance(handle, m.ByteStreamStateHandle):
        return told | {"handleName": handle.handle_name, "bytes": _bytes(handle.data)}
    if isinstance(handle, m.FileStateHandle):
        return told | {"path": as_flink_path(handle.file_path), "size": handle.state_size}
    if isinstance(handle, m.RelativeFileStateHandle):
        return told | {"relativePath": handle.relative_path, "size": handle.state_size}
    if isinstance(handle, m.SegmentFileStateHandle):
        return told | {
            "path": as_flink_path(handle.file_path),
            "startPos": handle.start_pos,
            "size": handle.state_size,
            "scope": handle.scope.name,
            "logicalFileId": handle.logical_file_id,
        }
    return told


def _files(files: Iterable[m.HandleAndLocalPath]) -> list[Report]:
    return [{"localPath": file.local_path, "stream": _stream(file.handle)} for file in files]


def _range(key_group_range: m.KeyGroupRange) -> Report:
    if not len(key_group_range):
        # Flink has a single empty range, whatever its start in the file.
        return {"start": 0, "end": -1, "count": 0}
    return {"start": key_group_range.start, "end": key_group_range.end, "count": len(key_group_range)}


def _bytes(value: bytes) -> Report:
    if len(value) <= 64:
        return {"length": len(value), "hex": value.hex()}
    return {"length": len(value), "sha256": hashlib.sha256(value).hexdigest()}
