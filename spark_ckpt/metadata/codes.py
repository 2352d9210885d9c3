"""Type codes of state handles in a file; the counterpart of the decoder's tables.

Flink: constants of `MetadataV2V3SerializerBase`.
"""

from __future__ import annotations

from typing import NamedTuple

from spark_ckpt.metadata.handles import (
    ByteStreamStateHandle,
    ChangelogStateBackendHandle,
    ChangelogStateHandleStreamImpl,
    EmptySegmentFileStateHandle,
    FileMergingOperatorStreamStateHandle,
    FileStateHandle,
    IncrementalRemoteKeyedStateHandle,
    InMemoryChangelogStateHandle,
    KeyGroupsSavepointStateHandle,
    KeyGroupsStateHandle,
    OperatorStreamStateHandle,
    RelativeFileStateHandle,
    SegmentFileStateHandle,
)


class _Codes(NamedTuple):
    """Code of a class, and the newer code of handles with the optional field."""

    code: int
    newer: int = 0
    optional_field: str = ""


_CODES: dict[type, _Codes] = {
    ByteStreamStateHandle: _Codes(1),
    FileStateHandle: _Codes(2),
    RelativeFileStateHandle: _Codes(6),
    SegmentFileStateHandle: _Codes(15),
    EmptySegmentFileStateHandle: _Codes(16),
    KeyGroupsStateHandle: _Codes(3, 12, "state_handle_id"),
    KeyGroupsSavepointStateHandle: _Codes(7),
    IncrementalRemoteKeyedStateHandle: _Codes(5, 11, "state_handle_id"),
    ChangelogStateBackendHandle: _Codes(8, 14, "checkpoint_id"),
    InMemoryChangelogStateHandle: _Codes(9),
    ChangelogStateHandleStreamImpl: _Codes(10, 13, "storage_identifier"),
    OperatorStreamStateHandle: _Codes(4),
    FileMergingOperatorStreamStateHandle: _Codes(17),
}


def code_of_class(handle: type) -> int:
    """Code of a class of state handles, without their optional field."""
    return _CODES[handle].code


def code_of(part: object) -> int | None:
    """Code of a state handle; None for a part of the model without a code."""
    if (codes := _CODES.get(type(part))) is None:
        return None
    is_newer = codes.optional_field and getattr(part, codes.optional_field) is not None
    return codes.newer if is_newer else codes.code
