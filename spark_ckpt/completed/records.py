"""Records of the completed-checkpoint log, and their JSON encoding."""

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
"""Record format that this release writes, and the only one it reads."""

OPERATION = "spark-ckpt "
"""Prefix of the run id of a command, which its name follows."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Owner:
    """Writer of a record.

    Args:
        host: name of the machine.
        pid: process id of the driver's JVM, or of the writing process if there is no JVM.
        process_token: token unique to each start of the writing process.
        query_id: Spark's id of the query, stable across restarts.
        run_id: Spark's id of this run of the query.
    """

    host: str
    pid: int
    process_token: str
    query_id: str
    run_id: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} (run {self.run_id})"

    def is_same_run(self, other: Owner) -> bool:
        """True if another writer has the same run of the query and the same driver, perhaps with another process."""
        return (self.run_id, self.host, self.pid) == (other.run_id, other.host, other.pid)


def operation_of(run_id: str) -> str | None:
    """Name of the command that has a run id; None for the run of a query."""
    return run_id.removeprefix(OPERATION).split()[0] if run_id.startswith(OPERATION) else None


@dataclass(frozen=True, slots=True)
class OperatorSummary:
    """Summary of one store of one operator, for listings.

    Args:
        operator_id: Spark's number of the operator in the query.
        name: Spark's short name of the operator.
        store: name of the store.
        parallelism: number of subtasks.
        rows: number of rows across all subtasks.
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
    """Reference to the `_metadata` file of a checkpoint.

    Args:
        path: path relative to the `ckpt` directory.
        size: size in bytes.
        sha256: hexadecimal SHA-256 digest of the bytes.
    """

    path: str
    size: int
    sha256: str

    @classmethod
    def of(cls, path: str, data: bytes) -> MetadataReference:
        """Reference to a file with these bytes."""
        return cls(path, len(data), hashlib.sha256(data).hexdigest())

    def mismatch(self, data: bytes) -> str | None:
        """Reason why `data` is not the content of the file; None if it is."""
        if len(data) != self.size:
            return f"{len(data)} bytes instead of {self.size}"
        if hashlib.sha256(data).hexdigest() != self.sha256:
            return "its digest differs from the recorded one"
        return None


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """Takeover of a location by a driver. Its generation applies to all later records until the next claim.

    Args:
        id: position in the log.
        generation: generation, higher than in every earlier record.
        owner: the driver.
        attempt: UUID of the attempt to write this record.
        timestamp_ms: time of the claim in milliseconds since 1970 UTC; informative only.
        seen: ids of the records that counted at the time of the claim and that it keeps, ascending. Other records below
            the claim do not count. None in claims of releases without this field.
        process: identity of the owner's process among all that have had its pid; None if unknown.
        log_epoch: log epoch that the driver's writer of Spark's logs keeps to (`spark_ckpt.spark_files.rollbacks`);
            None if that writer is not ours, or of an earlier release.
        release: release of spark-ckpt that wrote it; informative only. None in claims of releases without this field.
        hung: number of side processes that the driver has killed before this claim, because they gave no sign of life;
            None without any.
    """

    id: int
    generation: int
    owner: Owner
    attempt: str
    timestamp_ms: int
    seen: tuple[int, ...] | None = None
    process: ProcessIdentity | None = None
    log_epoch: int | None = None
    release: str | None = None
    hung: int | None = None

    kind = "claim"


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """Completed checkpoint.

    Args:
        id: number of the checkpoint and position in the log.
        generation: generation of the driver that completed the checkpoint.
        owner: that driver.
        attempt: UUID of the attempt to write this record.
        batch_id: id of Spark's micro-batch.
        version: state version after the batch.
        timestamp_ms: completion time in milliseconds since 1970 UTC.
        duration_ms: milliseconds from trigger to completion.
        state_bytes: bytes of state that the checkpoint refers to.
        new_bytes: bytes written for the checkpoint, including `_metadata`.
        rows: number of rows across all stores.
        operators: one summary per store of each operator.
        metadata: reference to its `_metadata`.
        evolved: last batch before the newest evolution of the query, while checkpoints from before it, which have other
            schemas, are retained; None otherwise.
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
    evolved: int | None = None

    kind = "checkpoint"


Record: TypeAlias = ClaimRecord | CheckpointRecord
"""Record of the log."""


def encode_record(record: Record) -> bytes:
    """Encodes a record as human-readable JSON with a trailing digest of its own content."""
    known = {name: value for name, value in asdict(record).items() if value is not None}
    content = {"format": FORMAT, "kind": record.kind, **known}
    if features := _features(record):
        content["features"] = features
    content["digest"] = _digest(content)
    return json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n"


def decode_record(data: bytes, path: str, record_id: int | None = None, *, way_out: str = RESTORE_RECORD) -> Record:
    """Decodes the content of a record's file.

    Args:
        data: content of the file.
        path: name of the file, for the error message.
        record_id: id in the file's name, if there is one.
        way_out: advice on a damaged record, for the error message.

    Raises:
        DamagedRecordError: the bytes are not the ones that were written.
        UnsupportedFormatError: a later release wrote the record in a format that this release would misread.
    """
    damaged = partial(DamagedRecordError, path, way_out=way_out)
    try:
        content = json.loads(data.decode())
    except ValueError as e:
        raise damaged(f"no JSON ({e})") from None
    if not isinstance(content, dict):
        raise damaged("it is not a JSON object")
    # Check the digest before the format: a damaged record must not pass for one of a later release.
    digest = content.pop("digest", None)
    if digest != _digest(content):
        raise damaged("its digest does not match its contents")
    if content.get("format") != FORMAT:
        raise UnsupportedFormatError(path, f"record format {content.get('format')!r}")
    if record_id is not None and content.get("id") != record_id:
        raise damaged(f"it holds the record of id {content.get('id')!r}")
    try:
        check_features(path, content.get("features"))
        record = _record(content)
    except (KeyError, TypeError, ValueError) as e:
        raise damaged(f"a field is missing or has the wrong type ({e})") from None
    if isinstance(record, CheckpointRecord) and not is_metadata_path(record.metadata.path):
        raise damaged(f"it names {record.metadata.path!r}, which is not the _metadata of a checkpoint")
    return record


def _digest(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _features(record: Record) -> list[str]:
    if isinstance(record, ClaimRecord):
        return [Feature.SEEN_RECORDS.value] if record.seen is not None else []
    return [Feature.EVOLVED_SCHEMAS.value] if record.evolved is not None else []


def _record(content: Mapping[str, Any]) -> Record:
    record_id, generation, attempt = int(content["id"]), int(content["generation"]), str(content["attempt"])
    owner, timestamp_ms = _make(Owner, content["owner"]), int(content["timestamp_ms"])
    if content["kind"] == ClaimRecord.kind:
        seen = None if content.get("seen") is None else tuple(int(i) for i in content["seen"])
        process = None if content.get("process") is None else _make(ProcessIdentity, content["process"])
        log_epoch = None if content.get("log_epoch") is None else int(content["log_epoch"])
        release = None if content.get("release") is None else str(content["release"])
        hung = None if content.get("hung") is None else int(content["hung"])
        return ClaimRecord(record_id, generation, owner, attempt, timestamp_ms, seen, process, log_epoch, release, hung)
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
        evolved=None if content.get("evolved") is None else int(content["evolved"]),
    )


def _make(make: type[_T], content: Mapping[str, Any]) -> _T:
    """Builds an object from its known fields; readers may ignore fields that a later release has added."""
    names = {field.name for field in fields(make)}  # type: ignore[arg-type]  # a bound of TypeVar has no public name
    return make(**{name: value for name, value in content.items() if name in names})
