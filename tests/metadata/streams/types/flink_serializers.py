"""Serializers of real Flink: their snapshots and values, and the same in Python.

`flink_serializers.jsonl` is the output of `jvm-shim/flink-check/serializers`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from spark_ckpt.metadata.streams.types.base import Serializer
from spark_ckpt.metadata.streams.types.big_numbers import BIG_DECIMAL, BIG_INTEGER
from spark_ckpt.metadata.streams.types.composites import (
    ListSerializer,
    MapSerializer,
    NullableSerializer,
    RowSerializer,
    TimerSerializer,
    TupleSerializer,
)
from spark_ckpt.metadata.streams.types.enums import EnumSerializer
from spark_ckpt.metadata.streams.types.logical_types import MAX_LENGTH, REGULAR, LogicalType
from spark_ckpt.metadata.streams.types.primitives import (
    BOOLEAN,
    BYTE,
    BYTES,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    SHORT,
    TIME_WINDOW,
    VOID_NAMESPACE,
)
from spark_ckpt.metadata.streams.types.row_data import (
    BinaryRowDataSerializer,
    DecimalDataSerializer,
    RowDataSerializer,
    TimestampDataSerializer,
)
from spark_ckpt.metadata.streams.types.text import STRING, STRING_DATA
from spark_ckpt.metadata.streams.types.times import (
    DATE,
    INSTANT,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LOCAL_TIME,
    SQL_DATE,
    SQL_TIME,
    SQL_TIMESTAMP,
)
from spark_ckpt.metadata.streams.values import (
    Instant,
    LocalDate,
    LocalDateTime,
    LocalTime,
    Row,
    RowData,
    SqlTimestamp,
    Timer,
    Timestamp,
    TimeWindow,
)

FILE = Path(__file__).with_name("flink_serializers.jsonl")
KEY_GROUPS = 128


@dataclass(frozen=True)
class FlinkValue:
    """Value as Flink writes it."""

    content: bytes
    hash_code: int | None
    key_group: int | None


@dataclass(frozen=True)
class FlinkSerializer:
    """Serializer of Flink."""

    name: str
    class_name: str
    length: int
    snapshot: bytes
    values: tuple[FlinkValue, ...]

    def __str__(self) -> str:
        return self.name


@cache
def flink_serializers() -> dict[str, FlinkSerializer]:
    """All dumped serializers, by name."""
    found = {}
    for line in map(json.loads, FILE.read_text().splitlines()):
        values = tuple(
            FlinkValue(bytes.fromhex(value["bytes"]), value["hash"], value["keyGroup"]) for value in line["values"]
        )
        found[line["name"]] = FlinkSerializer(
            line["name"], line["class"], line["length"], bytes.fromhex(line["snapshot"]), values
        )
    return found


TIMESTAMP, TIMESTAMP_LTZ = "TIMESTAMP_WITHOUT_TIME_ZONE", "TIMESTAMP_WITH_LOCAL_TIME_ZONE"
VARCHAR, BIGINT = LogicalType("VARCHAR", (MAX_LENGTH,)), LogicalType("BIGINT")


def timestamp(precision: int, root: str = TIMESTAMP, kind: str = REGULAR) -> LogicalType:
    return LogicalType(root, (precision,), timestamp_kind=kind)


TYPES = {
    "BOOLEAN": LogicalType("BOOLEAN"),
    "TINYINT": LogicalType("TINYINT"),
    "SMALLINT": LogicalType("SMALLINT"),
    "INT": LogicalType("INTEGER"),
    "BIGINT": BIGINT,
    "BIGINT NOT NULL": LogicalType("BIGINT", nullable=False),
    "FLOAT": LogicalType("FLOAT"),
    "DOUBLE": LogicalType("DOUBLE"),
    "DATE": LogicalType("DATE"),
    "CHAR(3)": LogicalType("CHAR", (3,)),
    "VARCHAR(20)": LogicalType("VARCHAR", (20,)),
    "STRING": VARCHAR,
    "BINARY(3)": LogicalType("BINARY", (3,)),
    "BYTES": LogicalType("VARBINARY", (MAX_LENGTH,)),
    "DECIMAL(10, 2)": LogicalType("DECIMAL", (10, 2)),
    "DECIMAL(30, 2)": LogicalType("DECIMAL", (30, 2)),
    "TIME(3)": LogicalType("TIME_WITHOUT_TIME_ZONE", (3,)),
    "TIMESTAMP(3) *ROWTIME* ROWTIME": timestamp(3, TIMESTAMP, "ROWTIME"),
    "TIMESTAMP_LTZ(3) *PROCTIME* PROCTIME": timestamp(3, TIMESTAMP_LTZ, "PROCTIME"),
    **{f"TIMESTAMP({precision}) REGULAR": timestamp(precision) for precision in range(10)},
    **{f"TIMESTAMP_LTZ({precision}) REGULAR": timestamp(precision, TIMESTAMP_LTZ) for precision in range(10)},
}
"""Logical types of the dump, by their name there."""

ALL = (
    LogicalType("BOOLEAN"),
    LogicalType("TINYINT"),
    LogicalType("SMALLINT"),
    LogicalType("INTEGER"),
    BIGINT,
    LogicalType("FLOAT"),
    LogicalType("DOUBLE"),
    LogicalType("DATE"),
    LogicalType("TIME_WITHOUT_TIME_ZONE", (3,)),
    LogicalType("CHAR", (3,)),
    LogicalType("VARBINARY", (MAX_LENGTH,)),
    LogicalType("DECIMAL", (18, 2)),
    LogicalType("DECIMAL", (19, 2)),
    LogicalType("DECIMAL", (38, 0)),
    timestamp(3),
    timestamp(6),
    timestamp(9, TIMESTAMP_LTZ),
)
TWO = RowDataSerializer((VARCHAR, BIGINT))

IN_PYTHON: dict[str, tuple[Serializer, tuple[Any, ...]]] = {
    "boolean": (BOOLEAN, (True, False)),
    "byte": (BYTE, (1, -128)),
    "short": (SHORT, (1, -(1 << 15))),
    "int": (INT, (1, -(1 << 31))),
    "long": (LONG, (1, -1, 1 << 40, -(1 << 63))),
    "float": (FLOAT, (1.5, -0.0, 0.0, float("nan"), float("-inf"))),
    "double": (DOUBLE, (1.5, -0.0, 0.0, float("nan"), float("-inf"))),
    "char": (CHAR, ("a", "€")),
    "string": (STRING, ("", "a", "ä名😀", "x" * 200, None)),
    "bytes": (BYTES, (b"\1\2",)),
    "bigint": (BIG_INTEGER, (-5, 0, 1, 10, 1 << 127, -128, -(1 << 64), None)),
    "bigdec": (
        BIG_DECIMAL,
        (*map(Decimal, ("1.50", "1.5", "0", "1E+7", "-123456789012345678901234.5")), None),
    ),
    "date": (DATE, (86_400_000, None)),
    "sqldate": (SQL_DATE, (-86_400_000, None)),
    "sqltime": (SQL_TIME, (1234, None)),
    "sqltimestamp": (SQL_TIMESTAMP, (SqlTimestamp(1234, 234_567_890), SqlTimestamp(-1, 999_000_000), None)),
    "instant": (INSTANT, (Instant(3, 5), Instant(-3, 5), None)),
    "localdate": (LOCAL_DATE, (LocalDate(2024, 2, 29), LocalDate(-44, 3, 15), LocalDate(999_999_999, 12, 31), None)),
    "localtime": (LOCAL_TIME, (LocalTime(23, 2, 3, 4), LocalTime(0, 0, 0, 0), None)),
    "localdatetime": (
        LOCAL_DATE_TIME,
        (
            LocalDateTime(LocalDate(2024, 2, 29), LocalTime(23, 2, 3, 4)),
            LocalDateTime(LocalDate(-999_999_999, 1, 1), LocalTime(0, 0, 0, 0)),
            None,
        ),
    ),
    "void": (VOID_NAMESPACE, (None,)),
    "timewindow": (TIME_WINDOW, (TimeWindow(-1000, 1000),)),
    "stringdata": (STRING_DATA, ("hä",)),
    "timestampdata(3)": (TimestampDataSerializer(3), (Timestamp(1234),)),
    "timestampdata(6)": (TimestampDataSerializer(6), (Timestamp(-1, 567_000),)),
    "decimaldata(18,2)": (DecimalDataSerializer(18, 2), (Decimal("1.50"),)),
    "decimaldata(19,2)": (DecimalDataSerializer(19, 2), (Decimal("-1.50"),)),
    "list<long>": (ListSerializer((LONG,)), ((1, 2), ())),
    "map<string,long>": (MapSerializer((STRING, LONG)), ((("x", 7),), (("x", None),))),
    "timer<string,void>": (
        TimerSerializer((STRING, VOID_NAMESPACE)),
        (Timer(1000, "k", None), Timer(-1, "k", None)),
    ),
    "tuple2<string,long>": (TupleSerializer.of(STRING, LONG), (("a", 1), ("", -1))),
    "row<string,long,int>": (RowSerializer((STRING, LONG, INT)), (Row(0, ("a", 1, None)), Row(2, (None, 2, 3)))),
    "row<9 ints>": (RowSerializer((INT,) * 9), (Row(0, (1, None, 3, 4, 5, 6, None, 8, None)),)),
    "enum": (
        EnumSerializer("io.github.sparkckpt.flinkcheck.FlinkSerializers$Colour", ("RED", "GREEN")),
        ("GREEN", "RED"),
    ),
    "nullable<long>": (NullableSerializer((LONG,)), (5, None)),
    "padded<long>": (NullableSerializer((LONG,), 8), (5, None)),
    **{f"type {name}": (RowDataSerializer((logical_type,)), ()) for name, logical_type in TYPES.items()},
    "rowdata<string,bigint>": (
        TWO,
        tuple(
            RowData(0, fields)
            for fields in (
                ("ab", 5),
                ("1234567", 5),
                ("12345678", 5),
                ("a longer string", -5),
                ("ä名", None),
                (None, 9),
                ("", 0),
            )
        ),
    ),
    "rowdata<all>": (
        RowDataSerializer(ALL),
        (
            RowData(
                0,
                (
                    True,
                    -5,
                    -4,
                    2,
                    1 << 40,
                    0.5,
                    2.5,
                    19000,
                    1234,
                    "abc",
                    bytes(range(1, 10)),
                    Decimal("1.50"),
                    Decimal("-1.50"),
                    Decimal("9" * 38),
                    Timestamp(-1234),
                    Timestamp(-1234, 567_000),
                    Timestamp(1234, 999_999),
                ),
            ),
            RowData(0, (None,) * len(ALL)),
        ),
    ),
    "rowdata<60 ints>": (
        RowDataSerializer((LogicalType("INTEGER"),) * 60),
        (RowData(0, tuple(None if number % 3 == 0 else number for number in range(60))),),
    ),
    "rowdata<-D>": (TWO, (RowData(3, ("ab", 5)),)),
}
"""The same serializers and values in Python, by their name in the dump."""

UNKNOWN = {
    "pojo": "org.apache.flink.api.java.typeutils.runtime.PojoSerializerSnapshot",
    "kryo": "org.apache.flink.api.java.typeutils.runtime.kryo.KryoSerializerSnapshot",
    "type array": "org.apache.flink.table.types.logical.ArrayType",
}
"""Classes outside of our table, by their name in the dump."""

BINARY_ROW: tuple[Serializer, str] = (BinaryRowDataSerializer(2), "binaryrow(2)")
"""Serializer whose values are bytes, because its snapshot does not say the types."""
