from __future__ import annotations

import math
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_ckpt.spark_files.types import struct_of
from spark_ckpt.state.errors import StateRowError
from spark_ckpt.state.unsafe_row import decode_rows
from tests.state import strategies
from tests.support import unsafe_writer
from tests.support.unsafe_writer import rows_of


def schema(*types: Any) -> dict[str, Any]:
    fields = [{"name": f"f{i}", "type": kind, "nullable": True, "metadata": {}} for i, kind in enumerate(types)]
    return {"type": "struct", "fields": fields}


def decode(kind: dict[str, Any], *encoded: bytes) -> pa.StructArray:
    return decode_rows(struct_of(kind), rows_of(encoded))


@settings(max_examples=100)
@given(st.data(), strategies.schemas, st.binary(max_size=9))
def test_rows_are_read_as_they_were_written(data: st.DataObject, kind: dict[str, Any], before: bytes) -> None:
    values = data.draw(st.lists(strategies.rows(kind), max_size=6))
    decoded = decode_rows(struct_of(kind), rows_of([unsafe_writer.row(kind, row) for row in values], before))
    decoded.validate(full=True)
    assert len(decoded) == len(values)
    assert decoded.null_count == 0
    for index, column in enumerate(decoded.flatten()):
        assert column.equals(pa.array([row[index] for row in values], column.type))


@settings(max_examples=100)
@given(st.data(), strategies.structs(strategies.types, 1, 4))
def test_damage_is_an_error_of_the_row_or_another_value(data: st.DataObject, kind: dict[str, Any]) -> None:
    """No slot content makes the decoder read outside the rows or raise another error."""
    encoded = [unsafe_writer.row(kind, data.draw(strategies.rows(kind))) for _ in range(2)]
    row = bytearray(encoded[1])
    for _ in range(data.draw(st.integers(1, 4))):
        row[data.draw(st.integers(0, len(row) - 1))] = data.draw(st.integers(0, 255))
    encoded[1] = bytes(row)
    error = None
    try:
        decode(kind, *encoded).validate()
    except StateRowError as e:
        error = e
    if error is not None:
        assert (error.path, error.key_group) == ("file-1", 1)
        assert 1000 <= error.offset <= 1000 + len(row)


@pytest.mark.parametrize(
    ("kind", "slot", "reason"),
    [
        ("string", 16 << 32 | 9, "a value of 9 bytes at 16 exceeds its row of 24 bytes"),
        ("string", 17 << 32 | 8, "a value of 8 bytes at 17 exceeds its row of 24 bytes"),
        ("string", -1 << 32 | 8, "a value of 8 bytes at -1 exceeds its row of 24 bytes"),
        ("string", 1 << 62 | 0xFFFFFFFF, "a value of 4294967295 bytes"),
        ("decimal(20,0)", 0 << 32 | 17, "a decimal of 17 bytes"),
        ("decimal(20,0)", 0 << 32 | 0, "a decimal of 0 bytes"),
        ("interval", 16 << 32 | 8, "an interval of 8 bytes"),
        ("variant", 16 << 32 | 3, "a variant of 3 bytes"),
        ("variant", 16 << 32 | 8, "the value of a variant exceeds its 8 bytes"),
        ({"type": "array", "elementType": "long"}, 16 << 32 | 7, "an array of 7 bytes"),
        ({"type": "array", "elementType": "long"}, 16 << 32 | 8, "the elements of an array exceed its 8 bytes"),
        ({"type": "map", "keyType": "long", "valueType": "long"}, 16 << 32 | 7, "a map of 7 bytes"),
        ({"type": "map", "keyType": "long", "valueType": "long"}, 16 << 32 | 8, "the keys of a map exceed its 8 bytes"),
        (
            {"type": "struct", "fields": [{"name": "a", "type": "long"}]},
            16 << 32 | 8,
            "a row of 8 bytes; expected at least",
        ),
    ],
)
def test_what_leads_out_of_a_row(kind: Any, slot: int, reason: str) -> None:
    row = struct.pack("<qqq", 0, slot, 100)
    with pytest.raises(StateRowError, match=reason) as caught:
        decode(schema(kind), row)
    error = caught.value
    assert (error.path, error.key_group, error.store) == ("file-0", 0, "store")
    assert 1000 <= error.offset < 1024


def test_a_row_that_is_too_short() -> None:
    with pytest.raises(StateRowError, match="a row of 16 bytes; expected at least 24") as caught:
        decode(schema("long", "long"), bytes(24), bytes(16))
    assert (caught.value.path, caught.value.offset) == ("file-1", 1000)


def test_a_map_with_keys_of_another_number_than_values() -> None:
    keys, items = unsafe_writer.array("long", [1, 2]), unsafe_writer.array("long", [1])
    content = struct.pack("<q", len(keys)) + keys + items
    row = struct.pack("<qq", 0, 16 << 32 | len(content)) + content
    with pytest.raises(StateRowError, match="a map with different numbers of keys and values"):
        decode(schema({"type": "map", "keyType": "long", "valueType": "long"}), row)


def test_a_map_with_a_null_key() -> None:
    """A null key is refused before Arrow sees it, because Arrow would abort the process."""
    keys, items = unsafe_writer.array("long", [1, None]), unsafe_writer.array("long", [1, 2])
    content = struct.pack("<q", len(keys)) + keys + items
    row = struct.pack("<qq", 0, 16 << 32 | len(content)) + content
    kind = schema({"type": "map", "keyType": "long", "valueType": "long"})
    whole = unsafe_writer.row(kind, [[(3, 4)]])
    with pytest.raises(StateRowError, match="a map of 72 bytes with a null key") as caught:
        decode(kind, whole, row)
    assert caught.value.path == "file-1"


def test_values_that_overlap() -> None:
    """Overlapping values are refused: Spark writes each value after the previous one."""
    array = struct.pack("<qqqq", 2, 0, 40 << 32 | 8, 32 << 32 | 8) + bytes(16)
    row = struct.pack("<qq", 0, 16 << 32 | len(array)) + array
    with pytest.raises(StateRowError, match="overlap"):
        decode(schema({"type": "array", "elementType": "string"}), row)


def test_text_that_is_no_utf_8() -> None:
    row = bytearray(unsafe_writer.row(schema("string"), ["abc"]))
    row[17] = 0xFF
    assert decode(schema("string"), bytes(row), unsafe_writer.row(schema("string"), [None])).to_pylist() == [
        {"f0": "a\ufffdc"},
        {"f0": None},
    ]


def test_numbers_that_are_none() -> None:
    (row,) = decode(schema("double", "float"), unsafe_writer.row(schema("double", "float"), [math.nan, -math.inf]))
    assert math.isnan(row["f0"].as_py())
    assert row["f1"].as_py() == -math.inf
