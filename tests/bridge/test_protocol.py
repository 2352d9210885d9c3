from __future__ import annotations

import json
import subprocess
import sys
import uuid
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.bridge import protocol
from spark_ckpt.bridge.protocol import SCHEMA, Message
from spark_ckpt.compaction.merges import digest_of
from spark_ckpt.errors import ProtocolError
from spark_ckpt.format.keys import PartitionFilter, SubtaskKey
from spark_ckpt.format.segment_flags import COMPRESSED, ORDERED
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.messages import (
    Ack,
    AckReply,
    BaseSnapshot,
    Decline,
    Event,
    InProgress,
    LocateReply,
    MergedDeltas,
    Notification,
    Outcome,
    Task,
    Trigger,
)
from tests.bridge import wire
from tests.support.segments import placed

messages = st.builds(
    Message, st.integers(-(2**63), 2**63 - 1), st.text(max_size=8), st.text(), st.binary(), st.binary(max_size=2000)
)


@given(st.lists(messages, min_size=1, max_size=8), st.integers(0, 7))
def test_messages_pass_the_wire_unchanged(originals: list[Message], start: int) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as stream:
        stream.write_batch(protocol.to_batch(originals))
    batch = pa.ipc.open_stream(sink.getvalue()).read_next_batch()
    start = min(start, len(originals))
    for offset, expected in ((0, originals), (start, originals[start:])):
        found = list(protocol.from_batch(batch.slice(offset)))
        assert [(m.id, m.kind, m.header, m.index, bytes(m.payload)) for m in found] == [
            (m.id, m.kind, m.header, m.index, m.payload) for m in expected
        ]


def test_the_side_process_starts_without_pandas() -> None:
    script = """
import sys
from spark_ckpt.bridge import protocol, server
protocol.to_batch([protocol.start_reply(1, "0")])
print([name for name in ("pandas", "pyspark", "click") if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_columns_are_the_documented_ones() -> None:
    assert [(field.name, str(field.type), field.nullable) for field in SCHEMA] == [
        ("id", "int64", False),
        ("kind", "string", False),
        ("header", "string", False),
        ("index", "binary", False),
        ("payload", "binary", False),
    ]


def test_a_stream_of_other_columns_is_refused() -> None:
    protocol.check_schema(SCHEMA)
    protocol.check_schema(pa.schema([field.with_nullable(True) for field in SCHEMA]))
    with pytest.raises(ProtocolError, match="columns"):
        protocol.check_schema(pa.schema([("id", pa.int32())]))


THREE = np.arange(3, dtype=np.uint32)


def segment(groups: int, data: bytes, path: str | None = None, first_version: int = 5, version: int = 5) -> SegmentRef:
    offsets = np.arange(groups, dtype=np.int64) * 7
    return SegmentRef(first_version, version, np.arange(groups, dtype=np.uint32), offsets, len(data), path, data=data)


def base(groups: int, data: bytes, path: str | None = None) -> SegmentRef:
    return segment(groups, data, path, 0, 3)


def ack(delta: SegmentRef, base: SegmentRef | None = None) -> Ack:
    snapshot = None if base is None else BaseSnapshot(base, str(uuid.uuid4()))
    return Ack(
        "job", SubtaskKey(1, "left", 2), 4, 5, str(uuid.uuid4()), Task(1, 0, 2, 3, 17, "1"), 9, delta, None, snapshot, 1
    )


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
        replace(ack(segment(3, b"d" * 30)), base_failure='java.io.IOException: "no space" left'),
    ],
)
def test_an_ack_is_read_as_it_was_written(original: Ack) -> None:
    _, header, index, payload = wire.ack(original)
    found = protocol.parse_ack(header, index, payload)
    assert (found.subtask, found.task, found.version, found.state_id) == (
        original.subtask,
        original.task,
        original.version,
        original.state_id,
    )
    assert found.base_failure == original.base_failure
    assert_same(found.delta, original.delta)
    assert (found.base is None) == (original.base is None)
    if found.base is not None and original.base is not None:
        assert_same(found.base.segment, original.base.segment)
        assert (found.base.version, found.base.state_id) == (original.base.version, original.base.state_id)


def assert_same(found: SegmentRef, original: SegmentRef) -> None:
    assert found.key_groups.tolist() == original.key_groups.tolist()
    assert found.offsets.tolist() == original.offsets.tolist()
    assert (found.first_version, found.version, found.flags) == (
        original.first_version,
        original.version,
        original.flags,
    )
    assert (bytes(found.data), found.size, found.path) == (original.data, original.size, original.path)
    assert found.path is None or found.file_size == original.file_size


def test_what_is_kept_of_an_ack_does_not_hold_its_batch() -> None:
    _, header, index, payload = wire.ack(ack(segment(3, b"d" * 30)))
    parsed = protocol.parse_ack(header, bytes(index), memoryview(payload))
    assert parsed.delta.key_groups.base is not None
    owner = parsed.delta.key_groups.base
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    assert isinstance(owner, bytes)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda h, i, p: (h, i[:-1], p), "its index has"),
        (lambda h, i, p: (h, i + b"!", p), "longer than its header states"),
        (lambda h, i, p: (h, i, p[:-1]), "the payload holds"),
        (lambda h, i, p: (h, i, p + b"!"), "longer than its header states"),
        (lambda h, i, p: ({**h, "ckpt_id": "short"}, i, p), "a ckpt_id is a UUID in lower case"),
        (lambda h, i, p: ({**h, "ckpt_id": h["ckpt_id"].upper()}, i, p), "a ckpt_id is a UUID in lower case"),
        (lambda h, i, p: ({**h, "delta": {**h["delta"], "groups": -1}}, i, p), "-1 key groups"),
        (lambda h, i, p: ({**h, "delta": {**h["delta"], "start": -1}}, i, p), "30 bytes at offset -1 exceed"),
        (lambda h, i, p: ({**h, "delta": {**h["delta"], "start": 11, "file_bytes": 40}}, i, p), "has 40 bytes"),
    ],
)
def test_an_ack_whose_parts_do_not_fit_is_refused(change: object, reason: str) -> None:
    _, header, index, payload = wire.ack(ack(segment(3, b"d" * 30), base(2, b"b" * 20)))
    with pytest.raises(ProtocolError, match=reason):
        protocol.parse_ack(*change(header, index, payload))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("groups", "offsets", "reason"),
    [
        ([5, 3], [0, 10], "ascend"),
        ([3, 5], [10, 0], "ascend"),
        ([3, 5], [0, 100], "outside its 100 bytes"),
        ([3, 5], [-1, 0], "outside its 100 bytes"),
    ],
)
def test_blocks_that_are_not_in_their_segment_are_refused(groups: list[int], offsets: list[int], reason: str) -> None:
    delta = SegmentRef(5, 5, np.array(groups, np.uint32), np.array(offsets, np.int64), 100, data=b"x" * 100)
    _, header, index, payload = wire.ack(ack(delta))
    with pytest.raises(ProtocolError, match=reason):
        protocol.parse_ack(header, index, payload)


@pytest.mark.parametrize("text", ["", "{", "[]", "17"])
def test_a_header_that_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError, match=r"'ack' message is not (JSON|a JSON object)"):
        protocol.parse_header(Message(1, "ack", text))


@pytest.mark.parametrize(
    "reply",
    [
        AckReply(Outcome.SUCCESS, "0" * 32, True, 7, 3),
        AckReply(Outcome.SUCCESS, "0" * 32, True, base_required=True),
        AckReply(Outcome.DENIED, None),
        AckReply(Outcome.UNKNOWN, None, reason='store "left" of\n\u00fcbung'),
    ],
)
def test_the_reply_to_an_ack(reply: AckReply) -> None:
    message = protocol.ack_reply(5, reply)
    assert (message.id, message.kind) == (5, "ok")
    assert json.loads(message.header) == {
        "outcome": reply.outcome.value,
        "ckpt_id": reply.state_id,
        "base_due": reply.base_due,
        "base_required": reply.base_required,
        "completed": reply.completed,
        "completed_version": reply.completed_version,
        "reason": reply.reason,
    }


def test_a_store_is_told_to_keep_copies_of_its_deltas() -> None:
    reply = protocol.ack_reply(5, AckReply(Outcome.SUCCESS, "0" * 32, keep_deltas=True))
    assert json.loads(reply.header)["keep_deltas"] is True
    located = reply_to_locate(())
    assert "keep_deltas" not in json.loads(protocol.locate_reply(5, located).header)
    located = replace(located, keep_deltas=True)
    assert json.loads(protocol.locate_reply(5, located).header)["keep_deltas"] is True


def test_the_reply_to_locate_has_ascending_offsets_and_the_inline_bytes() -> None:
    segments = (
        SegmentRef(0, 6, THREE, np.array([500, 20, 90]), 700, "shared/x", 4096),
        SegmentRef(7, 7, THREE[:2], np.array([0, 40]), 60, data=b"x" * 60, filters=(PartitionFilter(3, (0, 2)),)),
    )
    reply = LocateReply("0" * 32, 7, 64, (4, 2, 2, 2, 2), "dedupe", None, 3, segments, base_due=True)
    message = protocol.locate_reply(5, reply)
    header = json.loads(message.header)
    assert (header["base_due"], header["base_required"]) == (True, False)
    assert json.loads(message.header)["segments"] == [
        {"kind": "base", "path": "shared/x", "count": 3, "bytes": 700, "file_bytes": 4096, "filters": []},
        {"kind": "delta", "path": None, "count": 2, "bytes": 60, "file_bytes": None, "filters": [[3, [0, 2]]]},
    ]
    assert np.frombuffer(message.index, "<i8").tolist() == [20, 90, 500, 0, 40]
    assert message.payload == b"x" * 60


def test_a_reply_by_key_group_has_those_of_the_blocks_in_the_order_of_their_offsets() -> None:
    segments = (
        SegmentRef(0, 6, np.array([9, 4], np.uint32), np.array([500, 20]), 700, "shared/x", 4096),
        SegmentRef(7, 7, np.array([4], np.uint32), np.array([0]), 60, data=b"x" * 60),
    )
    reply = LocateReply("0" * 32, 7, 64, (4, 16), "dedupe", None, 3, segments, by_key_group=True)
    message = protocol.locate_reply(5, reply)
    assert json.loads(message.header)["by_key_group"] is True
    assert np.frombuffer(message.index, "<i8", 2).tolist() == [20, 500]
    assert np.frombuffer(message.index, "<u4", 2, 16).tolist() == [4, 9]
    assert np.frombuffer(message.index, "<i8", 1, 24).tolist() == [0]
    assert np.frombuffer(message.index, "<u4", 1, 32).tolist() == [4]
    assert len(message.index) == 36
    assert "by_key_group" not in json.loads(protocol.locate_reply(5, reply_to_locate(())).header)


def delta(first_version: int, version: int, size: int, path: str | None) -> SegmentRef:
    groups, offsets = np.array([3, 9], np.uint32), np.array([100, 140], np.int64)
    data = b"" if path else b"%d" % version * size
    return SegmentRef(first_version, version, groups, offsets, size, path, 900, data)


def test_a_demand_for_merged_deltas_names_them_with_their_blocks() -> None:
    deltas = (delta(3, 5, 60, "shared/x"), delta(6, 6, 4, None))
    for message, index, payload in (
        (protocol.ack_reply(5, AckReply(Outcome.SUCCESS, "0" * 32, merge=deltas)), 0, 0),
        (protocol.locate_reply(5, reply_to_locate(deltas)), 16, 60),
    ):
        merge = json.loads(message.header)["merge"]
        assert (merge["first_version"], merge["version"], merge["inputs"]) == (3, 6, digest_of(deltas))
        assert merge["deltas"] == [
            {"path": "shared/x", "groups": 2, "bytes": 60, "file_bytes": 900, "first_version": 3, "version": 5},
            {"path": None, "groups": 2, "bytes": 4, "file_bytes": 900, "first_version": 6, "version": 6},
        ]
        for start in (index, index + 24):
            assert np.frombuffer(message.index, "<u4", 2, start).tolist() == [3, 9]
            assert np.frombuffer(message.index, "<i8", 2, start + 8).tolist() == [100, 140]
        assert message.payload[payload:] == b"6666"


def reply_to_locate(merge: tuple[SegmentRef, ...]) -> LocateReply:
    segments = (SegmentRef(6, 7, THREE[:2], np.array([0, 40]), 60, data=b"x" * 60),)
    return LocateReply("0" * 32, 7, 64, (4, 2, 2, 2, 2), "dedupe", None, 3, segments, merge=merge)


def test_a_located_delta_says_how_many_versions_it_covers() -> None:
    header = json.loads(protocol.locate_reply(5, reply_to_locate(())).header)
    assert "merge" not in header
    assert header["segments"][0]["covers"] == 2


def test_an_ack_with_merged_deltas_is_read_as_it_was_written() -> None:
    original = ack(segment(3, b"d" * 30), None)
    original.merged = MergedDeltas(segment(2, b"m" * 20, None, 3, 6), "0" * 32)
    original.in_progress = (InProgress(0, 2), InProgress(7, 9))
    _, header, index, payload = wire.ack(original)
    parsed = protocol.parse_ack(header, index, payload)
    merged = parsed.merged
    assert merged is not None
    assert (merged.first_version, merged.version, merged.inputs) == (3, 6, "0" * 32)
    assert (bytes(merged.segment.data), merged.segment.offsets.tolist()) == (b"m" * 20, [0, 7])
    assert parsed.in_progress == original.in_progress
    header["merged"]["first_version"] = 7
    with pytest.raises(ProtocolError, match="versions 7 to 6"):
        protocol.parse_ack(header, index, payload)


def test_a_decline_is_read_as_it_was_written() -> None:
    original = Decline("job", SubtaskKey(1, "left", 2), 4, 5, Task(1, 0, 2, 3, 17, "1"), "no space left")
    assert protocol.parse_decline(wire.decline(original)[1]) == original


@pytest.mark.parametrize(
    "notified",
    [
        Notification("job", Event.COMPLETE, 5, 9),
        Notification("job", Event.ABORTED, 5, reason='expired: "left"'),
        Notification("job", Event.SUBSUMED, 3, 7),
    ],
)
def test_a_notification(notified: Notification) -> None:
    message = protocol.notification(notified)
    assert (message.id, message.kind, message.index, message.payload) == (-1, "notify", b"", b"")
    assert json.loads(message.header) == {
        "job": "job",
        "event": notified.event.value,
        "version": notified.version,
        "checkpoint_id": notified.checkpoint_id,
        "reason": notified.reason,
    }


@pytest.mark.parametrize("name", ["caf\u00e9", "\udcff of a file name"])
def test_a_report(name: str) -> None:
    fields = {"status": "failed", "query_name": name, "subtasks": [[0, "default", 1, None]]}
    message = protocol.report(fields)
    assert (message.id, message.kind, message.index, message.payload) == (-1, "report", b"", b"")
    assert json.loads(message.header) == fields
    assert protocol.to_batch([message]).num_rows == 1


@pytest.mark.parametrize("wanted", [False, True])
def test_a_trigger_asks_for_details_of_reports(wanted: bool) -> None:
    original = Trigger("job", "location", "query", 0, 1, (), report_details=wanted)
    assert protocol.parse_trigger(wire.trigger(original)[1]).report_details is wanted
