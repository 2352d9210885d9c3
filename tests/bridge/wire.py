"""Requests in the JVM's wire format, built from the coordinator's message classes."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from spark_ckpt.bridge.protocol import Message
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.messages import (
    Ack,
    Close,
    Decline,
    EndOffsets,
    JobMessage,
    Locate,
    Rescale,
    TaskFailed,
    Trigger,
    Unreadable,
)

Request = tuple[str, dict[str, Any], bytes, bytes]
"""Kind, header with the job, index, and payload."""

START: Request = ("start", {"protocol": 5, "spark_version": "4.2.0", "pid": 4242}, b"", b"")


def message_of(request: Request, number: int = 0) -> Message:
    """Row of the stream for a request."""
    kind, header, index, payload = request
    fields = {name: value for name, value in header.items() if name != "job"}
    return Message(number, kind, str(header.get("job", "")), json.dumps(fields).encode(), index, payload)


def trigger(message: Trigger) -> Request:
    return _request("trigger", message)


def ack(message: Ack) -> Request:
    index = b"".join(_index(segment) for segment in message.segments)
    kind, header, _, _ = _request("ack", message)
    return kind, header, index, b"".join(bytes(segment.data) for segment in message.segments)


def end_offsets(message: EndOffsets) -> Request:
    return _request("end_offsets", message)


def rescale(message: Rescale) -> Request:
    return _request("rescale", message)


def decline(message: Decline) -> Request:
    return _request("decline", message)


def task_failed(message: TaskFailed) -> Request:
    return _request("task_failed", message)


def close(message: Close) -> Request:
    return _request("close", message)


def unreadable(message: Unreadable) -> Request:
    return _request("unreadable", message)


def locate(job: str, subtask: SubtaskKey, version: int, state_id: str | None = None) -> Request:
    return _request("locate", Locate(subtask, version, state_id, job=job))


def _request(kind: str, message: JobMessage) -> Request:
    return kind, msgspec.to_builtins(message, enc_hook=len), b"", b""


def _index(segment: SegmentRef) -> bytes:
    return segment.key_groups.astype("<u4").tobytes() + segment.offsets.astype("<i8").tobytes()
