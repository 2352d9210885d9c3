from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.completed import ClaimRecord, MetadataReference, OperatorSummary, Record, decode_record, encode_record
from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.completed.processes import ProcessIdentity
from spark_ckpt.errors import UnsupportedFormatError
from tests.completed.records import changed, owner, record

BAD_PATHS = json.loads((Path(__file__).parents[1] / "storage" / "paths.json").read_text())["metadata"]["bad"]
RECORDS: list[Record] = [
    record(7, 3),
    ClaimRecord(9, 4, owner("ü"), "attempt", 1_700_000_000_000),
    ClaimRecord(9, 4, owner("ü"), "attempt", 1_700_000_000_000, (3, 4, 8), ProcessIdentity("b", "n", 5)),
    ClaimRecord(9, 4, owner("ü"), "attempt", 1_700_000_000_000, (3, 4, 8), log_epoch=2, release="0.2.0"),
]


@pytest.mark.parametrize(
    "original", RECORDS, ids=["checkpoint", "claim of an earlier release", "claim", "claim with all fields"]
)
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


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_record_that_names_another_file_is_refused(path: str) -> None:
    """A record that names another file is refused even with a valid digest: it may be forged."""
    forged = replace(record(7, 3), metadata=replace(record(7, 3).metadata, path=path))
    with pytest.raises(DamagedRecordError, match="not the _metadata of a checkpoint"):
        decode_record(encode_record(forged), "file", 7)


@given(st.data())
def test_no_change_of_a_byte_goes_unnoticed(data: st.DataObject) -> None:
    original = data.draw(st.sampled_from(RECORDS))
    encoded = bytearray(encode_record(original))
    position = data.draw(st.integers(0, len(encoded) - 2))  # the last byte is a newline
    encoded[position] ^= data.draw(st.integers(1, 255))
    with suppress(DamagedRecordError):
        assert decode_record(bytes(encoded), "file", original.id) == original  # other white space


@pytest.mark.parametrize("original", RECORDS, ids=lambda r: r.kind)
def test_fields_that_a_later_release_adds_are_ignored(original: Record) -> None:
    added = changed(original, colour="green", owner=json.loads(encode_record(original))["owner"] | {"zone": "b"})
    assert decode_record(added, "file", original.id) == original


@pytest.mark.parametrize(
    ("fields", "needs"),
    [({"features": ["from-the-future"]}, "the features from-the-future"), ({"format": 2}, "record format 2")],
)
@pytest.mark.parametrize("original", RECORDS, ids=lambda r: r.kind)
def test_what_a_later_release_would_have_to_read_is_refused(
    original: Record, fields: dict[str, object], needs: str
) -> None:
    with pytest.raises(
        UnsupportedFormatError, match=f"^the-file requires {needs}, which .* Upgrade spark-ckpt"
    ) as raised:
        decode_record(changed(original, **fields), "the-file", original.id)
    assert raised.value.path == "the-file"


def test_a_damaged_record_does_not_pass_for_one_of_a_later_release() -> None:
    for damaged in (b'"format": 7', b'"features": ["x"],\n "format": 1'):
        with pytest.raises(DamagedRecordError, match="digest"):
            decode_record(encode_record(RECORDS[0]).replace(b'"format": 1', damaged), "file")


@pytest.mark.parametrize("features", ["filters", [1], {}])
def test_features_that_are_no_names_are_damage(features: object) -> None:
    with pytest.raises(DamagedRecordError, match="wrong type"):
        decode_record(changed(RECORDS[0], features=features), "file")
