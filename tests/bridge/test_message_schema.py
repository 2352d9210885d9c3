"""The JSON schema of the messages is that of what the codec reads and writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from spark_ckpt.bridge import codec
from spark_ckpt.bridge.protocol import Message
from spark_ckpt.checkpoint.policy import ShippingLimits
from spark_ckpt.errors import ProtocolError
from spark_ckpt.format.keys import PartitionFilter
from spark_ckpt.messages import (
    AckReply,
    CompactionRequest,
    EndOffsetsReply,
    Event,
    Kind,
    LocateReply,
    Notification,
    Outcome,
    RescaleReply,
    TriggerReply,
)
from tests.bridge import wire
from tests.bridge.hostile import KINDS, changes, requests, without_job
from tests.support.segments import segment_ref

SCHEMA: dict[str, Any] = json.loads((Path(__file__).resolve().parents[2] / "docs" / "messages.json").read_text())


def of(reference: dict[str, str]) -> Draft202012Validator:
    """Validator of a definition, which refuses fields that it lacks."""
    definitions = {
        name: {**definition, "unevaluatedProperties": False} if "properties" in definition else definition
        for name, definition in SCHEMA["$defs"].items()
    }
    return Draft202012Validator({"$defs": definitions, **reference})


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert set(SCHEMA["requests"]) == set(KINDS)


@pytest.mark.parametrize("request_", requests(), ids=KINDS)
def test_it_has_each_field_of_a_request(request_: wire.Request) -> None:
    kind, header, _, _ = request_
    of(SCHEMA["requests"][kind]["request"]).validate(json.loads(json.dumps(without_job(header))))


@pytest.mark.parametrize("request_", requests(), ids=KINDS)
def test_it_accepts_what_the_codec_reads(request_: wire.Request) -> None:
    """The codec refuses more: ids, versions and sizes that contradict each other, and integers beyond 64 bits."""
    kind, header, index, payload = request_
    validator = Draft202012Validator({"$defs": SCHEMA["$defs"], **SCHEMA["requests"][kind]["request"]})
    read = 0
    for changed in changes(without_job(header)):
        text = json.dumps(changed)
        try:
            codec.decode(Message(1, kind, "job", text.encode(), index, payload))
        except ProtocolError:
            continue
        validator.validate(json.loads(text))
        read += 1
    assert read


SEGMENT = segment_ref(
    2, 4, np.arange(2, dtype=np.uint32), np.array([0, 7]), 9, "x", 9, filters=(PartitionFilter(3, (0,)),)
)
LIMITS = ShippingLimits(1, 2, 3)
MERGE = CompactionRequest(Kind.MERGE, (SEGMENT,), "digest")


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        ("start", codec.StartReply("1.0")),
        ("trigger", TriggerReply(1, 64, (4, 16), LIMITS)),
        ("locate", LocateReply(None, None, 64, (4, 16), "dedupe", None, 0, ())),
        ("locate", LocateReply("id", 7, 64, (4, 16), "dedupe", 2, 3, (SEGMENT,), MERGE, LIMITS)),
        ("ack", AckReply(Outcome.SUCCESS, "id", MERGE, 7, 3)),
        ("ack", AckReply(Outcome.DENIED, None, reason="another attempt")),
        ("end_offsets", EndOffsetsReply(7, 3)),
        ("rescale", RescaleReply(3)),
        ("rescale", RescaleReply(3, {"0": (("a", "b"), ("c", "d"))})),
    ],
)
def test_it_has_each_field_of_a_reply(kind: str, reply: Any) -> None:
    of(SCHEMA["requests"][kind]["reply"]).validate(json.loads(codec.ok(1, reply).header))


def test_requests_without_a_reply_in_it_have_none() -> None:
    assert json.loads(codec.ok(1).header) == {}


def test_it_has_notifications_and_errors() -> None:
    of(SCHEMA["notify"]).validate(json.loads(codec.notification(Notification("job", Event.COMPLETE, 5, 9)).header))
    wanted = Notification("job", Event.RESCALE, None, partitions=8)
    of(SCHEMA["notify"]).validate(json.loads(codec.notification(wanted).header))
    of(SCHEMA["error"]).validate(json.loads(codec.error(1, "StorageError", "no answer", True).header))
