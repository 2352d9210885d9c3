"""Bytes of positions in Kafka. Real Flink and a real broker judge them in tests/spark/test_flink_reads_kafka.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.checkpoint.batch import Source
from spark_ckpt.flink.export.export_savepoint import export_plan
from spark_ckpt.flink.export.kafka import kafka_source, starting_offsets
from spark_ckpt.flink.export.operator_id import operator_id_of
from spark_ckpt.flink.export.plan import Plan, Target, plan_operator
from spark_ckpt.flink.export.source_operator import Forms
from spark_ckpt.flink.export.sources import ONLY, OPAQUE_STATE
from spark_ckpt.flink.export.struct_types import KeyForm
from spark_ckpt.metadata import OperatorStreamStateHandle, load
from spark_ckpt.metadata.handles import ByteStreamStateHandle
from spark_ckpt.spark_files.source_positions import KafkaPosition
from spark_ckpt.state.catalog import open_state
from spark_ckpt.state.errors import StateNotFoundError
from spark_ckpt.storage import LocalStorage
from tests.support.state_location import StateLocation, schema

POSITIONS = (KafkaPosition("ordérs", 0, 5), KafkaPosition("ordérs", 1, 1 << 40))
UTF = b"\x00\x07ord\xc3\xa9rs"
NO_STOPPING_OFFSET = b"\x80" + bytes(7)


def test_bytes() -> None:
    operator = kafka_source("orders", bytes(16), POSITIONS, 128)
    (state,) = operator.operator_states
    assert state.name == "SourceReaderState"
    first, second = state.elements
    split = UTF + bytes(4) + (5).to_bytes(8, "big") + NO_STOPPING_OFFSET
    assert first == bytes(4) + len(split).to_bytes(4, "big") + split
    assert second == bytes(4) + len(split).to_bytes(4, "big") + UTF + b"\0\0\0\1" + b"\0\0\1" + bytes(5) + (
        NO_STOPPING_OFFSET
    )
    partitions = b"\0\0\0\2" + UTF + bytes(4) + UTF + b"\0\0\0\1"
    assert operator.coordinator_state == b"\0\0\0\1" * 2 + len(partitions).to_bytes(4, "big") + partitions


def test_java() -> None:
    assert starting_offsets(POSITIONS) == (
        'OffsetsInitializer.offsets(Map.ofEntries(entry(new TopicPartition("ordérs", 0), 5L), '
        'entry(new TopicPartition("ordérs", 1), 1099511627776L)))'
    )


def plan(folder: Path, uids: dict[str, str], *offsets: str) -> Plan:
    """Plan of a query whose sources have these offsets."""
    location = StateLocation(
        folder,
        {"default": (schema(user="string"), schema(n="long"))},
        offsets=b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}\n' + "\n".join(offsets).encode(),
    )
    location.sources = tuple(Source(str(number), text) for number, text in enumerate(offsets))
    location.commit()
    forms = Forms(KeyForm.STRING)
    return plan_operator(open_state(location.path), None, Target.of_uid("totals"), forms, uids)


def test_sources_in_a_savepoint(tmp_path: Path) -> None:
    """Two partitions are in two subtasks; the text of another source is in one."""
    planned = plan(tmp_path / "q", {"0": "kafka", "1": "files"}, '{"orders":{"1":7,"0":5}}', '{"logOffset":3}')
    assert planned.sources[0].java.endswith('entry(new TopicPartition("orders", 1), 7L)))')
    assert planned.sources[1].java == ""
    exported = export_plan(planned, LocalStorage(tmp_path / "s"))
    assert [source.operator_id for source in exported.sources] == [
        operator_id_of(uid).hex() for uid in ("kafka", "files")
    ]
    operators = {operator.operator_id: operator for operator in load(tmp_path / "s" / "_metadata").operator_states}
    assert set(operators) == {operator_id_of(uid) for uid in ("totals", "kafka", "files")}
    kafka = operators[operator_id_of("kafka")]
    assert isinstance(kafka.coordinator_state, ByteStreamStateHandle)
    elements = [
        len(handle.state_name_to_partition_offsets["SourceReaderState"].offsets)
        for subtask in kafka.subtask_states.values()
        if isinstance(handle := subtask.managed_operator_state, OperatorStreamStateHandle)
    ]
    assert elements == [1, 1]
    texts = [
        handle.delegate_state_handle.data
        for subtask in operators[operator_id_of("files")].subtask_states.values()
        if isinstance(handle := subtask.managed_operator_state, OperatorStreamStateHandle)
        and isinstance(handle.delegate_state_handle, ByteStreamStateHandle)
    ]
    assert OPAQUE_STATE.encode() in texts[0]
    assert any(text.endswith(b'{"logOffset":3}') for text in texts)


def test_positions_without_a_uid_are_reported_only(tmp_path: Path) -> None:
    planned = plan(tmp_path / "q", {}, '{"orders":{"0":5}}')
    assert [source.operator for source in planned.sources] == [None]
    assert "5L" in planned.sources[0].java
    assert len(planned.operators) == 1


@pytest.mark.parametrize(
    ("uids", "reason"),
    [
        ({ONLY: "x"}, "name the source in front of its uid, as in 0=orders; available: 0, 1"),
        ({"2": "x"}, "no source '2'; available: 0, 1"),
    ],
)
def test_a_source_that_must_be_named(tmp_path: Path, uids: dict[str, str], reason: str) -> None:
    with pytest.raises(StateNotFoundError, match=reason):
        plan(tmp_path / "q", uids, "1", "2")


def test_a_source_without_an_offset(tmp_path: Path) -> None:
    with pytest.raises(StateNotFoundError, match="source '1' has no offset yet"):
        plan(tmp_path / "q", {"1": "x"}, "1", "-")
