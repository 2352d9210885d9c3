"""Serializers of real Flink: their snapshots and values, and the same in Python.

`flink_serializers.jsonl` is the output of `jvm-shim/flink-check/serializers`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from spark_ckpt.flink.streams.types.accumulators import (
    ExternalSerializer,
    LinkedListSerializer,
    ListViewSerializer,
    MapViewSerializer,
    NullAwareMapSerializer,
    RawValueSerializer,
    SortedMapSerializer,
)
from spark_ckpt.flink.streams.types.arrays import (
    BOOLEANS,
    CHARS,
    DOUBLES,
    FLOATS,
    INTS,
    LONGS,
    SHORTS,
    STRINGS,
)
from spark_ckpt.flink.streams.types.avro import AvroSerializer
from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.types.big_numbers import BIG_DECIMAL, BIG_INTEGER
from spark_ckpt.flink.streams.types.cep import (
    DEWEY_NUMBER,
    EVENT_ID,
    LockableSerializer,
    NFAStateSerializer,
    NodeIdSerializer,
    SharedBufferEdgeSerializer,
    SharedBufferNodeSerializer,
)
from spark_ckpt.flink.streams.types.composites import (
    ListSerializer,
    MapSerializer,
    NullableSerializer,
    RowSerializer,
    TimerSerializer,
    TupleSerializer,
)
from spark_ckpt.flink.streams.types.enums import EnumSerializer
from spark_ckpt.flink.streams.types.logical_types import MAX_LENGTH, REGULAR, LogicalType
from spark_ckpt.flink.streams.types.pojo import PojoField, PojoSerializer
from spark_ckpt.flink.streams.types.primitives import (
    BOOLEAN,
    BYTE,
    BYTES,
    CHAR,
    DOUBLE,
    FLOAT,
    GLOBAL_WINDOW,
    INT,
    LONG,
    SHORT,
    SQL_COUNT_WINDOW,
    SQL_NULL,
    SQL_TIME_WINDOW,
    TIME_WINDOW,
    VOID_NAMESPACE,
)
from spark_ckpt.flink.streams.types.row_data import (
    ArrayDataSerializer,
    BinaryRowDataSerializer,
    DecimalDataSerializer,
    MapDataSerializer,
    RowDataSerializer,
    TimestampDataSerializer,
)
from spark_ckpt.flink.streams.types.text import STRING, STRING_DATA
from spark_ckpt.flink.streams.types.times import (
    DATE,
    INSTANT,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LOCAL_TIME,
    SQL_DATE,
    SQL_TIME,
    SQL_TIMESTAMP,
)
from spark_ckpt.flink.streams.values import (
    ComputationState,
    CountWindow,
    EventId,
    Instant,
    LocalDate,
    LocalDateTime,
    LocalTime,
    Lockable,
    NFAState,
    NodeId,
    Row,
    RowData,
    SharedBufferEdge,
    SqlTimestamp,
    Timer,
    Timestamp,
    TimeWindow,
)

OWN = "io.github.sparkckpt.flinkcheck.FlinkSerializers"
POJO = PojoSerializer(f"{OWN}$Pojo", (PojoField("number", f"{OWN}$Pojo", INT),))
AVRO_SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Everything",
        "namespace": "com.example",
        "fields": [
            {"name": name, "type": kind}
            for name, kind in {
                "s": "string",
                "i": "int",
                "l": "long",
                "f": "float",
                "d": "double",
                "b": "boolean",
                "bytes": "bytes",
                "fixed": {"type": "fixed", "name": "Three", "size": 3},
                "enum": {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]},
                "optional": ["null", "string"],
                "several": ["null", "string", "long"],
                "array": {"type": "array", "items": "int"},
                "map": {"type": "map", "values": "long"},
                "nested": {"type": "record", "name": "Nested", "fields": [{"name": "x", "type": "int"}]},
                "millis": {"type": "long", "logicalType": "timestamp-millis"},
                "micros": {"type": "long", "logicalType": "timestamp-micros"},
                "day": {"type": "int", "logicalType": "date"},
                "price": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            }.items()
        ],
    },
    separators=(",", ":"),
)
"""Schema of the dump, as Avro writes it."""

FILE_OF_2_1 = Path(__file__).with_name("flink_serializers_2.1.jsonl")
"""Lines that differ in Flink 2.1, but for Kryo's."""
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
def flink_serializers(file: Path = FILE) -> dict[str, FlinkSerializer]:
    """All dumped serializers of a file, by name."""
    found = {}
    for line in map(json.loads, file.read_text().splitlines()):
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


def months(resolution: str, digits: int = 2, *, nullable: bool = True) -> LogicalType:
    return LogicalType("INTERVAL_YEAR_MONTH", (digits,), nullable, resolution=resolution)


def millis(resolution: str, days: int = 2, fraction: int = 6, *, nullable: bool = True) -> LogicalType:
    return LogicalType("INTERVAL_DAY_TIME", (days, fraction), nullable, resolution=resolution)


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
    "INTERVAL YEAR(2)": months("YEAR"),
    "INTERVAL YEAR(2) TO MONTH": months("YEAR_TO_MONTH"),
    "INTERVAL MONTH": months("MONTH"),
    "INTERVAL YEAR(4) TO MONTH NOT NULL": months("YEAR_TO_MONTH", 4, nullable=False),
    "INTERVAL DAY(2)": millis("DAY"),
    "INTERVAL DAY(2) TO HOUR": millis("DAY_TO_HOUR"),
    "INTERVAL DAY(2) TO MINUTE": millis("DAY_TO_MINUTE"),
    "INTERVAL DAY(2) TO SECOND(6)": millis("DAY_TO_SECOND"),
    "INTERVAL HOUR": millis("HOUR"),
    "INTERVAL HOUR TO MINUTE": millis("HOUR_TO_MINUTE"),
    "INTERVAL HOUR TO SECOND(6)": millis("HOUR_TO_SECOND"),
    "INTERVAL MINUTE": millis("MINUTE"),
    "INTERVAL MINUTE TO SECOND(6)": millis("MINUTE_TO_SECOND"),
    "INTERVAL SECOND(6)": millis("SECOND"),
    "INTERVAL DAY(6) TO SECOND(9) NOT NULL": millis("DAY_TO_SECOND", 6, 9, nullable=False),
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
    "sql timewindow": (SQL_TIME_WINDOW, (TimeWindow(-1000, 1000),)),
    "sql countwindow": (SQL_COUNT_WINDOW, (CountWindow(7),)),
    "sql null": (SQL_NULL, (None,)),
    "globalwindow": (GLOBAL_WINDOW, (None,)),
    "boolean[]": (BOOLEANS, ((True, False),)),
    "short[]": (SHORTS, ((1, -2),)),
    "int[]": (INTS, ((1, -2), ())),
    "long[]": (LONGS, ((1 << 40, -2),)),
    "float[]": (FLOATS, ((1.5, -2.5),)),
    "double[]": (DOUBLES, ((1.5, -2.5),)),
    "char[]": (CHARS, (("a", "€"),)),
    "string[]": (STRINGS, (("hä", None, ""),)),
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
    "rowdata<intervals>": (
        RowDataSerializer((months("YEAR_TO_MONTH"), millis("DAY_TO_SECOND"))),
        tuple(RowData(0, fields) for fields in ((14, 90_061_001), (-14, -90_061_001), (None, None))),
    ),
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
    "pojo": (POJO, ()),
    "pojo<order>": (
        PojoSerializer(
            f"{OWN}$Order",
            tuple(
                PojoField(name, f"{OWN}$Order", serializer)
                for name, serializer in {
                    "amount": LONG,
                    "at": INSTANT,
                    "colour": EnumSerializer(f"{OWN}$Colour", ("RED", "GREEN")),
                    "inner": POJO,
                    "name": STRING,
                    "parts": ListSerializer((INT,)),
                }.items()
            ),
        ),
        (
            (1, Instant(3, 5), "GREEN", (7,), "a", (1, 2)),
            (None, Instant(3, 5), "GREEN", None, None, ()),
            None,
        ),
    ),
}
"""The same serializers and values in Python, by their name in the dump."""

INNER = LogicalType("ROW", children=(LogicalType("INTEGER"), VARCHAR), names=("id", "name"))


def array(element: LogicalType, *, nullable: bool = True) -> LogicalType:
    return LogicalType("ARRAY", nullable=nullable, children=(element,))


def mapping(key: LogicalType, value: LogicalType, *, nullable: bool = True) -> LogicalType:
    return LogicalType("MAP", nullable=nullable, children=(key, value))


_OF_ROW = LogicalType("ROW", children=(LogicalType("INTEGER", nullable=False), VARCHAR), names=("id", "name"))
NESTED_TYPES = {
    "ARRAY<BIGINT>": array(BIGINT),
    "ARRAY<STRING NOT NULL> NOT NULL": array(replace(VARCHAR, nullable=False), nullable=False),
    "ARRAY<ARRAY<INT>>": array(array(LogicalType("INTEGER"))),
    "MAP<STRING, BIGINT>": mapping(VARCHAR, BIGINT),
    "MAP<INT, ARRAY<STRING>> NOT NULL": mapping(LogicalType("INTEGER"), array(VARCHAR), nullable=False),
    "MULTISET<STRING>": LogicalType("MULTISET", children=(VARCHAR,)),
    "ROW<`id` INT NOT NULL, `name` STRING>": _OF_ROW,
    "ROW<`a` ARRAY<ROW<`id` INT NOT NULL, `name` STRING>> '...'> NOT NULL": LogicalType(
        "ROW", nullable=False, children=(array(_OF_ROW),), names=("a",)
    ),
    "ARRAY<TIMESTAMP(6)>": array(timestamp(6)),
    "MAP<STRING, DECIMAL(30, 2)>": mapping(VARCHAR, LogicalType("DECIMAL", (30, 2))),
}
"""Logical types with nested ones, by their name in the dump."""

LONG_TEXT = "a longer string"
EVENT = EventId(1, 1000)
NODE = NodeId(EVENT, "first:0")
OF_NODE = NodeIdSerializer((EVENT_ID,))
OF_EDGE = SharedBufferEdgeSerializer((OF_NODE, DEWEY_NUMBER))
RAW_TEXT = LogicalType("RAW", class_name="java.lang.String", raw=STRING)
VIEW = LogicalType("RAW", class_name="org.apache.flink.table.api.dataview.MapView", raw=SQL_NULL)
ACCUMULATOR = RowDataSerializer(
    (
        RAW_TEXT,
        LogicalType("STRUCTURED_TYPE", children=(BIGINT, VIEW), names=("amount", "view"), class_name=f"{OWN}$Order"),
        VIEW,
        array(replace(RAW_TEXT, raw=None)),
    )
)
READ_ONLY: dict[str, tuple[Serializer, tuple[Any, ...]]] = {
    **{f"type {name}": (RowDataSerializer((logical_type,)), ()) for name, logical_type in NESTED_TYPES.items()},
    "rowdata<arrays of numbers>": (
        RowDataSerializer(
            tuple(
                array(LogicalType(root))
                for root in ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE")
            )
        ),
        (
            RowData(
                0,
                ((True, None, False), (1, None), (-1, 2, None), (1, None, 3), (1 << 40, None), (1.5, None), (-2.5,)),
            ),
            RowData(0, ((), None, None, None, None, None, ())),
        ),
    ),
    "rowdata<array of 40 ints>": (
        RowDataSerializer((array(LogicalType("INTEGER")),)),
        (RowData(0, (tuple(None if number % 3 == 0 else number for number in range(40)),)),),
    ),
    "rowdata<nested>": (
        RowDataSerializer(
            (
                array(VARCHAR),
                array(LogicalType("DECIMAL", (30, 2))),
                array(timestamp(6)),
                array(array(VARCHAR)),
                array(INNER),
                INNER,
                LogicalType("VARBINARY", (MAX_LENGTH,)),
            )
        ),
        (
            RowData(
                0,
                (
                    ("ab", None, LONG_TEXT),
                    (Decimal("-1.50"), None),
                    (Timestamp(-1234, 567_000), None),
                    ((LONG_TEXT,), None, ()),
                    (RowData(0, (1, LONG_TEXT)), None, RowData(0, (None, "ab"))),
                    RowData(2, (2, None)),
                    b"\1",
                ),
            ),
            RowData(0, (None,) * 7),
        ),
    ),
    "rowdata<nested intervals>": (
        RowDataSerializer((array(months("MONTH")), mapping(VARCHAR, millis("SECOND")))),
        (RowData(0, ((14, None, -1), (("ab", 1 << 40), (LONG_TEXT, None)))),),
    ),
    "rowdata<maps>": (
        RowDataSerializer(
            (
                mapping(VARCHAR, BIGINT),
                mapping(LogicalType("INTEGER"), array(VARCHAR)),
                LogicalType("MULTISET", children=(VARCHAR,)),
                mapping(VARCHAR, INNER),
            )
        ),
        (
            RowData(
                0,
                (
                    (("ab", 1), (LONG_TEXT, None)),
                    ((7, (LONG_TEXT, None)),),
                    ((LONG_TEXT, 3),),
                    (("ab", RowData(0, (1, LONG_TEXT))),),
                ),
            ),
            RowData(0, ((), None, None, None)),
        ),
    ),
    "arraydata<bigint>": (ArrayDataSerializer(BIGINT), ((1 << 40, None), ())),
    "mapdata<int,bigint>": (
        MapDataSerializer(LogicalType("INTEGER"), BIGINT),
        (((7, 1), (8, None)), ()),
    ),
    "external<string>": (ExternalSerializer((STRING_DATA,)), ("hä",)),
    "external<row>": (
        ExternalSerializer((RowDataSerializer((BIGINT, array(VARCHAR))),)),
        (RowData(0, (1, ("a", None))), RowData(0, (None, None))),
    ),
    "external<timestamp>": (
        ExternalSerializer((TimestampDataSerializer(6),)),
        (Timestamp(1_709_168_520_000),),
    ),
    "raw<string>": (RawValueSerializer((STRING,)), ("hä",)),
    "mapview<string,long>": (MapViewSerializer((MapSerializer((STRING, LONG)),)), ((("x", 7),),)),
    "listview<long>": (ListViewSerializer((ListSerializer((LONG,)),)), ((1, 2),)),
    "nullawaremap<string,long>": (NullAwareMapSerializer((STRING, LONG)), (((None, 1), ("x", None)),)),
    "linkedlist<long>": (LinkedListSerializer((LONG,)), ((1, None, 3, 4, 5, 6, 7, 8, None), ())),
    "linkedlist<long> without nulls": (LinkedListSerializer((LONG,), has_nulls=False), ((1, 2),)),
    "sortedmap<long,string>": (SortedMapSerializer((LONG, STRING)), (((1, "a"), (2, "b"), (3, None)),)),
    "rowdata<accumulator>": (
        ACCUMULATOR,
        (RowData(0, (LONG_TEXT, RowData(0, (5, None)), None, None)), RowData(0, (None,) * 4)),
    ),
    "deweynumber": (DEWEY_NUMBER, ((1, 0, 2),)),
    "eventid": (EVENT_ID, (EVENT,)),
    "nodeid": (OF_NODE, (NODE, None)),
    "sharedbufferedge": (OF_EDGE, (SharedBufferEdge(NODE, (1, 0, 2)),)),
    "sharedbuffernode": (
        SharedBufferNodeSerializer((OF_EDGE,)),
        ((Lockable(0, SharedBufferEdge(NODE, (1, 0, 2))), Lockable(0, SharedBufferEdge(None, (1, 0, 2)))),),
    ),
    "lockable<string>": (LockableSerializer((STRING,)), (Lockable(2, "hä"),)),
    "nfastate": (
        NFAStateSerializer((DEWEY_NUMBER, OF_NODE, EVENT_ID)),
        (
            NFAState(
                (
                    ComputationState("start", None, (1,), -1, -1, None),
                    ComputationState("next", NODE, (1, 0, 2), 1000, 2000, EVENT),
                ),
                (),
            ),
        ),
    ),
    "avro": (
        AvroSerializer.of("org.apache.avro.generic.GenericRecord", AVRO_SCHEMA),
        tuple(
            (
                *("hä", -5, 1 << 40, 1.5, -2.5, True, b"\1\2", b"\3\4\5", "GREEN"),
                *choices,
                *((9,), -1234, 1_234_567, 19000, b"\xff\x6a"),
            )
            for choices in (("here", ("long", 7), (1, 2, 3), (("k", 1),)), (None, None, (), ()))
        ),
    ),
}
"""Serializers whose values are read only, and their values, by their name in the dump."""

UNKNOWN = {
    "raw<kryo>": "org.apache.flink.api.java.typeutils.runtime.kryo.KryoSerializerSnapshot",
    "kryo": "org.apache.flink.api.java.typeutils.runtime.kryo.KryoSerializerSnapshot",
    "type DISTINCT": "org.apache.flink.table.types.logical.DistinctType",
}
"""Classes outside of our table, by their name in the dump."""

BINARY_ROW: tuple[Serializer, str] = (BinaryRowDataSerializer(2), "binaryrow(2)")
"""Serializer whose values are bytes, because its snapshot does not say the types."""
