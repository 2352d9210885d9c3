"""Messages that no driver sends: each is refused by one type of error, whose text has nothing of their settings."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest

from spark_ckpt.bridge import codec, protocol
from spark_ckpt.bridge.protocol import Message
from spark_ckpt.errors import ProtocolError
from tests.bridge import wire
from tests.bridge.hostile import KINDS, MARKER, changes, requests, without_job


def test_the_requests_are_all_kinds_and_are_read() -> None:
    assert set(KINDS) == set(codec.REQUESTS)
    for request in requests():
        codec.decode(wire.message_of(request))


@pytest.mark.parametrize("request_", requests(), ids=KINDS)
def test_a_value_of_another_type_or_size_is_refused_or_read(request_: wire.Request) -> None:
    kind, header, index, payload = request_
    for changed in changes(without_job(header)):
        assert_refused_or_read(Message(1, kind, "job", json.dumps(changed).encode(), index, payload))


@pytest.mark.parametrize("request_", requests(), ids=KINDS)
def test_random_bytes_in_a_message_are_refused_or_read(request_: wire.Request, rng: random.Random) -> None:
    original = wire.message_of(request_)
    for _ in range(1000):
        header, index, payload = original.header, original.index, bytes(original.payload)
        for _ in range(rng.randint(1, 3)):
            part = rng.randrange(4)
            if part == 0:
                index = damaged(index, rng)
            elif part == 1:
                payload = damaged(payload, rng)
            else:
                header = damaged(header, rng)
        assert_refused_or_read(Message(1, original.kind, "job", header, index, payload))


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Copy with a few bytes replaced, removed, inserted or moved."""
    at, end = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
    return rng.choice(
        (
            data[:at] + rng.randbytes(rng.randint(0, 4)) + data[at + 1 :],
            data[:at] + rng.choice(b'"\\{}[],:-09eEn\xff').to_bytes(1, "big") + data[at + 1 :],
            data[:at],
            data[:at] + data[end:],
            data[:end] + data[at:],
        )
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"null",
        b"{",
        b"\xef\xbb\xbf{}",
        b'{"x": NaN}',
        b'{"x": "\xff"}',
        b'{"\xff": 1}',
        b'{"x": "\\ud800"}',
        b'{"x": 1e999999999}',
        b'{"x": ' + b"9" * 100_000 + b"}",
        b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"delta": {"blocks": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        b'{"subtask": ' + b'{"x":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
    ],
    ids=lambda header: repr(header[:24]),
)
def test_a_hostile_header_is_refused_or_ignored(kind: str, header: bytes) -> None:
    assert_refused_or_read(Message(1, kind, "job", header))


def test_of_two_fields_with_one_name_the_last_one_counts() -> None:
    """Jackson reads them so, too."""
    message = Message(1, "close", "job", b'{"status": "failed", "status": "finished"}')
    assert codec.decode(message) == codec.decode(Message(1, "close", "job", b'{"status": "finished"}'))


@pytest.mark.parametrize("kind", ["check", "trigger"])
@pytest.mark.parametrize(
    "settings",
    [
        MARKER,
        [MARKER],
        {MARKER: 7},
        {MARKER: None},
        {MARKER: [MARKER]},
        {MARKER: {MARKER: MARKER}},
        {MARKER: "\ud800" + MARKER},
    ],
)
def test_no_error_has_a_setting(kind: str, settings: object) -> None:
    (header,) = (fields for name, fields, _, _ in requests() if name == kind)
    for name in ("settings", "hadoop") if kind == "trigger" else ("settings",):
        message = Message(1, kind, "job", json.dumps({**without_job(header), name: settings}).encode())
        with pytest.raises(ProtocolError) as refused:
            codec.decode(message)
        assert MARKER not in str(refused.value)
        assert refused.value.__cause__ is None


def assert_refused_or_read(message: Message) -> None:
    text = ""
    try:
        codec.decode(message)
    except ProtocolError as e:
        text = str(e)
    assert MARKER not in text


# ---- columns ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", protocol.SCHEMA.names)
def test_a_null_in_a_column_is_refused(column: str) -> None:
    batch = protocol.to_batch([Message(1, "ack", "job", b"{}")])
    at = batch.schema.get_field_index(column)
    columns = [pa.nulls(1, field.type) if i == at else batch.column(i) for i, field in enumerate(batch.schema)]
    schema = pa.schema([field.with_nullable(True) for field in batch.schema])
    with pytest.raises(ProtocolError, match="null"):
        list(protocol.from_batch(pa.RecordBatch.from_arrays(columns, schema=schema)))


def test_a_kind_that_is_not_utf8_is_unknown() -> None:
    batch = protocol.to_batch([Message(1, "", "", b"{}")])
    columns = batch.columns
    for i, text in ((1, b"\xffack"), (2, b"job\xff")):
        columns[i] = pa.array([text], pa.binary()).view(pa.utf8())
    (message,) = protocol.from_batch(pa.RecordBatch.from_arrays(columns, schema=batch.schema))
    assert (message.kind, message.job) == ("\ufffdack", "job\ufffd")
    with pytest.raises(ProtocolError, match="unknown message"):
        codec.decode(message)
