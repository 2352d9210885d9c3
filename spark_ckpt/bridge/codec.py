"""Requests and replies as messages: JSON derived from their types, and the blocks of their segments beside it.

In JSON, the blocks of a segment are their number. The index and the payload have the blocks themselves, in the order of
the segments (docs/protocol.md, section 1.2).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from spark_ckpt.bridge.protocol import PROTOCOL_VERSION, UNASKED, Message
from spark_ckpt.coordinator.reports import Report
from spark_ckpt.errors import ProtocolError
from spark_ckpt.format.segment_ref import NO_BLOCKS, Blocks, SegmentRef
from spark_ckpt.format.state_ids import canonical_state_id, is_state_id
from spark_ckpt.messages import (
    Ack,
    AckReply,
    Close,
    Decline,
    EndOffsets,
    EndOffsetsReply,
    Locate,
    LocateReply,
    Notification,
    TaskFailed,
    Trigger,
    TriggerReply,
    Unreadable,
)
from spark_ckpt.redaction import redacted, shortened

REPORT = "report"
"""`kind` of reports of checkpoints."""

MAX_NAME = 200
"""Most characters of the name of a query that are kept."""

Request: TypeAlias = Trigger | Locate | Ack | EndOffsets | Decline | Unreadable | TaskFailed | Close
"""Request of a job."""

Reply: TypeAlias = TriggerReply | LocateReply | AckReply | EndOffsetsReply
"""Reply with fields."""

_GROUP_BYTES = 4
_OFFSET_BYTES = 8


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


@dataclass(frozen=True, slots=True)
class StartReply:
    """Reply to `Start`.

    Args:
        version: version of the package.
        protocol: version of the protocol.
    """

    version: str
    protocol: int = PROTOCOL_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Settings of a session, every key that may be meant for us."""

    settings: dict[str, str]


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """Reply to a request that failed.

    Args:
        error: name of the error's class.
        message: text for users, redacted.
        fatal: whether another try cannot succeed.
    """

    error: str
    message: str
    fatal: bool


class _Expected(Blocks):
    """Blocks of which only the number is known yet."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        super().__init__(NO_BLOCKS.key_groups, NO_BLOCKS.offsets)
        self.count = count


def _from_json(kind: type, value: Any) -> Blocks:  # noqa: ANN401
    if kind is not Blocks or type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no number of blocks")
    return _Expected(value)


def _to_json(value: object) -> int:
    if not isinstance(value, Blocks):
        raise NotImplementedError(f"no JSON for {type(value).__name__}")
    return len(value)


_ENCODER = msgspec.json.Encoder(enc_hook=_to_json)
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(type_, dec_hook=_from_json)
    for kind, type_ in (
        ("start", Start),
        ("check", Check),
        ("trigger", Trigger),
        ("locate", Locate),
        ("ack", Ack),
        ("end_offsets", EndOffsets),
        ("decline", Decline),
        ("unreadable", Unreadable),
        ("task_failed", TaskFailed),
        ("close", Close),
    )
}


# ---- requests --------------------------------------------------------------------------------------------------------


def decode(message: Message) -> Any:  # noqa: ANN401  (the kind decides)
    """Request in a message: `Start`, `Check` or a `Request`.

    Raises:
        ProtocolError: the kind is unknown, a field is missing or of another type, or the blocks do not fit.
    """
    decoder = _DECODERS.get(message.kind)
    if decoder is None:
        raise ProtocolError(f"unknown message '{message.kind}' in version {PROTOCOL_VERSION}")
    try:
        request = decoder.decode(message.header)
    except msgspec.MsgspecError as e:
        raise ProtocolError(f"malformed '{message.kind}' message: {e}") from None
    if isinstance(request, Start | Check):
        return request
    request.job = message.job
    if isinstance(request, Ack):
        _check_ids(request)
        _take_blocks(request.segments, message.index, memoryview(message.payload))
        if request.compaction_failure is not None:
            request.compaction_failure = redacted(request.compaction_failure)
    elif isinstance(request, Trigger):
        # Spark accepts any text of any length as a name; it comes back in each record, report and line.
        if request.query_name is not None:
            request.query_name = shortened(redacted(request.query_name), MAX_NAME)
    elif isinstance(request, Decline | Unreadable | TaskFailed):
        request.reason = redacted(request.reason)
    return request


def _check_ids(ack: Ack) -> None:
    if not is_state_id(ack.state_id):
        raise ProtocolError(f"a state id is a UUID in lower case; found {ack.state_id!r}")
    if ack.base_state_id is not None:
        ack.base_state_id = canonical_state_id(ack.base_state_id)
    if ack.base is not None:
        ack.base.state_id = canonical_state_id(ack.base.state_id)
    if ack.merged is not None and not 0 < ack.merged.first_version <= ack.merged.version:
        raise ProtocolError(f"merged deltas have the versions {ack.merged.first_version} to {ack.merged.version}")


def _take_blocks(segments: Iterable[SegmentRef], index: bytes, payload: memoryview) -> None:
    """Give segments their blocks, which follow one another in index and payload."""
    at = taken = 0
    for segment in segments:
        count = segment.blocks.count if isinstance(segment.blocks, _Expected) else len(segment.blocks)
        end = at + (_GROUP_BYTES + _OFFSET_BYTES) * count
        if end > len(index):
            raise ProtocolError(f"the segment has {count} blocks, but the index has {len(index)} bytes")
        key_groups = np.frombuffer(index, "<u4", count, at)
        offsets = np.frombuffer(index, "<i8", count, at + _GROUP_BYTES * count)
        data, at = payload[:0], end
        if segment.path is None:
            data = payload[taken : taken + segment.size]
            taken += segment.size
            if len(data) != segment.size:
                raise ProtocolError(f"the segment has {segment.size} bytes, but the payload holds {len(data)}")
        _check_blocks(segment, key_groups, offsets)
        segment.blocks = Blocks(key_groups, offsets, data)
    if at != len(index) or taken != len(payload):
        raise ProtocolError("the index or payload of a message is longer than its header states")


def _check_blocks(segment: SegmentRef, key_groups: NDArray[np.uint32], offsets: NDArray[np.int64]) -> None:
    if not key_groups.size:
        return
    if not (_ascends(key_groups) and _ascends(offsets)):
        raise ProtocolError("key groups and offsets of a segment must ascend")
    end = segment.size if segment.path is None else segment.file_size
    if offsets[0] < 0 or offsets[-1] >= end or offsets[-1] - offsets[0] >= segment.size:
        place = "the payload" if segment.path is None else f"{segment.path}, which has {segment.file_size}"
        raise ProtocolError(f"offsets of a segment of {segment.size} bytes lie outside of it or of {place}")


def _ascends(numbers: NDArray[np.integer]) -> bool:
    # Most segments have few key groups. For those, a search in the bytes is several times as fast as `all`.
    return b"\0" not in (numbers[1:] > numbers[:-1]).tobytes()


# ---- replies and notifications ---------------------------------------------------------------------------------------


def ok(request_id: int, reply: Reply | StartReply | None = None) -> Message:
    """Message with a reply; without one, the request has none."""
    if reply is None:
        return Message(request_id, "ok", "", b"{}")
    segments = _segments_of(reply)
    index = b"".join(_index_of(segment.blocks) for segment in segments)
    payload = b"".join(segment.data for segment in segments if segment.path is None)
    return Message(request_id, "ok", "", _ENCODER.encode(reply), index, payload)


def _segments_of(reply: Reply | StartReply) -> tuple[SegmentRef, ...]:
    if isinstance(reply, LocateReply):
        return (*reply.segments, *reply.compaction.inputs)
    return reply.compaction.inputs if isinstance(reply, AckReply) else ()


def _index_of(blocks: Blocks) -> bytes:
    # Joined by a rescale, the blocks of several subtasks are not in the order of their key groups.
    order = np.argsort(blocks.offsets, kind="stable")
    return blocks.key_groups[order].astype("<u4").tobytes() + blocks.offsets[order].astype("<i8").tobytes()


def error(request_id: int, name: str, message: str, fatal: bool) -> Message:
    """Message with an error as the reply."""
    return Message(request_id, "error", "", _ENCODER.encode(ErrorReply(name, redacted(message), fatal)))


def report(fields: Report) -> Message:
    """Message with a report of a checkpoint."""
    try:
        header = _ENCODER.encode(fields)
    except UnicodeEncodeError:  # lone surrogates, from the bytes of a file name
        header = json.dumps(fields).encode()
    return Message(UNASKED, REPORT, "", header)


def notification(notified: Notification) -> Message:
    """Message that answers no request."""
    header = msgspec.to_builtins(notified)
    return Message(UNASKED, "notify", header.pop("job"), _ENCODER.encode(header))
