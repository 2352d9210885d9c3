"""Each serializer against the bytes of real Flink: snapshot, values, hash, key group; and damage of all of them."""

from __future__ import annotations

import json
import struct
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest

from spark_ckpt.flink.streams import StateStreamFormatError, UnknownSerializerError, Value
from spark_ckpt.flink.streams.assignment import key_group_of
from spark_ckpt.flink.streams.serializers import CLASS_NAMES, read_serializer, write_serializer
from spark_ckpt.flink.streams.stream_input import StreamInput
from spark_ckpt.flink.streams.types import binary_row
from spark_ckpt.flink.streams.types.avro import AvroSerializer
from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.types.big_numbers import BIG_DECIMAL, BIG_INTEGER
from spark_ckpt.flink.streams.types.composites import (
    ListSerializer,
    MapSerializer,
    NullableSerializer,
    RowSerializer,
    TimerSerializer,
    TtlSerializer,
    TupleSerializer,
)
from spark_ckpt.flink.streams.types.enums import EnumSerializer
from spark_ckpt.flink.streams.types.logical_types import LogicalType
from spark_ckpt.flink.streams.types.pojo import PojoSerializer
from spark_ckpt.flink.streams.types.primitives import (
    BYTES,
    CHAR,
    FLOAT,
    INT,
    LONG,
    TIME_WINDOW,
    VOID_NAMESPACE,
)
from spark_ckpt.flink.streams.types.row_data import (
    DecimalDataSerializer,
    RowDataSerializer,
    TimestampDataSerializer,
)
from spark_ckpt.flink.streams.types.text import STRING, STRING_DATA, write_string
from spark_ckpt.flink.streams.types.times import INSTANT, LOCAL_DATE, LOCAL_DATE_TIME, LOCAL_TIME, SQL_TIMESTAMP
from spark_ckpt.flink.streams.values import (
    Instant,
    LocalDate,
    LocalTime,
    Row,
    RowData,
    SqlTimestamp,
    Timestamp,
    TtlValue,
)
from spark_ckpt.metadata import MetadataValueError
from spark_ckpt.metadata.data_output import DataOutput
from tests.flink.streams.corpus import open_stream
from tests.flink.streams.types.flink_serializers import (
    BINARY_ROW,
    FILE_OF_2_1,
    IN_PYTHON,
    KEY_GROUPS,
    POJO,
    READ_ONLY,
    TYPES,
    UNKNOWN,
    flink_serializers,
    timestamp,
)

VERSION = struct.pack(">i", 2)
U32 = 0xFFFFFFFF


def read(snapshot: bytes) -> Serializer:
    with open_stream(VERSION + snapshot) as stream:
        data = stream.input()
        serializer = read_serializer(data, "value_serializer")
        assert data.at_end()
    return serializer


def snapshot_of(serializer: Serializer) -> bytes:
    out = DataOutput()
    write_serializer(serializer, out, "value_serializer")
    return out.getvalue()[len(VERSION) :]


def value(serializer: Serializer, content: bytes) -> Value:
    with open_stream(content) as stream:
        data = stream.input()
        found = serializer.read(data, "value")
        assert data.at_end()
    return found


def written(serializer: Serializer, content: Any) -> bytes:
    out = DataOutput()
    serializer.write(content, out, "value")
    return out.getvalue()


def without_binary(found: Any) -> Any:
    return found._replace(binary=b"") if isinstance(found, RowData) else found


@pytest.mark.parametrize("name", IN_PYTHON)
def test_snapshots_equal_those_of_flink(name: str) -> None:
    flink, (serializer, _) = flink_serializers()[name], IN_PYTHON[name]
    assert snapshot_of(serializer) == flink.snapshot
    assert read(flink.snapshot) == serializer
    assert serializer.snapshot_class == flink.class_name
    assert serializer.has_fixed_length == (flink.length != -1)


@pytest.mark.parametrize("name", [name for name, (_, values) in IN_PYTHON.items() if values])
def test_values_equal_those_of_flink(name: str) -> None:
    flink, (serializer, values) = flink_serializers()[name], IN_PYTHON[name]
    for ours, flinks in zip(values, flink.values, strict=True):
        assert written(serializer, ours) == flinks.content
        # As text, because NaN does not equal itself, but -0.0 equals 0.0.
        found = value(serializer, flinks.content)
        assert repr(without_binary(found)) == repr(ours)
        # A row as read is written with its own bytes.
        assert written(serializer, found) == flinks.content


def bare(found: Any) -> Any:
    """A value without the bytes of its rows."""
    if isinstance(found, RowData):
        return RowData(found.kind, bare(found.fields))
    if isinstance(found, tuple) and type(found) is tuple:
        return tuple(map(bare, found))
    return found


@pytest.mark.parametrize("name", READ_ONLY)
def test_nested_values_are_those_of_flink(name: str) -> None:
    flink, (serializer, values) = flink_serializers()[name], READ_ONLY[name]
    found = read(flink.snapshot)
    assert found == serializer
    assert snapshot_of(found) == flink.snapshot
    assert serializer.snapshot_class == flink.class_name
    assert serializer.has_fixed_length == (flink.length != -1)
    assert len(values) == len(flink.values)
    for ours, flinks in zip(values, flink.values, strict=True):
        assert bare(value(found, flinks.content)) == ours
        if isinstance(serializer, RowDataSerializer):
            # A row as read is written with its own bytes, and hashed by them.
            row = value(found, flinks.content)
            assert written(found, row) == flinks.content
            code = serializer.hash_code(row)
            assert code is not None and flinks.hash_code is not None
            assert code & U32 == flinks.hash_code & U32


@pytest.mark.parametrize("name", flink_serializers(FILE_OF_2_1))
def test_snapshots_of_flink_2_are_read(name: str) -> None:
    assert read(flink_serializers(FILE_OF_2_1)[name].snapshot) == READ_ONLY[name][0]


@pytest.mark.parametrize("name", READ_ONLY)
def test_what_is_only_read_is_refused_on_writing(name: str) -> None:
    serializer, values = READ_ONLY[name]
    for each in values:
        if isinstance(each, RowData) and not any(isinstance(field, (tuple, RowData)) for field in each.fields):
            continue
        with pytest.raises(MetadataValueError, match="can be read, but not written"):
            written(serializer, each)


def test_a_pojo_with_a_field_of_an_unknown_class_is_read_as_bytes() -> None:
    """The snapshot of a field has a length."""
    snapshot = flink_serializers()["pojo<order>"].snapshot
    changed = snapshot.replace(b"InstantSerializer", b"UnknownSerializer")
    assert changed != snapshot
    serializer = read(changed)
    assert isinstance(serializer, PojoSerializer)
    unknown = serializer.fields[1]
    assert unknown.name == "at"
    assert str(unknown.serializer).endswith("UnknownSerializer$UnknownSerializerSnapshot")
    assert serializer.is_opaque
    assert snapshot_of(serializer) == changed


def test_a_pojo_with_subclasses_is_opaque() -> None:
    """Two maps of subclasses end the snapshot: one with the class of a subclass, and its snapshot."""
    snapshot = flink_serializers()["pojo"].snapshot
    empty = struct.pack(">qi", 0x4F2C69A3D70, 0)
    assert snapshot.endswith(empty + empty)
    entry = b"\0\3a.B" + b"\1\0\0\0\0" + b"\1" + struct.pack(">i", len(snapshot)) + snapshot
    serializer = read(snapshot[: -len(empty)] + struct.pack(">qi", 0x4F2C69A3D70, 1) + entry)
    assert serializer.is_opaque
    assert str(serializer) == f"{POJO!s}"[:-1] + " with a.B>"


def test_subclasses_of_a_pojo_are_named() -> None:
    for content, which in ((b"\4\0\3a.B", "subclass a.B of"), (b"\x08\5", "subclass number 5 of")):
        with pytest.raises(StateStreamFormatError, match=which):
            value(POJO, content)
    with pytest.raises(StateStreamFormatError, match="unknown flags"):
        value(POJO, b"\0")


@pytest.mark.parametrize("schema", ["{", "[1]", '{"type": "recor"}', '"x.Unknown"', '{"type": "record", "name": "a"}'])
def test_a_malformed_schema_is_refused(schema: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        AvroSerializer.of("a.B", schema)
    out = DataOutput()
    write_string(out, "a.B", "")
    write_string(out, schema, "")
    content = out.getvalue()
    name = AvroSerializer.class_name.encode()
    with pytest.raises(StateStreamFormatError, match="not a schema of Avro"):
        read(len(name).to_bytes(2, "big") + name + struct.pack(">i", 3) + content)


def test_names_of_a_schema_are_resolved() -> None:
    inner = {"type": "enum", "name": "Inner", "symbols": ["A"]}
    fields = [{"name": "a", "type": inner}, {"name": "b", "type": "Inner"}, {"name": "c", "type": "com.x.Inner"}]
    schema = {"type": "record", "name": "com.x.Outer", "fields": fields}
    serializer = AvroSerializer.of("a.B", json.dumps(schema))
    assert value(serializer, bytes(12)) == ("A", "A", "A")
    assert str(serializer) == "Avro<com.x.Outer>"
    with pytest.raises(StateStreamFormatError, match="choice 1 of 1 of a enum"):
        value(serializer, b"\0\0\0\1" + bytes(8))


def test_a_schema_that_refers_to_itself_is_opaque() -> None:
    schema = {"type": "record", "name": "Tree", "fields": [{"name": "next", "type": ["null", "Tree"]}]}
    serializer = AvroSerializer.of("a.Tree", json.dumps(schema))
    assert serializer.is_opaque
    assert str(serializer) == "Avro<a.Tree>"
    with pytest.raises(StateStreamFormatError, match="refers to itself"):
        value(serializer, bytes(4))


HASHED = {
    name: (serializer, values)
    for name, (serializer, values) in IN_PYTHON.items()
    if name not in ("bytes", "void", "timewindow", "globalwindow", "stringdata", "enum")
    and not name.endswith("[]")
    and not name.startswith(("sql ", "list", "map", "timer", "timestampdata", "decimaldata", "type", "pojo"))
}


@pytest.mark.parametrize("name", HASHED)
def test_keys_hash_as_in_flink(name: str) -> None:
    serializer, values = HASHED[name]
    for ours, flinks in zip(values, flink_serializers()[name].values, strict=True):
        if ours is None:
            continue
        code = serializer.hash_code(ours)
        assert code is not None
        assert flinks.hash_code is not None
        assert code & U32 == flinks.hash_code & U32
        assert key_group_of(code, KEY_GROUPS) == flinks.key_group
        assert serializer.hash_code(value(serializer, flinks.content)) == code


def test_the_dump_has_each_serializer_of_the_table() -> None:
    dumped = {serializer.class_name for serializer in flink_serializers().values()}
    assert CLASS_NAMES - dumped == {TtlSerializer.class_name}, "a state with a time to live needs a running job"
    assert set(flink_serializers()) == {*IN_PYTHON, *READ_ONLY, *UNKNOWN, BINARY_ROW[1]}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_class_outside_the_table_is_named(name: str) -> None:
    with pytest.raises(UnknownSerializerError) as unknown:
        read(flink_serializers()[name].snapshot)
    assert unknown.value.class_name == UNKNOWN[name]
    assert unknown.value.offset < len(flink_serializers()[name].snapshot)


def test_rows_without_types_are_bytes() -> None:
    serializer, name = BINARY_ROW
    flink = flink_serializers()[name]
    assert read(flink.snapshot) == serializer
    assert snapshot_of(serializer) == flink.snapshot
    (row,) = flink.values
    found = value(serializer, row.content)
    assert found == row.content[4:]
    assert written(serializer, found) == row.content
    assert row.hash_code is not None
    assert serializer.hash_code(found) == row.hash_code & U32


@pytest.mark.parametrize("name", TYPES)
def test_logical_types_have_the_names_of_sql(name: str) -> None:
    assert str(TYPES[name]) == name.partition(" *")[0].removesuffix(" REGULAR")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("type INTERVAL SECOND(6)", "'DECADE' is not one of DAY, .*, SECOND"),
        ("rowdata<nested intervals>", "malformed"),
    ],
)
def test_an_interval_of_other_units_is_refused(name: str, message: str) -> None:
    snapshot = flink_serializers()[name].snapshot
    with pytest.raises(StateStreamFormatError, match=message):
        read(snapshot.replace(b"\0\6SECOND", b"\0\6DECADE"))


def test_a_value_with_a_time_to_live() -> None:
    serializer = TtlSerializer((LONG, STRING))
    assert read(snapshot_of(serializer)) == serializer
    assert str(serializer) == "TTL<String>"
    content = struct.pack(">q", 1234) + b"\x02a"
    assert value(serializer, content) == TtlValue(1234, "a")
    assert written(serializer, TtlValue(1234, "a")) == content
    assert TtlSerializer((LONG, INT)).has_fixed_length


def test_a_null_may_keep_its_place_in_a_row() -> None:
    # Rows of the generated code of Flink SQL: they differ in bytes and hash from those of RowDataSerializer.
    types = (timestamp(6), LogicalType("DECIMAL", (20, 0)), LogicalType("BIGINT"), timestamp(3))
    row = binary_row.encode(types, 0, (None, None, 5, None), DataOutput(), "key", null_places=True)
    assert len(row) == 8 + 4 * 8 + 8 + 16
    assert struct.unpack_from("<QQ", row, 8) == (40 << 32, 48 << 32)
    serializer = RowDataSerializer(types)
    found = value(serializer, struct.pack(">i", len(row)) + row)
    assert without_binary(found) == RowData(0, (None, None, 5, None))
    assert serializer.hash_code(found) != serializer.hash_code(without_binary(found))
    assert written(serializer, found)[4:] == row


def test_a_row_without_row_kind() -> None:
    serializer = RowSerializer((LONG, INT), has_row_kind=False)
    assert read(snapshot_of(serializer)) == serializer
    assert written(serializer, Row(0, (None, 1))) == b"\x80" + struct.pack(">i", 1)
    assert value(serializer, b"\x80" + struct.pack(">i", 1)) == Row(0, (None, 1))


def test_hashes_that_are_unknown() -> None:
    # Null, or classes of the user's, or those with another hash in each JVM.
    assert LONG.hash_code(None) is None
    assert TupleSerializer((LONG,), "com.example.Pair").hash_code((1,)) is None
    assert TupleSerializer.of(LONG, BYTES).hash_code((1, b"")) is None
    assert RowSerializer((BYTES,)).hash_code(Row(0, (b"",))) is None
    assert EnumSerializer("com.example.E", ("A",)).hash_code("A") is None
    assert NullableSerializer((LONG,)).hash_code(None) is None


WRONG: list[tuple[Serializer, Any]] = [
    (INT, "1"),
    (INT, 1 << 31),
    (LONG, 1.5),
    (FLOAT, 1e300),
    (CHAR, "ab"),
    (CHAR, "😀"),
    (STRING, b"a"),
    (STRING_DATA, 1),
    (STRING_DATA, "\ud800"),
    (BYTES, "a"),
    (VOID_NAMESPACE, 0),
    (TIME_WINDOW, (1, 2)),
    (BIG_INTEGER, 1.0),
    (BIG_INTEGER, True),
    (BIG_DECIMAL, Decimal("NaN")),
    (BIG_DECIMAL, 1),
    (INSTANT, (1, 2)),
    (INSTANT, Instant(1 << 63, 0)),
    (SQL_TIMESTAMP, Instant(0, 0)),
    (LOCAL_DATE, LocalDate(1 << 31, 1, 1)),
    (LOCAL_TIME, (1, 2, 3, 4)),
    (LOCAL_DATE_TIME, LocalDate(2024, 1, 1)),
    (ListSerializer((LONG,)), 1),
    (MapSerializer((LONG, LONG)), ((1,),)),
    (TimerSerializer((LONG, VOID_NAMESPACE)), (1 << 63, 1, None)),
    (TimerSerializer((LONG, VOID_NAMESPACE)), (1, 1)),
    (TupleSerializer.of(LONG, LONG), (1,)),
    (RowSerializer((LONG,)), (1,)),
    (RowSerializer((LONG,)), Row(4, (1,))),
    (RowSerializer((LONG,), has_row_kind=False), Row(1, (1,))),
    (EnumSerializer("com.example.E", ("A",)), "B"),
    (DecimalDataSerializer(4, 2), Decimal("1.5")),
    (DecimalDataSerializer(4, 2), Decimal("100.00")),
    (TimestampDataSerializer(3), Timestamp(0, 1)),
    (TimestampDataSerializer(6), Timestamp(0, 1_000_000)),
    (RowDataSerializer((LogicalType("INTEGER"),)), (1,)),
    (RowDataSerializer((LogicalType("INTEGER"),)), RowData(0, ())),
    (RowDataSerializer((LogicalType("INTEGER"),)), RowData(4, (1,))),
    (RowDataSerializer((LogicalType("INTEGER"),)), RowData(0, ("1",))),
    (RowDataSerializer((LogicalType("DECIMAL", (4, 2)),)), RowData(0, (Decimal("1.5"),))),
    (RowDataSerializer((LogicalType("VARBINARY", (4,)),)), RowData(0, ("a",))),
    (RowDataSerializer((LogicalType("VARCHAR", (4,)),)), RowData(0, (b"a",))),
    (RowDataSerializer((timestamp(3),)), RowData(0, (Timestamp(0, 1),))),
    (RowDataSerializer((timestamp(6),)), RowData(0, (1,))),
    (RowDataSerializer((timestamp(6),)), RowData(0, (Timestamp(1 << 63, 1),))),
]


@pytest.mark.parametrize(("serializer", "content"), WRONG, ids=lambda part: str(part)[:60])
def test_values_of_another_type_are_refused(serializer: Serializer, content: Any) -> None:
    with pytest.raises(MetadataValueError, match="value"):
        written(serializer, content)


@pytest.mark.parametrize(
    "logical_type",
    [
        LogicalType("ARRAY"),
        LogicalType("BIGINT", (1,)),
        LogicalType("DECIMAL", (39, 0)),
        LogicalType("TIMESTAMP_WITHOUT_TIME_ZONE", (3,)),
        LogicalType("BIGINT", timestamp_kind="REGULAR"),
        LogicalType("BIGINT", resolution="DAY"),
        LogicalType("INTERVAL_YEAR_MONTH", resolution="YEAR"),
        LogicalType("INTERVAL_YEAR_MONTH", (2,)),
        LogicalType("INTERVAL_YEAR_MONTH", (5,), resolution="YEAR"),
        LogicalType("INTERVAL_YEAR_MONTH", (2,), resolution="DAY"),
        LogicalType("INTERVAL_DAY_TIME", (2, 6), resolution="SECOND", timestamp_kind="REGULAR"),
    ],
    ids=str,
)
def test_types_that_are_not_plain_cannot_be_written(logical_type: LogicalType) -> None:
    with pytest.raises(MetadataValueError, match="type"):
        snapshot_of(RowDataSerializer((logical_type,)))


MALFORMED: list[tuple[Serializer, str]] = [
    (BIG_INTEGER, "00000004"),
    (BIG_INTEGER, "ffffffff"),
    (BIG_INTEGER, "7fffffff00"),
    (BIG_INTEGER, f"{4 + 1025:08x}" + "01" * 1025),
    (SQL_TIMESTAMP, "0000000000000000ffffffff"),
    (INSTANT, "00000000000000003b9aca00"),
    (LOCAL_DATE, "000007e80d01"),
    (LOCAL_DATE, "000007e80100"),
    (LOCAL_TIME, "18000000000000"),
    (LOCAL_DATE_TIME, "800000008000" + "00000000000000"),
    (STRING_DATA, "00000001ff"),
    (EnumSerializer("com.example.E", ("A",)), "00000001"),
    (EnumSerializer("com.example.E", ("A",)), "ffffffff"),
    (DecimalDataSerializer(20, 0), "00000000"),
    (TimestampDataSerializer(6), "0000000000000000000f4240"),
    # Rows: too short; offsets behind the end; text that is none; too many bytes in a slot or a decimal; nanoseconds.
    (RowDataSerializer((LogicalType("INTEGER"),)), "00000008" + "00" * 8),
    (RowDataSerializer((TYPES["STRING"],)), "00000010" + "00" * 8 + "0800000010000000"),
    (RowDataSerializer((TYPES["STRING"],)), "00000010" + "00" * 8 + "ff00000000000081"),
    (RowDataSerializer((TYPES["STRING"],)), "00000010" + "00" * 8 + "0000000000000088"),
    (RowDataSerializer((TYPES["DECIMAL(30, 2)"],)), "00000010" + "00" * 8 + "1100000000000000"),
    (RowDataSerializer((TYPES["DECIMAL(30, 2)"],)), "00000010" + "00" * 8 + "1000000001000000"),
    (RowDataSerializer((timestamp(6),)), "00000010" + "00" * 8 + "40420f0000000000"),
    (RowDataSerializer((timestamp(6),)), "00000010" + "00" * 8 + "0000000009000000"),
]


@pytest.mark.parametrize(("serializer", "content"), MALFORMED, ids=str)
def test_malformed_values(serializer: Serializer, content: str) -> None:
    with pytest.raises(StateStreamFormatError, match="value"):
        value(serializer, bytes.fromhex(content))


def damaged(content: bytes) -> list[bytes]:
    """Every truncation, and each byte changed in one bit."""
    cut = [content[:length] for length in range(len(content))]
    changed = [content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :] for at in range(len(content))]
    return [*cut, *changed]


def accepts(snapshot: bytes) -> bool:
    try:
        read_serializer(StreamInput(iter([VERSION + snapshot]), "damaged"), "value_serializer")
    except StateStreamFormatError:
        return False
    return True


# Logical types differ only in names and numbers: one of each layout. Long snapshots repeat the same bytes.
DAMAGED = [
    name
    for name in IN_PYTHON
    if len(flink_serializers()[name].snapshot) < 2000
    # Names of the user's are most of a POJO's, and a field of an unknown class is bytes.
    and not name.startswith("pojo")
    and (not name.startswith("type") or "BIGINT" in name or "(9)" in name)
]


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_bytes_are_refused_with_a_typed_error(name: str) -> None:
    flink, (serializer, _) = flink_serializers()[name], IN_PYTHON[name]
    accepted = [snapshot for snapshot in damaged(flink.snapshot) if accepts(snapshot)]
    # Nearly all bytes of a snapshot are names of classes; the rest are versions, counts, bounds, names of constants.
    assert len(accepted) < len(flink.snapshot) / 2
    assert all(len(snapshot) == len(flink.snapshot) for snapshot in accepted), "a truncated snapshot"
    for flinks in flink.values:
        for content in damaged(flinks.content):
            with suppress(StateStreamFormatError):
                found = serializer.read(StreamInput(iter([content]), "damaged"), "value")
                serializer.hash_code(found)
                assert len(content) == len(flinks.content), "a truncated value"


@pytest.mark.parametrize("name", ["pojo", "pojo<order>", *READ_ONLY])
def test_damaged_nested_types_are_refused_with_a_typed_error(name: str) -> None:
    flink = flink_serializers()[name]
    serializer = read(flink.snapshot)
    snapshots = damaged(flink.snapshot)
    step = len(snapshots) // 1000 + 1
    for snapshot in snapshots[::step]:
        assert not accepts(snapshot) or len(snapshot) == len(flink.snapshot), "a truncated snapshot"
    for flinks in flink.values:
        for content in damaged(flinks.content):
            with suppress(StateStreamFormatError):
                serializer.read(StreamInput(iter([content]), "damaged"), "value")
                assert len(content) == len(flinks.content), "a truncated value"


def test_sql_timestamps_count_nanoseconds_from_the_second() -> None:
    assert written(SQL_TIMESTAMP, SqlTimestamp(1234, 234_000_000)) == struct.pack(">qi", 1234, 234_000_000)
    assert written(LOCAL_TIME, LocalTime(1, 2, 3, 4)) == struct.pack(">bbbi", 1, 2, 3, 4)
