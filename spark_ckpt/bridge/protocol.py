"""Messages on the wire (docs/protocol.md, section 1): Arrow columns, JSON headers and fixed-width indexes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from spark_ckpt.checkpoint.batch import Source
from spark_ckpt.compaction.merges import digest_of
from spark_ckpt.coordinator.reports import Report
from spark_ckpt.errors import ProtocolError
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_flags import FLAGS, ORDERED
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.format.state_ids import canonical_state_id, is_state_id
from spark_ckpt.messages import (
    NO_VERSION,
    Ack,
    AckReply,
    BaseSnapshot,
    Close,
    Decline,
    EndOffsets,
    EndOffsetsReply,
    InProgress,
    Locate,
    LocateReply,
    MergedDeltas,
    Notification,
    Operator,
    Task,
    TaskFailed,
    Trigger,
    TriggerReply,
    Unreadable,
)
from spark_ckpt.redaction import redacted, shortened

PROTOCOL_VERSION = 4
"""Version of the protocol."""

UNASKED = -1
"""`id` of messages that answer no request."""

FILE = "file"
"""`kind` of requests from the side process to the driver."""

REPORT = "report"
"""`kind` of reports of checkpoints."""

MAX_NAME = 200
"""Most characters of the name of a query that are kept."""

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("kind", pa.utf8(), nullable=False),
        pa.field("header", pa.utf8(), nullable=False),
        pa.field("index", pa.binary(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
    ]
)
"""Columns of the streams in both directions."""

_TRUTH = {False: "false", True: "true"}
_GROUP_BYTES = 4
_OFFSET_BYTES = 8


@dataclass(frozen=True, slots=True)
class Message:
    """Request, reply or notification.

    Args:
        id: number of the request, assigned by the requesting side; `UNASKED` for notifications and reports.
        kind: type of the request; `ok` or `error` for replies, `notify` for notifications, `report` for reports.
        header: JSON object.
        index: key groups and offsets.
        payload: state.
    """

    id: int
    kind: str
    header: str
    index: bytes = b""
    payload: bytes | memoryview = b""

    @property
    def size(self) -> int:
        """Bytes of the header, the index and the payload."""
        return len(self.header) + len(self.index) + len(self.payload)


@dataclass(frozen=True, slots=True)
class Start:
    """First message of the JVM to a new side process.

    Args:
        protocol: version of the protocol.
        spark_version: version of Spark.
        pid: process id of the JVM.
        hung: number of side processes that this JVM has killed before, because they gave no sign of life.
    """

    protocol: int
    spark_version: str
    pid: int
    hung: int = 0


# ---- Arrow -----------------------------------------------------------------------------------------------------------


def check_schema(schema: pa.Schema) -> None:
    """Checks that a stream has the columns of `SCHEMA`.

    Raises:
        ProtocolError: its columns differ.
    """
    if [(field.name, field.type) for field in schema] != [(field.name, field.type) for field in SCHEMA]:
        raise ProtocolError(f"the stream has the columns {schema.names} instead of those in docs/protocol.md")


def to_batch(messages: Sequence[Message]) -> pa.RecordBatch:
    """Encodes messages as a record batch, one per row.

    Raises:
        ProtocolError: a column exceeds 2 GiB.
    """
    ids = np.array([message.id for message in messages], np.int64)
    columns = [
        pa.Array.from_buffers(pa.int64(), len(messages), [None, pa.py_buffer(ids)]),
        _column(pa.string(), [message.kind.encode() for message in messages]),
        _column(pa.string(), [message.header.encode() for message in messages]),
        _column(pa.binary(), [message.index for message in messages]),
        _column(pa.binary(), [message.payload for message in messages]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _column(kind: pa.DataType, values: Sequence[bytes | memoryview]) -> pa.Array:
    # `pa.array` imports pandas to check its input for pandas objects, which adds half a second to each query's start.
    ends = np.cumsum([0, *map(len, values)], dtype=np.int64)
    if ends[-1] > np.iinfo(np.int32).max:
        raise ProtocolError(f"a column of {ends[-1]} bytes does not fit into one record batch")
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(kind, len(values), buffers)


def from_batch(batch: pa.RecordBatch) -> Iterator[Message]:
    """Decodes the messages of a record batch. Payloads are views of its memory, which avoids large copies."""
    ids, kinds, headers = (batch.column(i).to_pylist() for i in range(3))
    indexes = _views(batch.column(3))
    payloads = _views(batch.column(4))
    for i, (request_id, kind, header) in enumerate(zip(ids, kinds, headers, strict=True)):
        yield Message(request_id, kind, header, bytes(indexes[i]), payloads[i])


def _views(column: pa.Array) -> list[memoryview]:
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32, len(column) + 1, 4 * column.offset).tolist()
    memory = memoryview(data) if data is not None else memoryview(b"")
    return [memory[start:end] for start, end in pairwise(ends)]


# ---- requests --------------------------------------------------------------------------------------------------------


def parse_header(message: Message) -> dict[str, Any]:
    """Decodes the header of a message.

    Raises:
        ProtocolError: the header is not a JSON object.
    """
    try:
        header = orjson.loads(message.header)
    except ValueError as e:
        raise ProtocolError(f"the header of a '{message.kind}' message is not JSON: {e}") from None
    if not isinstance(header, dict):
        raise ProtocolError(f"the header of a '{message.kind}' message is not a JSON object")
    return header


def parse_start(header: Mapping[str, Any]) -> Start:
    """Decodes a `start` message."""
    return Start(
        int(header["protocol"]), str(header["spark_version"]), int(header["pid"]), int(header.get("hung") or 0)
    )


def parse_trigger(header: Mapping[str, Any]) -> Trigger:
    """Decodes a `trigger` message."""
    operators = tuple(
        Operator(
            int(o["operator_id"]),
            str(o["name"]),
            tuple(o["stores"]),
            int(o["parallelism"]),
            o.get("state_format_version"),
        )
        for o in header["operators"]
    )
    return Trigger(
        job=header["job"],
        location=header["location"],
        query_id=header["query_id"],
        query_name=_name(header.get("query_name")),
        batch_id=int(header["batch_id"]),
        version=int(header["version"]),
        checkpoint_format=int(header.get("checkpoint_format", 1)),
        operators=operators,
        sources=tuple(Source(str(s["name"]), s.get("offset")) for s in header.get("sources", ())),
        settings=header.get("settings") or {},
        hadoop=header.get("hadoop") or {},
        spark_version=str(header.get("spark_version", "")),
        offset_log=header.get("offset_log"),
        real_time_ms=None if header.get("real_time_ms") is None else int(header["real_time_ms"]),
        log_epoch=None if header.get("log_epoch") is None else int(header["log_epoch"]),
        report_details=header.get("report_details") is True,
    )


def parse_locate(header: Mapping[str, Any]) -> Locate:
    """Decodes a `locate` message."""
    return Locate(header["job"], _subtask(header), int(header["version"]), header.get("ckpt_id"))


def parse_ack(header: Mapping[str, Any], index: bytes, payload: bytes | memoryview) -> Ack:
    """Decodes an `ack` message.

    Raises:
        ProtocolError: index and payload do not have the lengths given in the header, or the state id is malformed.
    """
    cursor = _Cursor(_subtask(header), index, memoryview(payload))
    version = int(header["version"])
    delta = cursor.segment(header["delta"], version, version)
    base = None
    if (fields := header.get("base")) is not None:
        base = BaseSnapshot(cursor.segment(fields, 0, int(fields["version"])), canonical_state_id(fields["ckpt_id"]))
    merged = None
    if (fields := header.get("merged")) is not None:
        first, last = int(fields["first_version"]), int(fields["version"])
        if not 0 < first <= last:
            raise ProtocolError(f"merged deltas have the versions {first} to {last}")
        merged = MergedDeltas(cursor.segment(fields, first, last), str(fields["inputs"]))
    cursor.finish()
    return Ack(
        job=header["job"],
        subtask=_subtask(header),
        batch_id=int(header["batch_id"]),
        version=version,
        state_id=_state_id(header["ckpt_id"]),
        base_state_id=None if header.get("base_ckpt_id") is None else canonical_state_id(header["base_ckpt_id"]),
        task=_task(header["task"]),
        rows=int(header["rows"]),
        rows_updated=header.get("rows_updated", 0),
        rows_removed=header.get("rows_removed", 0),
        delta=delta,
        base=base,
        merged=merged,
        timings_us=header.get("timings_us") or {},
        base_failure=None if header.get("base_failure") is None else _reason(header["base_failure"]),
        in_progress=tuple(InProgress(int(first), int(last)) for first, last in header.get("in_progress", ())),
    )


def parse_end_offsets(header: Mapping[str, Any]) -> EndOffsets:
    """Decodes an `end_offsets` message."""
    return EndOffsets(header["job"], int(header["batch_id"]), int(header["version"]), str(header["offset_log"]))


def parse_decline(header: Mapping[str, Any]) -> Decline:
    """Decodes a `decline` message."""
    return Decline(
        header["job"],
        _subtask(header),
        int(header["batch_id"]),
        int(header["version"]),
        _task(header["task"]),
        _reason(header["reason"]),
    )


def parse_unreadable(header: Mapping[str, Any]) -> Unreadable:
    """Decodes an `unreadable` message."""
    return Unreadable(header["job"], _subtask(header), int(header["version"]), _reason(header["reason"]))


def parse_task_failed(header: Mapping[str, Any]) -> TaskFailed:
    """Decodes a `task_failed` message."""
    return TaskFailed(
        header["job"],
        int(header["stage_id"]),
        int(header["stage_attempt"]),
        int(header["partition"]),
        int(header["attempt_number"]),
        _reason(header.get("reason", "")),
    )


def parse_close(header: Mapping[str, Any]) -> Close:
    """Decodes a `close` message."""
    return Close(header["job"], str(header.get("status", "finished")))


def _subtask(header: Mapping[str, Any]) -> SubtaskKey:
    return SubtaskKey(int(header["operator_id"]), header["store"], int(header["partition"]))


def _task(fields: Mapping[str, Any]) -> Task:
    return Task(
        fields["stage_id"],
        fields["stage_attempt"],
        fields["partition"],
        fields["attempt_number"],
        fields.get("task_attempt_id", 0),
        fields.get("executor", ""),
    )


def _state_id(text: Any) -> str:  # noqa: ANN401
    if not isinstance(text, str) or not is_state_id(text):
        raise ProtocolError(f"a ckpt_id is a UUID in lower case; found {text!r}")
    return text


class _Cursor:
    """Cursor that splits index and payload into the segments named in the header."""

    def __init__(self, subtask: SubtaskKey, index: bytes, payload: memoryview) -> None:
        self._subtask, self._index, self._payload = subtask, index, payload
        self._at, self._taken = 0, 0

    def segment(self, fields: Mapping[str, Any], first_version: int, version: int) -> SegmentRef:
        groups, size, path = int(fields["groups"]), int(fields["bytes"]), fields.get("path")
        end = self._at + (_GROUP_BYTES + _OFFSET_BYTES) * groups
        if groups < 0 or size < 0 or end > len(self._index):
            raise self._error(
                f"the segment has {groups} key groups and {size} bytes, but its index has {len(self._index)} entries"
            )
        key_groups = np.frombuffer(self._index, "<u4", groups, self._at)
        offsets = np.frombuffer(self._index, "<i8", groups, self._at + _GROUP_BYTES * groups)
        self._at = end
        self._check_blocks(key_groups, offsets, size)
        data = self._payload[:0]
        if path is None:
            data = self._payload[self._taken : self._taken + size]
            self._taken += size
            if len(data) != size:
                raise self._error(f"the segment has {size} bytes, but the payload holds {len(data)}")
        start, file_size = int(fields.get("start", 0)), int(fields.get("file_bytes", size))
        if not 0 <= start <= file_size - size:
            raise self._error(f"{size} bytes at offset {start} exceed {path}, which has {file_size} bytes")
        flags = sum(flag.bit for flag in FLAGS if fields.get(flag.name) is True)
        if start:
            offsets = offsets + start
        return SegmentRef(first_version, version, key_groups, offsets, size, path, file_size, data, (), flags)

    def finish(self) -> None:
        if self._at != len(self._index) or self._taken != len(self._payload):
            raise self._error("the index or payload of an ack is longer than its header states")

    def _check_blocks(self, key_groups: NDArray[np.uint32], offsets: NDArray[np.int64], size: int) -> None:
        if not key_groups.size:
            return
        if not (_ascends(key_groups) and _ascends(offsets)):
            raise self._error("key groups and offsets of a segment must ascend")
        if offsets[0] < 0 or offsets[-1] >= size:
            raise self._error(f"offsets of a segment lie outside its {size} bytes")

    def _error(self, reason: str) -> ProtocolError:
        return ProtocolError(f"{self._subtask}: {reason}")


def _ascends(numbers: NDArray[np.integer]) -> bool:
    # Most segments have few key groups. For those, a search in the bytes is several times as fast as `all`.
    return b"\0" not in (numbers[1:] > numbers[:-1]).tobytes()


# ---- replies and notifications ---------------------------------------------------------------------------------------


def ok(request_id: int, header: Mapping[str, Any], index: bytes = b"", payload: bytes = b"") -> Message:
    """Encodes a successful reply."""
    return Message(request_id, "ok", json.dumps(header), index, payload)


def error(request_id: int, name: str, message: str, fatal: bool) -> Message:
    """Encodes an `error` reply."""
    return Message(request_id, "error", json.dumps({"error": name, "message": redacted(message), "fatal": fatal}))


def start_reply(request_id: int, version: str) -> Message:
    """Encodes the reply to `start`."""
    return ok(request_id, {"protocol": PROTOCOL_VERSION, "version": version})


def trigger_reply(request_id: int, reply: TriggerReply) -> Message:
    """Encodes the reply to `trigger`."""
    header = {
        "generation": reply.generation,
        "max_parallelism": reply.max_parallelism,
        "key_group_factors": reply.key_group_factors,
        **reply.limits._asdict(),
    }
    return ok(request_id, header)


def locate_reply(request_id: int, reply: LocateReply) -> Message:
    """Encodes the reply to `locate`."""
    segments = [
        {
            "kind": "base" if segment.is_base else "delta",
            "path": segment.path,
            "count": int(segment.offsets.size),
            "bytes": segment.size,
            "file_bytes": segment.file_size if segment.path is not None else None,
            "filters": segment.filters,
            **({"covers": segment.version - segment.first_version + 1} if segment.is_merged else {}),
            **({ORDERED.name: True} if segment.has(ORDERED) else {}),
        }
        for segment in reply.segments
    ]
    header: dict[str, Any] = {
        "ckpt_id": reply.state_id,
        "checkpoint_id": reply.checkpoint_id,
        "max_parallelism": reply.max_parallelism,
        "key_group_factors": reply.key_group_factors,
        "operator": reply.operator,
        "state_format_version": reply.state_format_version,
        "rows": reply.rows,
        "segments": segments,
        "base_due": reply.base_due,
        "base_required": reply.base_required,
    }
    if reply.limits is not None:
        header.update(reply.limits._asdict())
    if reply.merge:
        header["merge"] = _merge(reply.merge)
    if reply.by_key_group:
        header["by_key_group"] = True
    if reply.keep_deltas:
        header["keep_deltas"] = True
    index = b"".join(_located_index(segment, reply.by_key_group) for segment in reply.segments)
    return ok(request_id, header, index + _merge_index(reply.merge), _inline(reply.segments) + _inline(reply.merge))


def _located_index(segment: SegmentRef, with_key_groups: bool) -> bytes:
    order = np.argsort(segment.offsets)
    offsets = segment.offsets[order].astype("<i8").tobytes()
    return offsets + (segment.key_groups[order].astype("<u4").tobytes() if with_key_groups else b"")


def _merge(deltas: Sequence[SegmentRef]) -> dict[str, Any]:
    return {
        "first_version": deltas[0].first_version,
        "version": deltas[-1].version,
        "inputs": digest_of(deltas),
        "deltas": [
            {
                "path": delta.path,
                "groups": int(delta.key_groups.size),
                "bytes": delta.size if delta.path is not None else len(delta.data),
                "file_bytes": delta.file_size,
                "first_version": delta.first_version,
                "version": delta.version,
            }
            for delta in deltas
        ],
    }


def _merge_index(deltas: Sequence[SegmentRef]) -> bytes:
    return b"".join(
        delta.key_groups.astype("<u4").tobytes() + delta.offsets.astype("<i8").tobytes() for delta in deltas
    )


def _inline(segments: Sequence[SegmentRef]) -> bytes:
    return b"".join(segment.data for segment in segments if segment.path is None)


def ack_reply(request_id: int, reply: AckReply) -> Message:
    """Encodes the reply to `ack`."""
    # Formatted by hand for speed: each store of each task gets one, and only the reason may need escaping.
    reason = "null" if reply.reason is None else json.dumps(reply.reason)
    merge = f', "merge": {json.dumps(_merge(reply.merge))}' if reply.merge else ""
    keep = ', "keep_deltas": true' if reply.keep_deltas else ""
    header = (
        f'{{"outcome": "{reply.outcome.value}", "ckpt_id": {_text_or_null(reply.state_id)}, '
        f'"base_due": {_TRUTH[reply.base_due]}, "base_required": {_TRUTH[reply.base_required]}, '
        f'"completed": {_number_or_null(reply.completed)}, '
        f'"completed_version": {_number_or_null(reply.completed_version)}, "reason": {reason}{merge}{keep}}}'
    )
    return Message(request_id, "ok", header, _merge_index(reply.merge), _inline(reply.merge))


def end_offsets_reply(request_id: int, reply: EndOffsetsReply) -> Message:
    """Encodes the reply to `end_offsets`."""
    return ok(request_id, reply._asdict())


def notification(notified: Notification) -> Message:
    """Encodes a `notify` message."""
    header = {
        "job": notified.job,
        "event": notified.event.value,
        "version": None if notified.version == NO_VERSION else notified.version,
        "checkpoint_id": notified.checkpoint_id,
        "reason": notified.reason,
    }
    return Message(UNASKED, "notify", json.dumps(header))


def report(fields: Report) -> Message:
    """Encodes a `report` message."""
    try:
        header = orjson.dumps(fields).decode()
    except orjson.JSONEncodeError:  # lone surrogates, from the bytes of a file name
        header = json.dumps(fields)
    return Message(UNASKED, REPORT, header)


def _reason(text: object) -> str:
    """Redacted reason of a failure in an executor, for the statistics and the log."""
    return redacted(str(text))


def _name(text: object) -> str | None:
    """Name of a query. Spark accepts any text of any length; it comes back in each record, report and line."""
    return None if text is None else shortened(redacted(str(text)), MAX_NAME)


def _text_or_null(value: str | None) -> str:
    return "null" if value is None else f'"{value}"'


def _number_or_null(value: int | None) -> str:
    return "null" if value is None else str(value)
