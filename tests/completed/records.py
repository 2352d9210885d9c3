"""Sample records and owners."""

from __future__ import annotations

import json

from spark_ckpt.completed import (
    CheckpointRecord,
    CompletedCheckpointStore,
    MetadataReference,
    OperatorSummary,
    Owner,
    Record,
    encode_record,
)
from spark_ckpt.completed.records import _digest


def owner(name: str = "a") -> Owner:
    return Owner(f"host-{name}", 100, f"token-{name}", "query", f"run-{name}")


def record(checkpoint_id: int, version: int, generation: int = 1, attempt: str = "attempt") -> CheckpointRecord:
    return CheckpointRecord(
        id=checkpoint_id,
        generation=generation,
        owner=owner(),
        attempt=attempt,
        batch_id=version - 1,
        version=version,
        timestamp_ms=1_700_000_000_000,
        duration_ms=12,
        state_bytes=1000,
        new_bytes=100,
        rows=10,
        operators=(OperatorSummary(0, "stateStoreSave", "default", 4, 10, 1000),),
        metadata=MetadataReference(f"chk-{checkpoint_id}/_metadata", 100, "ab" * 32),
    )


def add(store: CompletedCheckpointStore, version: int) -> CheckpointRecord:
    return store.add(lambda checkpoint_id, attempt: record(checkpoint_id, version, store.generation, attempt))


def changed(original: Record, **fields: object) -> bytes:
    """Encoding of a record with changed or additional fields and a valid digest, as another release writes it."""
    content = json.loads(encode_record(original)) | fields
    del content["digest"]
    return json.dumps(content | {"digest": _digest(content)}).encode()
