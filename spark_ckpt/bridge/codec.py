"""Requests and replies as messages: JSON derived from their types, and the blocks of their segments beside it.

In JSON, the blocks of a segment are their number. The index and the payload have the blocks themselves, in the order of
the segments (docs/protocol.md, section 1.2).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from operator import lt
from typing import Any, TypeAlias, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from spark_ckpt.bridge.protocol import PROTOCOL_VERSION, UNASKED, Message
from spark_ckpt.coordinator.reports import Report
from spark_ckpt.errors import ProtocolError
from spark_ckpt.format.integers import Natural
from spark_ckpt.format.keys import SubtaskKey
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
    Rescale,
    RescaleReply,
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

Reply: TypeAlias = TriggerReply | LocateReply | AckReply | EndOffsetsReply | RescaleReply
"""Reply with fields."""

_MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Errors of a decoder."""

_GROUP = np.dtype("<u4")
_OFFSET = np.dtype("<i8")
_FEW = 16
"""Numbers that are compared one by one as quickly as by numpy."""


@dataclass(frozen=True, slots=True)
class Start:
    """First message of the JVM to a new side process.

    Args:
        protocol: version of the protocol.
        spark_version: version of Spark.
        pid: process id of the JVM.
        hung: number of side processes that this JVM has killed before, because they gave no sign of life.
    """

    protocol: Natural
    spark_version: str
    pid: Natural
    hung: Natural = 0


@dataclass(frozen=True, slots=True)
class StartReply:
    """Reply to `Start`.

    Args:
        version: version of the package.
        protocol: version of the protocol.
    """

    version: str
    protocol: Natural = PROTOCOL_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Settings of a session.

    Args:
        settings: every key that may be meant for us, with its text.
    """

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


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a malformed message about a store has nevertheless."""

    subtask: SubtaskKey


class _Expected(Blocks):
    """Blocks of which only the number is known yet."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        super().__init__(NO_BLOCKS.key_groups, NO_BLOCKS.offsets)
        self.count = count  # of any size, which `len` is not


def _from_json(kind: type, value: Any) -> Blocks:  # noqa: ANN401
    if kind is not Blocks or type(value) is not int or value < 0:
        raise ValueError("Expected a number of blocks")
    return _Expected(value)


def _to_json(value: object) -> int:
    if not isinstance(value, Blocks):
        raise NotImplementedError(f"no JSON for {type(value).__name__}")
    return len(value)


REQUESTS: dict[str, tuple[type, type | None]] = {
    "start": (Start, StartReply),
    "check": (Check, None),
    "trigger": (Trigger, TriggerReply),
    "locate": (Locate, LocateReply),
    "ack": (Ack, AckReply),
    "end_offsets": (EndOffsets, EndOffsetsReply),
    "rescale": (Rescale, RescaleReply),
    "decline": (Decline, None),
    "unreadable": (Unreadable, None),
    "task_failed": (TaskFailed, None),
    "close": (Close, None),
}
"""Type of each kind of request that has fields, and of its reply; None for a reply without."""

_ENCODER = msgspec.json.Encoder(enc_hook=_to_json)
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(request, dec_hook=_from_json) for kind, (request, _) in REQUESTS.items()
}
_SUBJECT = msgspec.json.Decoder(_Subject)
_FIELDS = msgspec.json.Decoder(dict[str, Any])


# ---- requests --------------------------------------------------------------------------------------------------------


def decode(message: Message) -> Any:  # noqa: ANN401  (the kind decides)
    """Request in a message: `Start`, `Check` or a `Request`.

    Raises:
        ProtocolError: the kind is unknown, a field is missing or of another type, or the blocks do not fit.
    """
    decoder = _DECODERS.get(message.kind)
    if decoder is None:
        raise ProtocolError(f"unknown message '{message.kind}' in version {PROTOCOL_VERSION}")
    request = _decoded(decoder, message)
    if isinstance(request, Ack):
        request.job = message.job
        _check_ids(request)
        segments = request.segments
        _check_segments(request, segments)
        _take_blocks(request, segments, message.index, memoryview(message.payload))
        if request.compaction_failure is not None:
            request.compaction_failure = redacted(request.compaction_failure)
        return request
    if isinstance(request, Start | Check):
        return request
    request.job = message.job
    if isinstance(request, Trigger):
        # Spark accepts any text of any length as a name; it comes back in each record, report and line.
        if request.query_name is not None:
            request.query_name = shortened(redacted(request.query_name), MAX_NAME)
    elif isinstance(request, Decline | Unreadable | TaskFailed):
        request.reason = redacted(request.reason)
    return request


def fields_of(reply: Message) -> dict[str, Any]:
    """Fields of the driver's answer to a request for files.

    Raises:
        ProtocolError: it has no JSON object.
    """
    return cast("dict[str, Any]", _decoded(_FIELDS, reply))


def _decoded(decoder: msgspec.json.Decoder[Any], message: Message) -> Any:  # noqa: ANN401
    # The texts of these errors have names and types, and no values of fields, which may be credentials.
    try:
        return decoder.decode(message.header)
    except _MALFORMED as e:
        raise ProtocolError(f"{_subject(message)}malformed '{message.kind}' message: {e}") from None


def _subject(message: Message) -> str:
    try:
        return f"{_SUBJECT.decode(message.header).subtask}: "
    except _MALFORMED:
        return ""


def _check_ids(ack: Ack) -> None:
    if not is_state_id(ack.state_id):
        raise _wrong(ack, f"a state id is a UUID in lower case; found {ack.state_id!r}")
    if ack.base_state_id is not None:
        ack.base_state_id = canonical_state_id(ack.base_state_id)
    if ack.base is not None:
        ack.base.state_id = canonical_state_id(ack.base.state_id)


def _check_segments(ack: Ack, segments: Sequence[SegmentRef]) -> None:
    if not ack.delta.first_version == ack.delta.version == ack.version:
        raise _wrong(ack, f"the delta of version {ack.version} has the versions {_versions(ack.delta)}")
    if ack.base is not None and not ack.base.segment.is_base:
        raise _wrong(ack, f"a base has the versions {_versions(ack.base.segment)}")
    if ack.merged is not None and not 0 < ack.merged.first_version <= ack.merged.version:
        raise _wrong(ack, f"merged deltas have the versions {_versions(ack.merged.segment)}")
    for segment in segments:
        if segment.path is not None and segment.size > segment.file_size:
            raise _wrong(ack, f"{segment.size} bytes exceed {segment.path}, which has {segment.file_size} bytes")


def _versions(segment: SegmentRef) -> str:
    return f"{segment.first_version} to {segment.version}"


def _take_blocks(ack: Ack, segments: Sequence[SegmentRef], index: bytes, payload: memoryview) -> None:
    """Give the segments their blocks, which follow one another in index and payload."""
    at = taken = 0
    for segment in segments:
        assert isinstance(segment.blocks, _Expected)
        count = segment.blocks.count
        end = at + (_GROUP.itemsize + _OFFSET.itemsize) * count
        if end > len(index):
            raise _wrong(ack, f"the segment has {count} blocks, but the index has {len(index)} bytes")
        key_groups = np.frombuffer(index, _GROUP, count, at)
        offsets = np.frombuffer(index, _OFFSET, count, at + _GROUP.itemsize * count)
        data, at = payload[:0], end
        if segment.path is None:
            data = payload[taken : taken + segment.size]
            taken += segment.size
            if len(data) != segment.size:
                raise _wrong(ack, f"the segment has {segment.size} bytes, but the payload holds {len(data)}")
        if (reason := _misplaced(segment, key_groups, offsets)) is not None:
            raise _wrong(ack, reason)
        segment.blocks = Blocks(key_groups, offsets, data)
    if at != len(index) or taken != len(payload):
        raise _wrong(ack, "the index or payload of an ack is longer than its header states")


def _misplaced(segment: SegmentRef, key_groups: NDArray[np.uint32], offsets: NDArray[np.int64]) -> str | None:
    """Reason why the blocks are not those of a segment, or None."""
    if not key_groups.size:
        return None
    if not (_ascends(key_groups) and _ascends(offsets)):
        return "key groups and offsets of a segment must ascend"
    end = segment.size if segment.path is None else segment.file_size
    first, last = int(offsets[0]), int(offsets[-1])
    if first < 0 or last >= end or last - first >= segment.size:
        place = "the payload" if segment.path is None else f"{segment.path}, which has {segment.file_size}"
        return f"offsets of a segment of {segment.size} bytes lie outside of it or of {place}"
    return None


def _ascends(numbers: NDArray[np.integer]) -> bool:
    if numbers.size <= _FEW:
        listed = numbers.tolist()
        return all(map(lt, listed, listed[1:]))
    return bool((numbers[1:] > numbers[:-1]).all())


def _wrong(ack: Ack, reason: str) -> ProtocolError:
    return ProtocolError(f"{ack.subtask}: {reason}")


# ---- replies and notifications ---------------------------------------------------------------------------------------


def ok(request_id: int, reply: Reply | StartReply | None = None) -> Message:
    """Message with a reply; without one, the request has none."""
    if reply is None:
        return Message(request_id, "ok", "", b"{}")
    located = reply.segments if isinstance(reply, LocateReply) else ()
    inputs = reply.compaction.inputs if isinstance(reply, LocateReply | AckReply) else ()
    if not located and not inputs:  # nearly every reply to an ack
        return Message(request_id, "ok", "", _json(reply))
    # After a rescale, the order of the file and that of the key groups differ. A store reads a file in the one, and
    # merges in the other.
    blocks = [*map(_in_file_order, located), *(delta.blocks for delta in inputs)]
    index = b"".join(one.key_groups.astype("<u4").tobytes() + one.offsets.astype("<i8").tobytes() for one in blocks)
    payload = b"".join(segment.data for segment in (*located, *inputs) if segment.path is None)
    return Message(request_id, "ok", "", _json(reply), index, payload)


def _in_file_order(segment: SegmentRef) -> Blocks:
    order = np.argsort(segment.offsets)
    return Blocks(segment.key_groups[order], segment.offsets[order])


def error(request_id: int, name: str, message: str, fatal: bool) -> Message:
    """Message with an error as the reply."""
    return Message(request_id, "error", "", _json(ErrorReply(name, redacted(message), fatal)))


def report(fields: Report) -> Message:
    """Message with a report of a checkpoint."""
    return Message(UNASKED, REPORT, "", _json(fields))


def notification(notified: Notification) -> Message:
    """Message that answers no request."""
    header = msgspec.to_builtins(notified)
    return Message(UNASKED, "notify", header.pop("job"), _json(header))


def _json(value: object) -> bytes:
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:  # lone surrogates, from the bytes of a file name
        return json.dumps(msgspec.to_builtins(value, enc_hook=_to_json)).encode()
