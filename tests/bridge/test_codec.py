"""Requests and replies as messages."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spark_ckpt.bridge import codec
from spark_ckpt.bridge.protocol import Message, to_batch
from spark_ckpt.checkpoint.restore_plan import RestorePlan
from spark_ckpt.errors import ProtocolError
from spark_ckpt.format.keys import PartitionFilter, SubtaskKey
from spark_ckpt.format.segment_flags import COMPRESSED, ORDERED
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.messages import (
    NO_COMPACTION,
    Ack,
    AckReply,
    BaseSnapshot,
    CompactionRequest,
    Decline,
    Event,
    InProgress,
    Kind,
    LocateReply,
    MergedDeltas,
    Notification,
    Outcome,
    Task,
    Trigger,
)
from tests.bridge import wire
from tests.support.segments import placed, segment_ref

THREE = np.arange(3, dtype=np.uint32)


def segment(groups: int, data: bytes, first_version: int = 5, version: int = 5) -> SegmentRef:
    offsets = np.arange(groups, dtype=np.int64) * 7
    return segment_ref(first_version, version, np.arange(groups, dtype=np.uint32), offsets, len(data), data=data)


def base(groups: int, data: bytes) -> SegmentRef:
    return segment(groups, data, 0, 3)


def ack(delta: SegmentRef, base: SegmentRef | None = None) -> Ack:
    return Ack(
        subtask=SubtaskKey(1, "left", 2),
        batch_id=4,
        version=5,
        state_id=str(uuid.uuid4()),
        task=Task(1, 0, 2, 3, 17, "1"),
        rows=9,
        delta=delta,
        base=None if base is None else BaseSnapshot(base, str(uuid.uuid4())),
        rows_updated=1,
        job="job",
    )


def decoded(request: wire.Request) -> Any:
    return codec.decode(wire.message_of(request))


@pytest.mark.parametrize(
    "original",
    [
        ack(segment(3, b"d" * 30)),
        ack(segment(0, b"")),
        ack(segment(3, b"d" * 30), base(2, b"b" * 20)),
        ack(placed(segment(3, b"d" * 30), "shared/x"), base(2, b"b" * 20)),
        ack(segment(3, b"d" * 30), placed(base(2, b"b" * 20), "shared/y")),
        ack(placed(segment(3, b"d" * 30), "shared/z", 40, 100)),
        ack(replace(segment(3, b"d" * 30), flags=COMPRESSED.bit), base(2, b"b" * 20)),
        ack(segment(3, b"d" * 30), replace(base(2, b"b" * 20), flags=ORDERED.bit)),
        ack(segment(3, b"d" * 30), replace(base(2, b"b" * 20), flags=1 << 30)),
        replace(ack(segment(3, b"d" * 30)), compaction_failure='java.io.IOException: "no space" left'),
    ],
)
def test_an_ack_is_read_as_it_was_written(original: Ack) -> None:
    found = decoded(wire.ack(original))
    assert (found.job, found.subtask, found.task, found.version, found.state_id) == (
        "job",
        original.subtask,
        original.task,
        original.version,
        original.state_id,
    )
    assert found.compaction_failure == original.compaction_failure
    assert_same(found.delta, original.delta)
    assert (found.base is None) == (original.base is None)
    if found.base is not None and original.base is not None:
        assert_same(found.base.segment, original.base.segment)
        assert (found.base.version, found.base.state_id) == (original.base.version, original.base.state_id)


def assert_same(found: SegmentRef, original: SegmentRef) -> None:
    assert found.key_groups.tolist() == original.key_groups.tolist()
    assert found.offsets.tolist() == original.offsets.tolist()
    assert bytes(found.data) == original.data
    names = ("first_version", "version", "size", "path", "file_size", "flags")
    assert [getattr(found, name) for name in names] == [getattr(original, name) for name in names]


def test_what_is_kept_of_an_ack_does_not_hold_its_batch() -> None:
    parsed = decoded(wire.ack(ack(segment(3, b"d" * 30))))
    owner = parsed.delta.key_groups.base
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    assert isinstance(owner, bytes)


def without(header: dict[str, Any], name: str) -> dict[str, Any]:
    return {other: value for other, value in header.items() if other != name}


def in_delta(header: dict[str, Any], **fields: object) -> dict[str, Any]:
    return {**header, "delta": {**header["delta"], **fields}}


def in_base(header: dict[str, Any], **fields: object) -> dict[str, Any]:
    return {**header, "base": {**header["base"], "segment": {**header["base"]["segment"], **fields}}}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda h, i, p: (h, i[:-1], p), "the index has"),
        (lambda h, i, p: (h, i + b"!", p), "longer than its header states"),
        (lambda h, i, p: (h, i, p[:-1]), "the payload holds"),
        (lambda h, i, p: (h, i, p + b"!"), "longer than its header states"),
        (lambda h, i, p: ({**h, "state_id": "short"}, i, p), "a state id is a UUID in lower case"),
        (lambda h, i, p: ({**h, "state_id": h["state_id"].upper()}, i, p), "a state id is a UUID in lower case"),
        (lambda h, i, p: ({**h, "state_id": 7}, i, p), r"Expected `str`, got `int` - at `\$.state_id`"),
        (lambda h, i, p: ({**h, "version": 1 << 63}, i, p), r"`int` <= 9223372036854775807 - at `\$.version`"),
        (lambda h, i, p: (in_delta(h, blocks=-1), i, p), r"Expected a number of blocks - at `\$.delta.blocks`"),
        (lambda h, i, p: (in_delta(h, blocks="3"), i, p), r"Expected a number of blocks - at `\$.delta.blocks`"),
        (lambda h, i, p: (in_delta(h, blocks=1 << 32), i, p), "the segment has 4294967296 blocks, but the index has"),
        (lambda h, i, p: (in_delta(h, blocks=1 << 70), i, p), "blocks, but the index has"),
        (lambda h, i, p: (in_delta(h, size=-1), i, p), r"Expected `int` >= 0 - at `\$.delta.size`"),
        (lambda h, i, p: (in_delta(h, path="shared/x", file_size=29), i, p), "30 bytes exceed shared/x, which has 29"),
        (lambda h, i, p: (in_delta(h, first_version=4), i, p), "the delta of version 5 has the versions 4 to 5"),
        (lambda h, i, p: (in_base(h, first_version=1), i, p), "a base has the versions 1 to 3"),
        (lambda h, i, p: (without(h, "task"), i, p), "missing required field `task`"),
    ],
)
def test_an_ack_whose_parts_do_not_fit_is_refused_by_the_name_of_its_subtask(change: Any, reason: str) -> None:
    kind, header, index, payload = wire.ack(ack(segment(3, b"d" * 30), base(2, b"b" * 20)))
    with pytest.raises(ProtocolError, match=f"^operator 1, store left, partition 2: .*{reason}"):
        decoded((kind, *change(header, index, payload)))


def test_an_ack_without_a_subtask_is_refused() -> None:
    kind, header, index, payload = wire.ack(ack(segment(3, b"d" * 30)))
    with pytest.raises(ProtocolError, match=r"^malformed 'ack' message: Object missing required field `subtask`"):
        decoded((kind, without(header, "subtask"), index, payload))


@pytest.mark.parametrize(
    ("groups", "offsets", "reason"),
    [
        ([5, 3], [0, 10], "ascend"),
        ([3, 5], [10, 0], "ascend"),
        ([3, 5], [0, 100], "of 100 bytes lie outside"),
        ([3, 5], [-1, 0], "of 100 bytes lie outside"),
    ],
)
def test_blocks_that_are_not_in_their_segment_are_refused(groups: list[int], offsets: list[int], reason: str) -> None:
    delta = segment_ref(5, 5, np.array(groups, np.uint32), np.array(offsets, np.int64), 100, data=b"x" * 100)
    with pytest.raises(ProtocolError, match=f"^operator 1, store left, partition 2: .*{reason}"):
        decoded(wire.ack(ack(delta)))


@pytest.mark.parametrize("start", [-1, 61])
def test_blocks_that_are_not_in_their_file_are_refused(start: int) -> None:
    delta = segment_ref(5, 5, THREE[:2], np.array([start, start + 39]), 40, "shared/x", 100)
    with pytest.raises(ProtocolError, match=r"^operator 1, store left, partition 2: .*shared/x, which has 100"):
        decoded(wire.ack(ack(delta)))


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"17", b"\xff"])
def test_a_header_that_is_no_json_object_is_refused(text: bytes) -> None:
    with pytest.raises(ProtocolError, match="malformed 'ack' message"):
        codec.decode(Message(1, "ack", "job", text))


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ProtocolError, match="unknown message 'wish' in version 5"):
        codec.decode(Message(1, "wish", "job", b"{}"))


@pytest.mark.parametrize(
    "reply",
    [
        AckReply(Outcome.SUCCESS, "0" * 32, CompactionRequest(Kind.FULL), 7, 3),
        AckReply(Outcome.SUCCESS, "0" * 32, CompactionRequest(Kind.FULL, required=True), keep_deltas=True),
        AckReply(Outcome.DENIED, None),
        AckReply(Outcome.UNKNOWN, None, reason='store "left" of\n\u00fcbung'),
    ],
)
def test_the_reply_to_an_ack(reply: AckReply) -> None:
    message = codec.ok(5, reply)
    assert (message.id, message.kind, message.job) == (5, "ok", "")
    assert json.loads(message.header) == {
        "outcome": reply.outcome.value,
        "state_id": reply.state_id,
        "compaction": {
            "kind": reply.compaction.kind.value,
            "inputs": [],
            "digest": "",
            "required": reply.compaction.required,
            "heavy": False,
        },
        "completed": reply.completed,
        "completed_version": reply.completed_version,
        "reason": reply.reason,
        "keep_deltas": reply.keep_deltas,
    }


def test_the_reply_to_locate_has_ascending_offsets_with_their_key_groups_and_the_inline_bytes() -> None:
    segments = (
        segment_ref(0, 6, np.array([4, 7, 9], np.uint32), np.array([500, 20, 90]), 700, "shared/x", 4096),
        segment_ref(6, 7, THREE[:2], np.array([0, 40]), 60, data=b"x" * 60, filters=(PartitionFilter(3, (0, 2)),)),
    )
    message = codec.ok(5, located(segments, CompactionRequest(Kind.FULL)))
    assert json.loads(message.header)["segments"] == [
        described(0, 6, 3, 700, "shared/x", 4096),
        described(6, 7, 2, 60) | {"filters": [[3, [0, 2]]]},
    ]
    assert np.frombuffer(message.index, "<u4", 3).tolist() == [7, 9, 4]
    assert np.frombuffer(message.index, "<i8", 3, 12).tolist() == [20, 90, 500]
    assert np.frombuffer(message.index, "<u4", 2, 36).tolist() == [0, 1]
    assert np.frombuffer(message.index, "<i8", 2, 44).tolist() == [0, 40]
    assert message.payload == b"x" * 60


def test_a_request_for_merged_deltas_names_them_with_their_blocks() -> None:
    blocks = np.array([3, 9], np.uint32), np.array([100, 140])
    deltas = (
        segment_ref(3, 5, *blocks, 60, "shared/x", 900),
        segment_ref(6, 6, *blocks, 4, data=b"6666"),
    )
    compaction = CompactionRequest(Kind.MERGE, deltas, "digest", heavy=True)
    inline = segment_ref(1, 2, THREE[:2], np.array([0, 40]), 60, data=b"x" * 60)
    for message, index, payload in (
        (codec.ok(5, AckReply(Outcome.SUCCESS, "0" * 32, compaction)), 0, 0),
        (codec.ok(5, located((inline,), compaction)), 24, 60),
    ):
        assert json.loads(message.header)["compaction"] == {
            "kind": "merge",
            "inputs": [described(3, 5, 2, 60, "shared/x", 900), described(6, 6, 2, 4)],
            "digest": "digest",
            "required": False,
            "heavy": True,
        }
        for start in (index, index + 24):
            assert np.frombuffer(message.index, "<u4", 2, start).tolist() == [3, 9]
            assert np.frombuffer(message.index, "<i8", 2, start + 8).tolist() == [100, 140]
        assert message.payload[payload:] == b"6666"


def test_the_reply_to_locate_has_the_plan_of_the_restore() -> None:
    reply = replace(located(()), restore=RestorePlan("by_row", 500, 25, 3, 1000))
    assert json.loads(codec.ok(5, reply).header)["restore"] == {
        "mode": "by_row",
        "budget": 500,
        "row_cost": 25,
        "key_group_cost": 3,
        "rest_after_ms": 1000,
    }
    assert json.loads(codec.ok(5, located(())).header)["restore"]["mode"] == "by_segment"


def test_blocks_are_in_the_order_of_the_file_to_be_loaded_and_in_that_of_their_key_groups_to_be_merged() -> None:
    """After a rescale, these orders differ. A merge passes over blocks that are not where it expects them."""
    rescaled = segment_ref(3, 3, np.array([4, 7, 9], np.uint32), np.array([500, 20, 90]), 700, "shared/x", 4096)
    message = codec.ok(5, located((rescaled,), CompactionRequest(Kind.MERGE, (rescaled, rescaled), "digest")))
    found = [
        (np.frombuffer(message.index, "<u4", 3, at).tolist(), np.frombuffer(message.index, "<i8", 3, at + 12).tolist())
        for at in (0, 36, 72)
    ]
    assert found == [([7, 9, 4], [20, 90, 500]), *[([4, 7, 9], [500, 20, 90])] * 2]


def located(segments: tuple[SegmentRef, ...], compaction: CompactionRequest = NO_COMPACTION) -> LocateReply:
    return LocateReply("0" * 32, 7, 64, (4, 16), "dedupe", None, 3, segments, compaction)


def described(
    first_version: int, version: int, blocks: int, size: int, path: str | None = None, file_size: int = 0
) -> dict[str, Any]:
    """A segment in JSON."""
    return {
        "first_version": first_version,
        "version": version,
        "blocks": blocks,
        "size": size,
        "path": path,
        "file_size": file_size,
        "filters": [],
        "flags": 0,
    }


def test_an_ack_with_merged_deltas_is_read_as_it_was_written() -> None:
    original = ack(segment(3, b"d" * 30), None)
    original.merged = MergedDeltas(segment(2, b"m" * 20, 3, 6), "0" * 32)
    original.in_progress = (InProgress(0, 2), InProgress(7, 9))
    kind, header, index, payload = wire.ack(original)
    parsed = decoded((kind, header, index, payload))
    assert (parsed.merged.first_version, parsed.merged.version, parsed.merged.digest) == (3, 6, "0" * 32)
    assert (bytes(parsed.merged.segment.data), parsed.merged.segment.offsets.tolist()) == (b"m" * 20, [0, 7])
    assert parsed.in_progress == original.in_progress
    header["merged"]["segment"]["first_version"] = 7
    with pytest.raises(ProtocolError, match="versions 7 to 6"):
        decoded((kind, header, index, payload))


def test_a_decline_is_read_as_it_was_written() -> None:
    original = Decline(SubtaskKey(1, "left", 2), 4, 5, Task(1, 0, 2, 3, 17, "1"), "no space left", job="job")
    assert decoded(wire.decline(original)) == original


@pytest.mark.parametrize(
    "notified",
    [
        Notification("job", Event.COMPLETE, 5, 9),
        Notification("job", Event.ABORTED, 5, reason='expired: "left"'),
        Notification("job", Event.GOING_BACK, None),
        Notification("job", Event.RESCALE, None, partitions=8),
    ],
)
def test_a_notification(notified: Notification) -> None:
    message = codec.notification(notified)
    assert (message.id, message.kind, message.job) == (-1, "notify", "job")
    assert (message.index, message.payload) == (b"", b"")
    assert json.loads(message.header) == {
        "event": notified.event.value,
        "version": notified.version,
        "checkpoint_id": notified.checkpoint_id,
        "reason": notified.reason,
        "partitions": notified.partitions,
    }


def test_text_that_is_not_utf8_reaches_the_driver() -> None:
    """Names of files are bytes. Python has those that are no text as lone surrogates."""
    message = codec.error(5, "StorageError", "\udcff of a file name", False)
    assert json.loads(message.header) == {"error": "StorageError", "message": "\udcff of a file name", "fatal": False}
    reply = located((segment_ref(1, 2, THREE, np.array([0, 7, 14]), 60, "shared/\udcff", 60),), CompactionRequest())
    assert json.loads(codec.ok(5, reply).header)["segments"] == [described(1, 2, 3, 60, "shared/\udcff", 60)]


@pytest.mark.parametrize("name", ["caf\u00e9", "\udcff of a file name"])
def test_a_report(name: str) -> None:
    fields = {"status": "failed", "query_name": name, "subtasks": [[0, "default", 1, None]]}
    message = codec.report(fields)
    assert (message.id, message.kind, message.index, message.payload) == (-1, "report", b"", b"")
    assert json.loads(message.header) == fields
    assert to_batch([message]).num_rows == 1


@pytest.mark.parametrize("wanted", [False, True])
def test_a_trigger_asks_for_details_of_reports(wanted: bool) -> None:
    original = Trigger("location", "query", 0, 1, (), report_details=wanted, job="job")
    assert decoded(wire.trigger(original)).report_details is wanted
