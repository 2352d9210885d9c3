"""Small savepoints that stand for hours and gigabytes: each is one error that names the file and the place."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from click.testing import CliRunner

from spark_ckpt.cli.main import main
from spark_ckpt.flink.streams import StateStreamFormatError
from spark_ckpt.flink.streams.types import primitives
from spark_ckpt.flink.streams.types.avro import AvroSerializer
from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.types.binary_row import MalformedRowError, decode, decode_array, header_bytes
from spark_ckpt.flink.streams.types.composites import ListSerializer
from spark_ckpt.flink.streams.types.logical_types import MAX_LENGTH, LogicalType
from spark_ckpt.flink.streams.types.opaque import OpaqueSerializer
from spark_ckpt.flink.streams.types.pojo import PojoField, PojoSerializer
from spark_ckpt.flink.streams.types.row_data import RowDataSerializer
from spark_ckpt.flink.streams.values import RowData
from spark_ckpt.flink.tables.find import find_flink_state
from spark_ckpt.metadata.data_output import DataOutput
from spark_ckpt.reading import read_state
from tests.flink.tables.hostile import JavaWriter, reference, savepoint

TEXT = LogicalType("VARCHAR", (MAX_LENGTH,))


def array(element: LogicalType) -> LogicalType:
    return LogicalType("ARRAY", children=(element,))


def avro(schema: str) -> AvroSerializer:
    """Serializer of a schema that is not looked at."""
    return AvroSerializer("a.B", schema, None)


def records(depth: int) -> str:
    """Schema of records, each of which names the one before again."""
    kind: object = "int"
    for number in range(depth):
        again = f"R{number - 1}" if number else "int"
        fields = [{"name": "f0", "type": kind}, {"name": "f1", "type": again}]
        kind = {"type": "record", "name": f"R{number}", "fields": fields}
    return json.dumps(kind)


def nested_types(depth: int) -> bytes:
    """Maps, each with the one before as keys and as values."""
    java = JavaWriter()

    def nested(level: int) -> tuple[bytes, int]:
        if not level:
            return java.type_of("IntType", "INTEGER")
        begin, handle = java.type_of("MapType", "MAP", "keyType", "valueType")
        child, of_child = nested(level - 1)
        return begin + child + reference(of_child), handle

    return b"\xac\xed\0\5" + nested(depth)[0]


def type_within_itself() -> bytes:
    begin, handle = JavaWriter().type_of("ArrayType", "ARRAY", "elementType")
    return b"\xac\xed\0\5" + begin + reference(handle)


def row_of(java: bytes) -> Serializer:
    """Serializer of rows of one type, as bytes of Java."""
    return OpaqueSerializer(RowDataSerializer.class_name, bytes(4) + b"\0\0\0\1" + java + bytes(100))


def nested_lists(depth: int) -> Serializer:
    name = ListSerializer.class_name.encode()
    numbers = b"".join(number.to_bytes(4, "big") for number in (911108, 1, 1333245, 1, 1))
    level = numbers + len(name).to_bytes(2, "big") + name + (3).to_bytes(4, "big")
    return OpaqueSerializer(ListSerializer.class_name, bytes(4) + level * depth)


@dataclass(frozen=True)
class PojoBytes(OpaqueSerializer):
    """POJO whose snapshot is given as bytes."""

    snapshot_version: ClassVar[int] = PojoSerializer.snapshot_version


def nested_pojos(depth: int) -> Serializer:
    """POJOs within each other, whose snapshots have lengths."""
    found: Serializer = primitives.LONG
    for _ in range(depth):
        out = DataOutput()
        PojoSerializer("a.B", (PojoField("f", "a.B", found),)).write_content(out)
        found = PojoBytes(PojoSerializer.class_name, bytes(4) + out.getvalue())
    return found


HEADERS: dict[str, tuple[Serializer, str]] = {
    "records that name each other": (avro(records(16)), "more than 10,000 types"),
    "very many records": (avro(records(30)), "more than 10,000 types"),
    "a schema that nests": (avro('{"type":"array","items":' * 3000 + '"int"' + "}" * 3000), "nests"),
    "a union that nests": (avro("[" * 3000 + '"int"' + "]" * 3000), "nests"),
    "a type that nests": (avro('{"type":' * 40 + '"int"' + "}" * 40), "nests deeper than 32"),
    "a fixed of less than nothing": (avro('{"type": "fixed", "name": "F", "size": -5}'), "F of -5 bytes"),
    "an endless precision": (avro('{"type": "bytes", "logicalType": "decimal", "precision": 1e999}'), "not a schema"),
    "two fields of one name": (
        avro('{"type": "record", "name": "R", "fields": [{"name":"a","type":"int"},{"name":"a","type":"int"}]}'),
        "two fields of one name",
    ),
    "two branches of one name": (avro('["int", "int"]'), "two branches of one name"),
    "types that share types": (row_of(nested_types(40)), "nest deeper than 32|items without bytes"),
    "very many types": (row_of(nested_types(25)), "items without bytes"),
    "a type within itself": (row_of(type_within_itself()), "nest deeper than 32"),
    "lists that nest": (nested_lists(300), "nest deeper than 32"),
    "POJOs that nest": (nested_pojos(40), "nest deeper than 32"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_hostile_headers_are_errors_with_a_place(name: str, tmp_path: Path) -> None:
    serializer, reason = HEADERS[name]
    place = savepoint(tmp_path / "sp", serializer)
    found = find_flink_state(str(place))
    assert found is not None
    with pytest.raises(StateStreamFormatError) as error:
        found.states()
    assert re.search(reason, error.value.reason)
    assert error.value.path == str(place / "state")
    assert 0 < error.value.offset <= (place / "state").stat().st_size


def test_hostile_files_are_no_traceback(tmp_path: Path) -> None:
    place = savepoint(tmp_path / "sp", avro(records(30)))
    result = CliRunner().invoke(main, ["state", str(place)])
    assert isinstance(result.exception, SystemExit)
    assert result.exit_code == 1
    assert "more than 10,000 types" in result.output


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def blocks(size: int) -> bytes:
    """Blocks of an array, each of as many items as bytes follow."""
    content = b""
    left = size
    while left > 12:
        block = varint(left - 12)
        content += block
        left -= len(block)
    return content + bytes(16)


EMPTY = {
    "nulls": json.dumps({"type": "array", "items": "null"}),
    "records without fields": json.dumps({"type": "array", "items": {"type": "record", "name": "R", "fields": []}}),
    "fixed without bytes": json.dumps({"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}),
    "records of nulls": json.dumps(
        {
            "type": "array",
            "items": {
                "type": "record",
                "name": "R",
                "fields": [{"name": f"f{number}", "type": "null"} for number in range(1000)],
            },
        }
    ),
}


@pytest.mark.parametrize("name", EMPTY)
def test_arrays_of_items_without_bytes_are_bounded(name: str, tmp_path: Path) -> None:
    place = savepoint(tmp_path / "sp", AvroSerializer.of("a.B", EMPTY[name]), (blocks(200_000),))
    with pytest.raises(StateStreamFormatError, match="items without bytes") as error:
        read_state(str(place)).to_arrow()
    assert error.value.path == str(place / "state")


def test_lists_of_items_without_bytes_are_bounded(tmp_path: Path) -> None:
    lists = b"".join((40_000 - number).to_bytes(4, "big") for number in range(10_000))
    nulls = ListSerializer((ListSerializer((AvroSerializer.of("a.B", '"null"'),)),))
    place = savepoint(tmp_path / "sp", nulls, ((10_000).to_bytes(4, "big") + lists + bytes(40_000),))
    with pytest.raises(StateStreamFormatError, match="items without bytes"):
        read_state(str(place)).to_arrow()


def test_some_items_without_bytes_are_no_harm(tmp_path: Path) -> None:
    serializer = AvroSerializer.of("a.B", EMPTY["nulls"])
    place = savepoint(tmp_path / "sp", serializer, (varint(1) + b"\0",))
    assert read_state(str(place)).to_arrow().column("value").to_pylist() == [[None]]


def slot(offset: int, length: int) -> bytes:
    return (offset << 32 | length).to_bytes(8, "little")


def shared_arrays(depth: int, width: int) -> bytes:
    """Arrays, all elements of each in the same bytes."""
    if not depth:
        return width.to_bytes(4, "little") + bytes(4) + bytes(8 * width)
    child = shared_arrays(depth - 1, width)
    first = 8 + 8 * width
    return width.to_bytes(4, "little") + bytes(4) + slot(first, len(child)) * width + child


def test_arrays_that_share_their_bytes_are_refused() -> None:
    kind = LogicalType("BIGINT")
    for _ in range(12):
        kind = array(kind)
    with pytest.raises(MalformedRowError, match="share their bytes"):
        decode_array(kind, shared_arrays(12, 10))


def shared_texts(fields: int, length: int) -> bytes:
    first = header_bytes(fields) + 8 * fields
    return bytes(header_bytes(fields)) + slot(first, length) * fields + b"x" * length


def test_texts_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    types = (TEXT,) * 100
    row = shared_texts(100, 1000)
    with pytest.raises(MalformedRowError, match="share their bytes"):
        decode(types, row)
    place = savepoint(tmp_path / "sp", RowDataSerializer(types), (len(row).to_bytes(4, "big") + row,))
    with pytest.raises(StateStreamFormatError, match="share their bytes"):
        read_state(str(place)).to_arrow()


def test_long_rows_are_read(tmp_path: Path) -> None:
    """Values have no use for the hash that keys need, which takes one step per word."""
    out = DataOutput()
    serializer = RowDataSerializer((TEXT,))
    serializer.write(RowData(0, ("x" * 10_000_000,)), out, "value")
    place = savepoint(tmp_path / "sp", serializer, (out.getvalue(),))
    assert read_state(str(place)).to_arrow().column("value").to_pylist() == [{"kind": 0, "f0": "x" * 10_000_000}]
