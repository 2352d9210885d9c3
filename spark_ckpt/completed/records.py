"""The records of the completed-checkpoint log, and their text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

from spark_ckpt.errors import LEAVE_OUT_RECORD, CorruptRecordError

FORMAT = 1
"""Format of the records that this release writes, and the only one it reads."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Owner:
    """Who wrote a record.

    Args:
        host: name of the machine.
        pid: process id of the driver's JVM; of the process itself where there is none.
        process_token: unique for each life of the process that writes.
        query_id: Spark's id of the query, the same over its restarts.
        run_id: Spark's id of this run of the query.
    """

    host: str
    pid: int
    process_token: str
    query_id: str
    run_id: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} (run {self.run_id})"


@dataclass(frozen=True, slots=True)
class OperatorSummary:
    """What a listing says of one store of one operator.

    Args:
        operator_id: Spark's number of the operator in the query.
        name: Spark's short name of it.
        store: name of the store.
        parallelism: number of subtasks.
        rows: rows of all subtasks together.
        state_bytes: bytes of the segments that a restore reads.
    """

    operator_id: int
    name: str
    store: str
    parallelism: int
    rows: int
    state_bytes: int


@dataclass(frozen=True, slots=True)
class MetadataReference:
    """The `_metadata` file of a checkpoint.

    Args:
        path: relative to the `ckpt` directory.
        size: bytes.
        sha256: digest of the bytes, hexadecimal.
    """

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """A driver that takes over. All later records are of its generation, until the next claim.

    Args:
        id: position in the log.
        generation: higher than that of every earlier record.
        owner: the driver.
        attempt: UUID of the try to write this record.
        timestamp_ms: when, in milliseconds since 1970 UTC.
    """

    id: int
    generation: int
    owner: Owner
    attempt: str
    timestamp_ms: int

    kind = "claim"


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """A completed checkpoint.

    Args:
        id: number of the checkpoint and position in the log.
        generation: of the driver that completed it.
        owner: that driver.
        attempt: UUID of the try to write this record.
        batch_id: Spark's micro-batch.
        version: version of the state that the batch leaves.
        timestamp_ms: when it was complete, in milliseconds since 1970 UTC.
        duration_ms: from the trigger to then.
        state_bytes: bytes of state that the checkpoint refers to.
        new_bytes: bytes that were written for it, `_metadata` included.
        rows: rows of all stores together.
        operators: one summary for each store of each operator.
        metadata: its `_metadata`.
    """

    id: int
    generation: int
    owner: Owner
    attempt: str
    batch_id: int
    version: int
    timestamp_ms: int
    duration_ms: int
    state_bytes: int
    new_bytes: int
    rows: int
    operators: tuple[OperatorSummary, ...]
    metadata: MetadataReference

    kind = "checkpoint"


Record: TypeAlias = ClaimRecord | CheckpointRecord
"""A record of the log."""


def encode_record(record: Record) -> bytes:
    """The file of a record: JSON for people, with a digest of itself at the end."""
    fields = {"format": FORMAT, "kind": record.kind, **asdict(record)}
    fields["digest"] = _digest(fields)
    return json.dumps(fields, indent=1, ensure_ascii=False).encode() + b"\n"


def decode_record(data: bytes, path: str, record_id: int | None = None, *, way_out: str = LEAVE_OUT_RECORD) -> Record:
    """The record in the bytes of a file.

    Args:
        data: the bytes.
        path: name of the file, for the error.
        record_id: the id that its name says, if it says one.
        way_out: what to do if it is damaged, for the error.

    Raises:
        CorruptRecordError: the bytes are not what was written, or of a format that this release does not know.
    """
    corrupt = partial(CorruptRecordError, path, way_out=way_out)
    try:
        fields = json.loads(data)
    except ValueError as e:
        raise corrupt(f"no JSON ({e})") from None
    if not isinstance(fields, dict):
        raise corrupt("no JSON object")
    if fields.get("format") != FORMAT:
        raise corrupt(f"format {fields.get('format')!r}; this release reads format {FORMAT}")
    digest = fields.pop("digest", None)
    if digest != _digest(fields):
        raise corrupt("its digest does not fit its contents")
    if record_id is not None and fields.get("id") != record_id:
        raise corrupt(f"it is the record of id {fields.get('id')!r}")
    try:
        return _record(fields)
    except (KeyError, TypeError, ValueError) as e:
        raise corrupt(f"a field is missing or of the wrong kind ({e})") from None


def _digest(fields: Mapping[str, Any]) -> str:
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _record(fields: Mapping[str, Any]) -> Record:
    record_id, generation, attempt = int(fields["id"]), int(fields["generation"]), str(fields["attempt"])
    owner, timestamp_ms = _make(Owner, fields["owner"]), int(fields["timestamp_ms"])
    if fields["kind"] == ClaimRecord.kind:
        return ClaimRecord(record_id, generation, owner, attempt, timestamp_ms)
    if fields["kind"] != CheckpointRecord.kind:
        raise ValueError(f"kind {fields['kind']!r}")
    return CheckpointRecord(
        id=record_id,
        generation=generation,
        owner=owner,
        attempt=attempt,
        batch_id=int(fields["batch_id"]),
        version=int(fields["version"]),
        timestamp_ms=timestamp_ms,
        duration_ms=int(fields["duration_ms"]),
        state_bytes=int(fields["state_bytes"]),
        new_bytes=int(fields["new_bytes"]),
        rows=int(fields["rows"]),
        operators=tuple(_make(OperatorSummary, operator) for operator in fields["operators"]),
        metadata=_make(MetadataReference, fields["metadata"]),
    )


def _make(make: Callable[..., _T], fields: Mapping[str, Any]) -> _T:
    return make(**fields)
