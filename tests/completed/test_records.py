from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.completed import ClaimRecord, MetadataReference, OperatorSummary, Record, decode_record, encode_record
from spark_ckpt.errors import CorruptRecordError
from tests.completed.making import owner, record

RECORDS: list[Record] = [record(7, 3), ClaimRecord(9, 4, owner("ü"), "attempt", 1_700_000_000_000)]


@pytest.mark.parametrize("original", RECORDS, ids=lambda r: r.kind)
def test_a_record_is_read_as_it_was_written(original: Record) -> None:
    assert decode_record(encode_record(original), "file", original.id) == original


def test_a_checkpoint_record_has_the_documented_fields() -> None:
    fields = json.loads(encode_record(record(7, 3)))
    assert list(fields) == [
        "format",
        "kind",
        "id",
        "generation",
        "owner",
        "attempt",
        "batch_id",
        "version",
        "timestamp_ms",
        "duration_ms",
        "state_bytes",
        "new_bytes",
        "rows",
        "operators",
        "metadata",
        "digest",
    ]
    assert list(fields["owner"]) == ["host", "pid", "process_token", "query_id", "run_id"]
    assert MetadataReference(**fields["metadata"]) == record(7, 3).metadata
    assert OperatorSummary(**fields["operators"][0]) == record(7, 3).operators[0]


@given(st.data())
def test_no_change_of_a_byte_goes_unnoticed(data: st.DataObject) -> None:
    original = data.draw(st.sampled_from(RECORDS))
    encoded = bytearray(encode_record(original))
    position = data.draw(st.integers(0, len(encoded) - 2))  # the last byte is a newline
    encoded[position] ^= data.draw(st.integers(1, 255))
    with suppress(CorruptRecordError):
        assert decode_record(bytes(encoded), "file", original.id) == original  # white space became other white space
