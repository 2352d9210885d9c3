"""Positions of Flink's Kafka sources. `tests/spark/test_from_flink.py` continues from them."""

from __future__ import annotations

import json

import pytest

from spark_ckpt.flink.importing.errors import FlinkImportRefusedError
from spark_ckpt.flink.importing.kafka import KafkaOffsets, kafka_offsets, with_offsets
from spark_ckpt.flink.tables.catalog import FlinkCatalog
from spark_ckpt.spark_files.entries import OffsetEntry
from tests.flink.streams.corpus import job

FOUND = KafkaOffsets("/flink", {"orders": {0: 17, 1: 40, 2: 3}, "late": {0: -2}})


def entry(*offsets: str | None) -> OffsetEntry:
    return OffsetEntry(1, {"conf": {}}, {str(number): offset for number, offset in enumerate(offsets)})


def test_a_query_continues_where_flink_stands() -> None:
    others = ('{"logOffset":3}', None, '{"payments":{"0":5}}')
    given = entry('{"orders":{"0":100,"1":100}}', *others)
    found, is_changed = with_offsets(given, FOUND)
    assert is_changed
    assert json.loads(found.offsets["0"] or "") == {"orders": {"0": 17, "1": 40, "2": 3}}
    assert tuple(found.offsets.values())[1:] == others


def test_a_query_of_other_topics_stays_where_it_is() -> None:
    given = entry('{"payments":{"0":5}}')
    assert with_offsets(given, FOUND) == (given, False)


@pytest.mark.parametrize(
    ("offset", "reason"),
    [
        ('{"orders":{"0":1,"3":1}}', "has no position in partition 3 of topic orders"),
        ('{"orders":{"0":1},"payments":{"0":1}}', "has no position in partition 0 of topic payments"),
        ('{"late":{"0":1}}', r"has not begun \(-2\) in partition 0 of topic late"),
    ],
)
def test_partitions_without_a_position(offset: str, reason: str) -> None:
    with pytest.raises(FlinkImportRefusedError, match=f"{reason}.*--keep-offsets"):
        with_offsets(entry(offset), FOUND)


def test_the_option_of_spark() -> None:
    assert FOUND.starting_offsets == '{"orders":{"0":17,"1":40,"2":3},"late":{"0":-2}}'


def test_a_job_without_a_kafka_source() -> None:
    vector = job("f120-savepoint-canonical-heap-p2")
    assert kafka_offsets(FlinkCatalog("x", vector.metadata, vector.files)) is None
