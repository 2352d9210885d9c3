"""Types and operators that are refused before anything is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spark_ckpt.flink.export.check import check
from spark_ckpt.flink.export.errors import UnsupportedForFlinkError
from spark_ckpt.flink.export.model import FlinkOperator, FlinkOperatorState, FlinkState, StateKind
from spark_ckpt.flink.streams.types.avro import AvroSerializer
from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.types.composites import (
    ListSerializer,
    MapSerializer,
    NullableSerializer,
    RowSerializer,
    TimerSerializer,
    TupleSerializer,
)
from spark_ckpt.flink.streams.types.enums import EnumSerializer
from spark_ckpt.flink.streams.types.logical_types import LogicalType
from spark_ckpt.flink.streams.types.opaque import OpaqueSerializer
from spark_ckpt.flink.streams.types.primitives import BYTES, LONG, VOID_NAMESPACE
from spark_ckpt.flink.streams.types.row_data import BinaryRowDataSerializer, RowDataSerializer
from spark_ckpt.flink.streams.types.text import STRING, STRING_DATA
from spark_ckpt.metadata.handles import DistributionMode
from tests.flink.streams.types.flink_serializers import AVRO_SCHEMA, IN_PYTHON, POJO, RAW_TEXT, READ_ONLY

OPERATOR = FlinkOperator.of_uid("counts", LONG, [FlinkState("sum", StateKind.VALUE, LONG)])
ENUM = EnumSerializer("com.example.Colour", ("RED",))
KRYO = OpaqueSerializer("org.apache.flink.api.java.typeutils.runtime.kryo.KryoSerializerSnapshot", b"")
AVRO = AvroSerializer.of("org.apache.avro.generic.GenericRecord", AVRO_SCHEMA)
ROW = LogicalType("ROW", children=(LogicalType("BIGINT"),), names=("f",))
VALUES: dict[str, tuple[Serializer, str]] = {
    "Kryo": (KRYO, "only the Java class"),
    "Kryo in a list": (ListSerializer((KRYO,)), "only the Java class"),
    "Avro": (AVRO, "can be read, but not written"),
    "Avro in a tuple": (TupleSerializer.of(LONG, AVRO), "in it: such values can be read, but not written"),
    "binary rows": (BinaryRowDataSerializer(2), "can be read, but not written"),
    "timers": (TimerSerializer((LONG, VOID_NAMESPACE)), "can be read, but not written"),
    "arrays of SQL": (READ_ONLY["arraydata<bigint>"][0], "can be read, but not written"),
    "rows with rows": (RowDataSerializer((ROW,)), "with ARRAY, MAP, ROW or RAW in it"),
    "rows with Java's values": (RowDataSerializer((RAW_TEXT,)), "with ARRAY, MAP, ROW or RAW in it"),
    "POJOs with subclasses": (replace(POJO, subclasses=("com.example.Other",)), "only the Java class"),
    "a class with a long name": (EnumSerializer("x" * 70_000, ()), "the maximum is 65535"),
}
KEYS: dict[str, tuple[Serializer, str]] = {
    "bytes": (BYTES, "another hash in each JVM"),
    "enums": (ENUM, "another hash in each JVM"),
    "enums in a tuple": (TupleSerializer.of(LONG, ENUM), "another hash in each JVM"),
    "bytes in a row": (RowSerializer((BYTES,)), "another hash in each JVM"),
    "POJOs": (POJO, "the hash is that of the Java class"),
    "tuples of the user": (TupleSerializer((LONG,), "com.example.Mine"), "the Java class com.example.Mine"),
    "lists": (ListSerializer((LONG,)), "the hash of such keys is unknown"),
    "maps": (MapSerializer((LONG, LONG)), "the hash of such keys is unknown"),
    "nullable": (NullableSerializer((LONG,)), "the hash of such keys is unknown"),
    "StringData": (STRING_DATA, "the hash of such keys is unknown"),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("place", ["value", "element", "map key", "map value", "namespace", "key", "operator state"])
def test_values_that_cannot_be_written(name: str, place: str) -> None:
    serializer, reason = VALUES[name]
    states = {
        "value": FlinkState("s", StateKind.VALUE, serializer),
        "element": FlinkState("s", StateKind.LIST, serializer),
        "map key": FlinkState("s", StateKind.MAP, LONG, serializer),
        "map value": FlinkState("s", StateKind.MAP, serializer, LONG),
        "namespace": FlinkState("s", StateKind.VALUE, LONG, namespace=serializer),
    }
    operator = replace(OPERATOR, states=(*OPERATOR.states, states[place])) if place in states else OPERATOR
    if place == "key":
        operator = replace(OPERATOR, key=serializer)
    if place == "operator state":
        operator = replace(OPERATOR, operator_states=[FlinkOperatorState("s", serializer, [])])
    with pytest.raises(UnsupportedForFlinkError, match=reason) as error:
        check(operator)
    assert error.value.state == (None if place == "key" else "s")
    assert error.value.operator == f"{OPERATOR.operator_id.hex()} (counts)"


@pytest.mark.parametrize("name", KEYS)
def test_keys_whose_hash_is_unknown(name: str) -> None:
    serializer, reason = KEYS[name]
    check(replace(OPERATOR, states=[FlinkState("s", StateKind.MAP, serializer, serializer)]))
    with pytest.raises(UnsupportedForFlinkError, match=reason):
        check(replace(OPERATOR, key=serializer))


def test_keys_with_a_hash_can_be_written() -> None:
    accepted = 0
    for serializer, values in IN_PYTHON.values():
        if isinstance(serializer, (NullableSerializer, TimerSerializer)) or not values:
            continue
        known = serializer.hash_code(next(value for value in (*values, "") if value is not None)) is not None
        if serializer == VOID_NAMESPACE:
            known = False
        try:
            check(replace(OPERATOR, key=serializer))
            accepted += 1
        except UnsupportedForFlinkError:
            assert not known, serializer
        else:
            assert known, serializer
    assert accepted > 20


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"operator_id": b"short"}, "an id of 5 bytes"),
        ({"max_parallelism": 0}, "is not 1 to 32768"),
        ({"max_parallelism": 32769}, "is not 1 to 32768"),
        ({"states": [*OPERATOR.states, *OPERATOR.states]}, "two states have this name"),
        ({"states": [FlinkState(str(n), StateKind.VALUE, LONG) for n in range(32768)]}, "Flink has at most"),
        ({"key": None}, "no serializer of keys"),
        ({"states": [FlinkState("s", StateKind.MAP, LONG)]}, "a map has a serializer of its keys"),
        ({"states": [FlinkState("s", StateKind.VALUE, LONG, STRING)]}, "a map has a serializer of its keys"),
        ({"states": [FlinkState("s", StateKind.EVENT_TIMER, LONG)]}, "begins with _timer_state/event_"),
        (
            {"operator_states": [FlinkOperatorState("s", LONG, [], DistributionMode.BROADCAST)]},
            "a list state cannot be broadcast",
        ),
    ],
)
def test_inconsistent_operators(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnsupportedForFlinkError, match=reason):
        check(replace(OPERATOR, **changes))


def test_a_source_needs_no_keys() -> None:
    check(FlinkOperator("source", bytes(16), None, operator_states=[FlinkOperatorState("s", BYTES, [])]))
