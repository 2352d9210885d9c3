"""Positions of sources, from offsets as the sources write them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.spark_files.source_positions import (
    DeltaPosition,
    FilePosition,
    KafkaPosition,
    NumberPosition,
    PartitionPosition,
    RateMicroBatchPosition,
    SourcePosition,
    UnknownPosition,
    positions_of,
)

TABLE = "14b0b1c5-33e9-4e26-bc73-3b99d855a26f"

# As written by the sources of Spark 4.2 and Delta 4.4.
KAFKA = '{"payments":{"0":9223372036854775807},"orders":{"10":3,"2":40,"0":17}}'
DELTA = f'{{"sourceVersion":1,"reservoirId":"{TABLE}","reservoirVersion":3,"index":-1,"isStartingVersion":false}}'
DELTA_AT_START = (
    f'{{"sourceVersion":1,"reservoirId":"{TABLE}","reservoirVersion":0,"index":2,"isStartingVersion":true}}'
)
DELTA_AT_NEW_SCHEMA = (
    f'{{"sourceVersion":3,"reservoirId":"{TABLE}","reservoirVersion":4,"index":-20,"isStartingVersion":false}}'
)

MIN_LONG, MAX_LONG = -(2**63), 2**63 - 1
topics = st.text(min_size=1, max_size=8)
partitions = st.dictionaries(st.integers(0, 2**31 - 1), st.integers(MIN_LONG, MAX_LONG), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("offset", "positions"),
    [
        (DELTA, DeltaPosition(TABLE, 3, -1, False)),
        (DELTA_AT_START, DeltaPosition(TABLE, 0, 2, True)),
        (DELTA_AT_NEW_SCHEMA, DeltaPosition(TABLE, 4, -20, False)),
        ('{"logOffset":3}', FilePosition(3)),
        ('{"logOffset":-1}', FilePosition(-1)),
        ('{"offset":20,"timestamp":1000}', RateMicroBatchPosition(20, 1000)),
        ("17", NumberPosition(17)),
        ("-1", NumberPosition(-1)),
    ],
)
def test_an_offset_of_a_source_with_one_position(offset: str, positions: SourcePosition) -> None:
    assert positions_of(offset) == (positions,)
    assert positions_of(offset)[0].partition_key == ()


def test_an_offset_of_kafka_has_a_position_per_partition_in_numeric_order() -> None:
    positions = positions_of(KAFKA)
    assert positions == (
        KafkaPosition("orders", 0, 17),
        KafkaPosition("orders", 2, 40),
        KafkaPosition("orders", 10, 3),
        KafkaPosition("payments", 0, 9223372036854775807),
    )
    assert [position.partition_key for position in positions[-2:]] == [("orders", 10), ("payments", 0)]


def test_a_topic_may_have_a_numeric_name() -> None:
    assert positions_of('{"0":{"0":5}}') == (KafkaPosition("0", 0, 5),)


def test_an_offset_of_partitions_without_topics() -> None:
    assert positions_of('{"10":5,"2":7}') == (PartitionPosition(2, 7), PartitionPosition(10, 5))


@pytest.mark.parametrize(
    "offset",
    [
        "{}",
        "[]",
        "null",
        "true",
        "1.5",
        '"17"',
        "no JSON",
        "",
        "[" * 5000,
        "9" * 5000,
        '{"orders":{}}',
        '{"orders":{"x":1}}',
        '{"orders":{"0":"late"}}',
        '{"orders":{"0":true}}',
        '{"orders":{"0":1.5}}',
        '{"orders":{"-1":1}}',
        '{"orders":{"²":1}}',
        '{"orders":{"0":1},"at":3}',
        '{"0":{"value":5,"runTimeMs":1795284016453}}',
        '{"logOffset":true}',
        '{"logOffset":3,"more":1}',
        '{"offset":20}',
        '{"offset":20,"timestamp":1000,"more":1}',
        '{"reservoirId":"x","reservoirVersion":"3","index":0,"isStartingVersion":false}',
        '{"reservoirVersion":3,"index":0}',
        '{"version":1,"snapshot_id":5,"position":0,"scan_all_files":false}',
    ],
)
def test_an_offset_of_any_other_shape_is_kept_as_it_is(offset: str) -> None:
    assert positions_of(offset) == (UnknownPosition(offset),)


def test_a_field_that_a_later_delta_adds_is_ignored() -> None:
    offset = json.dumps({**json.loads(DELTA), "more": 1})
    assert positions_of(offset) == (DeltaPosition(TABLE, 3, -1, False),)


@given(st.dictionaries(topics, partitions, min_size=1, max_size=3))
def test_no_partition_of_kafka_is_lost(offsets: dict[str, dict[int, int]]) -> None:
    found = positions_of(json.dumps(offsets))
    expected = {(topic, number): offset for topic, each in offsets.items() for number, offset in each.items()}
    assert {position.partition_key: position.offset for position in found if isinstance(position, KafkaPosition)} == (
        expected
    )
    assert len(found) == len(expected)


@given(st.text())
def test_any_text_has_a_position(offset: str) -> None:
    assert positions_of(offset)
