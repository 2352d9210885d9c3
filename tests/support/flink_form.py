"""A checkpoint as Flink would load it and write it again.

The differences listed here are the only ones allowed: Flink normalises paths and UUIDs, has a single empty range,
writes the newest code of each class, and invents the fields that the newest code has and older ones lack.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from spark_ckpt import metadata as m
from spark_ckpt.metadata.traversal import with_parts
from tests.support.flink_path import as_flink_path, as_flink_uuid
from tests.support.metadata_report import as_flink_size

_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
EMPTY_RANGE = m.KeyGroupRange(0, -1)


class _Invented(str):
    """A state handle id invented by Flink: equal to any UUID."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and _UUID.fullmatch(other) is not None

    def __ne__(self, other: object) -> bool:
        return not self == other


INVENTED = _Invented("invented")


def as_flink_writes(metadata: m.CheckpointMetadata, version: int) -> m.CheckpointMetadata:
    """The checkpoint as Flink 1.20 writes it in format `version` after loading it."""
    return replace(with_parts(as_flink_loads(metadata), _with_newest_code), version=version)


def as_flink_loads(metadata: m.CheckpointMetadata) -> m.CheckpointMetadata:
    """The checkpoint in Flink's memory. A release that wrote the file's codes itself has nothing to upgrade."""
    return with_parts(metadata, _loaded)


def files_by_name(metadata: m.CheckpointMetadata) -> m.CheckpointMetadata:
    """Incremental handles as in Flink 1.10: maps of files, which keep the last file per name and no order."""
    return with_parts(metadata, _with_files_by_name)


def _loaded(part: Any) -> Any:
    if isinstance(part, m.KeyGroupRange):
        return part if len(part) else EMPTY_RANGE
    if isinstance(part, (m.FileStateHandle, m.SegmentFileStateHandle)):
        return replace(part, file_path=as_flink_path(part.file_path))
    if isinstance(part, m.FileMergingOperatorStreamStateHandle):
        directories = (as_flink_path(part.task_owned_dir), as_flink_path(part.shared_dir))
        return replace(part, task_owned_dir=directories[0], shared_dir=directories[1])
    if isinstance(part, m.IncrementalRemoteKeyedStateHandle):
        return replace(part, backend_identifier=as_flink_uuid(part.backend_identifier))
    return part


def _with_files_by_name(part: Any) -> Any:
    if not isinstance(part, m.IncrementalRemoteKeyedStateHandle):
        return part
    shared, private = (
        tuple(file for _, file in sorted({file.local_path: file for file in files}.items()))
        for files in (part.shared_state, part.private_state)
    )
    return replace(part, shared_state=shared, private_state=private)


def _with_newest_code(part: Any) -> Any:
    if isinstance(part, m.IncrementalRemoteKeyedStateHandle):
        state_handle_id = INVENTED if part.state_handle_id is None else part.state_handle_id
        return replace(part, checkpointed_size=as_flink_size(part), state_handle_id=state_handle_id)
    if isinstance(part, m.ChangelogStateHandleStreamImpl):
        return replace(part, storage_identifier="filesystem") if part.storage_identifier is None else part
    if isinstance(part, m.ChangelogStateBackendHandle):
        materialized = tuple(_keyed(handle) for handle in part.materialized_state_handles if handle is not None)
        checkpoint_id = part.materialization_id if part.checkpoint_id is None else part.checkpoint_id
        return replace(part, materialized_state_handles=materialized, checkpoint_id=checkpoint_id)
    if isinstance(part, m.OperatorSubtaskState) and not part.is_finished:
        managed, raw = (_keyed(handle) for handle in (part.managed_keyed_state, part.raw_keyed_state))
        return replace(part, managed_keyed_state=managed, raw_keyed_state=raw)
    return part


def _keyed(handle: Any) -> Any:
    # The class also represents a stream's handle, which never has an id.
    if isinstance(handle, m.KeyGroupsStateHandle) and handle.state_handle_id is None:
        return replace(handle, state_handle_id=INVENTED)
    return handle
