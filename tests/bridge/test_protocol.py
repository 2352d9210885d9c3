from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.bridge import protocol
from spark_ckpt.bridge.protocol import SCHEMA, Message
from spark_ckpt.errors import ProtocolError

messages = st.builds(
    Message,
    st.integers(-(2**63), 2**63 - 1),
    st.text(max_size=8),
    st.text(),
    st.text().map(str.encode),
    st.binary(),
    st.binary(max_size=2000),
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
        assert [(m.id, m.kind, m.job, m.header, m.index, bytes(m.payload)) for m in found] == [
            (m.id, m.kind, m.job, m.header, m.index, m.payload) for m in expected
        ]


def test_the_side_process_starts_without_pandas() -> None:
    script = """
import sys
from spark_ckpt.bridge import codec, protocol, server
protocol.to_batch([codec.ok(1)])
print([name for name in ("pandas", "pyspark", "click") if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_columns_are_the_documented_ones() -> None:
    assert [(field.name, str(field.type), field.nullable) for field in SCHEMA] == [
        ("id", "int64", False),
        ("kind", "string", False),
        ("job", "string", False),
        ("header", "string", False),
        ("index", "binary", False),
        ("payload", "binary", False),
    ]


def test_a_stream_of_other_columns_is_refused() -> None:
    protocol.check_schema(SCHEMA)
    protocol.check_schema(pa.schema([field.with_nullable(True) for field in SCHEMA]))
    with pytest.raises(ProtocolError, match="columns"):
        protocol.check_schema(pa.schema([("id", pa.int32())]))


def test_a_stream_of_an_earlier_jar_is_refused_by_name() -> None:
    columns = [field for field in SCHEMA if field.name != "job"]
    with pytest.raises(ProtocolError, match="an earlier version of the protocol than 5"):
        protocol.check_schema(pa.schema(columns))
