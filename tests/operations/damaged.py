"""Damage to the newest checkpoint of a query."""

from __future__ import annotations

from spark_ckpt.checkpoint.load import CheckpointState, read_checkpoint
from spark_ckpt.completed import CheckpointRecord, RecordFiles
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.storage import LocalStorage

LEFT = SubtaskKey(1, "left", 0)


def state_of(storage: LocalStorage, checkpoint_id: int | None = None) -> CheckpointState:
    """State of a checkpoint, by default the newest."""
    records = RecordFiles(storage).read_all()
    record = records[checkpoint_id or max(records)]
    assert isinstance(record, CheckpointRecord)
    return read_checkpoint(storage, record)


def newest_entry(storage: LocalStorage, key: SubtaskKey = LEFT) -> SegmentRef:
    """Newest delta of a subtask, used only by the newest checkpoint."""
    return state_of(storage).table[key.of_operator][key.partition].entries[-1]


def change(storage: LocalStorage, name: str, at: int, data: bytes) -> None:
    """Overwrites bytes in the middle of a file."""
    content = bytearray(storage.read(name))
    content[at : at + len(data)] = data
    storage.write_atomic(name, bytes(content))
