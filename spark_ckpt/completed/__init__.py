"""Log of completed checkpoints: its records, their owner, and the fence between drivers."""

from __future__ import annotations

from spark_ckpt.completed.base import LogIDCounter
from spark_ckpt.completed.filesystem import FilesystemCompletedCheckpointStore
from spark_ckpt.completed.record_files import LOG, RecordFiles, read_settled
from spark_ckpt.completed.records import (
    OPERATION,
    CheckpointRecord,
    ClaimRecord,
    MetadataReference,
    OperatorSummary,
    Owner,
    Record,
    decode_record,
    encode_record,
    operation_of,
)
from spark_ckpt.completed.retention import select_subsumed
from spark_ckpt.completed.standalone import Scan, StandaloneCompletedCheckpointStore
from spark_ckpt.completed.store import CheckpointIDCounter, CompletedCheckpointStore, JobStatus
from spark_ckpt.completed.void_records import without_void_records

__all__ = [
    "LOG",
    "OPERATION",
    "CheckpointIDCounter",
    "CheckpointRecord",
    "ClaimRecord",
    "CompletedCheckpointStore",
    "FilesystemCompletedCheckpointStore",
    "JobStatus",
    "LogIDCounter",
    "MetadataReference",
    "OperatorSummary",
    "Owner",
    "Record",
    "RecordFiles",
    "Scan",
    "StandaloneCompletedCheckpointStore",
    "decode_record",
    "encode_record",
    "operation_of",
    "read_settled",
    "select_subsumed",
    "without_void_records",
]
