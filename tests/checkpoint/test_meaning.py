"""Master state with the meaning of a query."""

from __future__ import annotations

import pytest

from spark_ckpt.checkpoint.batch import SparkBatch
from spark_ckpt.checkpoint.compose import spark_batch_of
from spark_ckpt.checkpoint.encode import encode_metadata
from spark_ckpt.checkpoint.meaning import SPARK_QUERY, SPARK_QUERY_VERSION, QueryMeaning
from spark_ckpt.errors import CheckpointError
from spark_ckpt.metadata import CheckpointMetadata, MasterState, dumps, loads
from tests.support.meanings import function, meaning

COUNTS = meaning(functions=(function("count(1)", initial=("0",)), function("sum(0.v)")))


def batch(of: bytes | None) -> SparkBatch:
    return SparkBatch(0, 1, "query", "run", "4.2.0", 1, 4, (4,), meaning=of)


def test_it_reads_back() -> None:
    assert QueryMeaning.decode(COUNTS.encode()) == COUNTS


def test_fields_of_later_releases_are_ignored() -> None:
    text = COUNTS.encode().decode().replace('{"sources"', '{"later":1,"sources"', 1)
    assert QueryMeaning.decode(text) == COUNTS


@pytest.mark.parametrize("payload", [b"", b"{}", b"\xff", b'{"sources":1,"operators":[]}', b"[" * 100_000])
def test_a_malformed_payload_is_named(payload: bytes) -> None:
    with pytest.raises(CheckpointError, match="malformed master state spark-query"):
        QueryMeaning.decode(payload)


def test_an_operator_is_found_by_its_number() -> None:
    assert COUNTS.operator(0) is COUNTS.operators[0]
    assert COUNTS.operator(1) is None


def test_metadata_has_it() -> None:
    metadata = loads(encode_metadata(7, batch(COUNTS.encode()), {}), "_metadata")
    assert spark_batch_of(metadata).meaning == COUNTS.encode()


def test_metadata_without_it_has_none() -> None:
    metadata = loads(encode_metadata(7, batch(None), {}), "_metadata")
    assert spark_batch_of(metadata).meaning is None


def test_a_later_version_is_ignored() -> None:
    """It only warns of changes, so an older release does without."""
    written = loads(encode_metadata(7, batch(None), {}), "_metadata")
    later = MasterState(SPARK_QUERY, b"?", SPARK_QUERY_VERSION + 1)
    metadata = loads(dumps(CheckpointMetadata(7, (*written.master_states, later)), version=3), "_metadata")
    assert spark_batch_of(metadata).meaning is None
