"""The records of the completed-checkpoint log, and their text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, TypeAlias, TypeVar

from spark_ckpt.completed.errors import RESTORE_RECORD, DamagedRecordError
from spark_ckpt.completed.processes import ProcessIdentity
from spark_ckpt.errors import UnsupportedFormatError
from spark_ckpt.features import Feature, check_features
from spark_ckpt.storage.paths import is_metadata_path

FORMAT = 1
"""Format of the records that this release writes, and the only one it reads."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Owner:
    """The writer of a record.

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
    """Summary of one store of one operator, for listings.

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

    @classmethod
    def of(cls, path: str, data: bytes) -> MetadataReference:
        """The reference to a file of these bytes."""
        return cls(path, len(data), hashlib.sha256(data).hexdigest())

    def mismatch(self, data: bytes) -> str | None:
        """The reason why bytes are not those of the file; None if they are."""
        if len(data) != self.size:
            return f"{len(data)} bytes instead of {self.size}"
        if hashlib.sha256(data).hexdigest() != self.sha256:
            return "its digest is not the one that was recorded"
        return None


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """A driver that takes over. All later records are of its generation, until the next claim.

    Args:
        id: position in the log.
        generation: higher than that of every earlier record.
        owner: the driver.
        attempt: UUID of the try to write this record.
        timestamp_ms: when, in milliseconds since 1970 UTC; for people only.
        seen: ids of the records that counted when it was made and that it keeps, ascending. A record below the claim
            that is not among them does not count. None in claims of releases that did not note it.
        process: which of all processes that have had its number the owner's is; None where it is not known.
    """

    id: int
    generation: int
    owner: Owner
    attempt: str
    timestamp_ms: int
    seen: tuple[int, ...] | None = None
    process: ProcessIdentity | None = None

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
    known = {name: value for name, value in asdict(record).items() if value is not None}
    content = {"format": FORMAT, "kind": record.kind, **known}
    if features := _features(record):
        content["features"] = features
    content["digest"] = _digest(content)
    return json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n"


def decode_record(data: bytes, path: str, record_id: int | None = None, *, way_out: str = RESTORE_RECORD) -> Record:
    """The record in the bytes of a file.

    Args:
        data: the bytes.
        path: name of the file, for the error.
        record_id: the id that its name says, if it says one.
        way_out: what to do if it is damaged, for the error.

    Raises:
        DamagedRecordError: the bytes are not what was written.
        UnsupportedFormatError: a later release wrote it, in a way that this release would misread.
    """
    damaged = partial(DamagedRecordError, path, way_out=way_out)
    try:
        content = json.loads(data.decode())
    except ValueError as e:
        raise damaged(f"no JSON ({e})") from None
    if not isinstance(content, dict):
        raise damaged("no JSON object")
    # Before the format: a damaged record must not pass for one of a later release.
    digest = content.pop("digest", None)
    if digest != _digest(content):
        raise damaged("its digest does not fit its contents")
    if content.get("format") != FORMAT:
        raise UnsupportedFormatError(path, f"format {content.get('format')!r} of records")
    if record_id is not None and content.get("id") != record_id:
        raise damaged(f"it is the record of id {content.get('id')!r}")
    try:
        check_features(path, content.get("features"))
        record = _record(content)
    except (KeyError, TypeError, ValueError) as e:
        raise damaged(f"a field is missing or of the wrong kind ({e})") from None
    if isinstance(record, CheckpointRecord) and not is_metadata_path(record.metadata.path):
        raise damaged(f"it names {record.metadata.path!r}, which is no _metadata of a checkpoint")
    return record


def _digest(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _features(record: Record) -> list[str]:
    return [Feature.SEEN_RECORDS.value] if isinstance(record, ClaimRecord) and record.seen is not None else []


def _record(content: Mapping[str, Any]) -> Record:
    record_id, generation, attempt = int(content["id"]), int(content["generation"]), str(content["attempt"])
    owner, timestamp_ms = _make(Owner, content["owner"]), int(content["timestamp_ms"])
    if content["kind"] == ClaimRecord.kind:
        seen = None if content.get("seen") is None else tuple(int(i) for i in content["seen"])
        process = None if content.get("process") is None else _make(ProcessIdentity, content["process"])
        return ClaimRecord(record_id, generation, owner, attempt, timestamp_ms, seen, process)
    if content["kind"] != CheckpointRecord.kind:
        raise ValueError(f"kind {content['kind']!r}")
    return CheckpointRecord(
        id=record_id,
        generation=generation,
        owner=owner,
        attempt=attempt,
        batch_id=int(content["batch_id"]),
        version=int(content["version"]),
        timestamp_ms=timestamp_ms,
        duration_ms=int(content["duration_ms"]),
        state_bytes=int(content["state_bytes"]),
        new_bytes=int(content["new_bytes"]),
        rows=int(content["rows"]),
        operators=tuple(_make(OperatorSummary, operator) for operator in content["operators"]),
        metadata=_make(MetadataReference, content["metadata"]),
    )


def _make(make: type[_T], content: Mapping[str, Any]) -> _T:
    """An object of its fields. A later release may have added some that a reader may ignore."""
    names = {field.name for field in fields(make)}  # type: ignore[arg-type]  # a bound of TypeVar has no public name
    return make(**{name: value for name, value in content.items() if name in names})
