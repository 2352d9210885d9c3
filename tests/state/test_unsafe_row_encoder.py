"""UnsafeRows as Spark writes them, beside an independent writer. `tests/spark/test_unsafe_rows.py` has Spark's own."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spark_ckpt.spark_files.types import Struct, struct_of
from spark_ckpt.state.unsafe_row import decode_rows
from spark_ckpt.state.unsafe_row_encoder import encodable, encode_rows
from tests.state import strategies
from tests.support import unsafe_writer


def structs_of(kind: Struct, rows: list[tuple[Any, ...]]) -> pa.StructArray:
    """Rows as an Arrow array."""
    if not kind.types:
        return pa.array([{} for _ in rows], kind.arrow)
    columns = [pa.array([row[index] for row in rows], field.arrow) for index, field in enumerate(kind.types)]
    return pa.StructArray.from_arrays(columns, fields=list(kind.arrow))


@settings(max_examples=200)
@given(st.data(), strategies.schemas)
def test_bytes_are_those_of_a_writer_of_single_rows(data: st.DataObject, json: dict[str, Any]) -> None:
    kind = struct_of(json)
    assume(encodable(kind))
    values = data.draw(st.lists(strategies.rows(json), max_size=6))
    array = structs_of(kind, values)
    encoded = encode_rows(kind, array)
    content = encoded.buffer.data.tobytes()
    rows = [
        content[start : start + size]
        for start, size in zip(encoded.starts.tolist(), encoded.sizes.tolist(), strict=True)
    ]
    assert rows == [unsafe_writer.row(json, row) for row in values]
    assert decode_rows(kind, encoded).equals(array)


@pytest.mark.parametrize(("precision", "scale"), [(19, 0), (28, 3), (29, 0), (38, 0), (38, 18), (38, 38)])
def test_each_digit_of_a_decimal_counts(precision: int, scale: int) -> None:
    json = _of(a=f"decimal({precision},{scale})")
    kind = struct_of(json)
    digits = ("1" + "0" * (precision - 2) + "1", "9" * precision, "1", "0", "255", "128")
    values = [Decimal((sign, tuple(map(int, each)), -scale)) for each in digits for sign in (0, 1)]
    array = structs_of(kind, [(value,) for value in values])
    encoded = encode_rows(kind, array)
    content = encoded.buffer.data.tobytes()
    for value, start, size in zip(values, encoded.starts.tolist(), encoded.sizes.tolist(), strict=True):
        assert content[start : start + size] == unsafe_writer.row(json, (value,))
    assert decode_rows(kind, encoded).equals(array)


def test_a_slice_of_rows() -> None:
    """The offset of an Arrow array counts, also in nested ones."""
    kind = Struct(("n", "inner"), (struct_of(_of(a="long")).types[0], struct_of(_of(a="string", b="decimal(9,2)"))))
    rows = [(number, {"a": "x" * number, "b": number}) for number in range(5)]
    array = structs_of(kind, rows)
    encoded = encode_rows(kind, array.slice(2, 2))
    assert decode_rows(kind, encoded).equals(array.slice(2, 2))


@pytest.mark.parametrize("name", ["interval", "variant"])
def test_types_that_flink_lacks(name: str) -> None:
    kind = struct_of(_of(a=name))
    assert not encodable(kind)
    with pytest.raises(TypeError):
        encode_rows(kind, structs_of(kind, [(None,)]))


def _of(**types: str) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"name": name, "type": kind} for name, kind in types.items()]}
