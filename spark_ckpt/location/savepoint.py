"""Layout of a savepoint: a checkpoint location reduced to one checkpoint.

A savepoint has these files:

    _metadata            of the checkpoint
    savepoint.json       its record; written last, so a savepoint without it is incomplete
    ckpt/shared/         the state files
    metadata, offsets/, commits/, sources/, state/       Spark's files

Paths of its `_metadata` are relative to the savepoint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from spark_ckpt.checkpoint.layout import CKPT
from spark_ckpt.completed import CheckpointRecord, decode_record
from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.metadata import CheckpointMetadata, RelativeFileStateHandle
from spark_ckpt.metadata.traversal import with_parts
from spark_ckpt.storage import Storage

SAVEPOINT_RECORD = "savepoint.json"
"""The record of the checkpoint in a savepoint."""


_BRING_BACK = "Recover it from a copy of the savepoint, or use another savepoint"


_FROM_CHECKPOINT, _FROM_SAVEPOINT = "../", f"{CKPT}/"


def is_savepoint(storage: Storage) -> bool:
    """True for a complete savepoint.

    Raises:
        StorageError: the storage does not answer.
    """
    return storage.exists(SAVEPOINT_RECORD)


def read_savepoint_record(storage: Storage) -> CheckpointRecord:
    """The record of a savepoint.

    Raises:
        DamagedRecordError: it is damaged.
        StorageError: it cannot be read.
    """
    path = storage.describe(SAVEPOINT_RECORD)
    record = decode_record(storage.read(SAVEPOINT_RECORD), path, way_out=_BRING_BACK)
    if not isinstance(record, CheckpointRecord):
        raise DamagedRecordError(path, "it is a claim, not a checkpoint", _BRING_BACK)
    return record


def with_savepoint_paths(metadata: CheckpointMetadata) -> CheckpointMetadata:
    """The `_metadata` of a location, with paths as in a savepoint."""
    return with_parts(metadata, _on_paths(_FROM_CHECKPOINT, _FROM_SAVEPOINT))


def with_location_paths(metadata: CheckpointMetadata) -> CheckpointMetadata:
    """The `_metadata` of a savepoint, with paths as in `ckpt/chk-<id>` of a location."""
    return with_parts(metadata, _on_paths(_FROM_SAVEPOINT, _FROM_CHECKPOINT))


def _on_paths(old: str, new: str) -> Callable[[Any], Any]:
    def change(part: Any) -> Any:  # noqa: ANN401
        if isinstance(part, RelativeFileStateHandle) and part.relative_path.startswith(old):
            return replace(part, relative_path=new + part.relative_path.removeprefix(old))
        return part

    return change
