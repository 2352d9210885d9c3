"""Rows that the user gives, in the types of the state."""

from __future__ import annotations

from collections.abc import Set

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_ckpt.edit.errors import EditRowError
from spark_ckpt.spark_files.types import Struct
from spark_ckpt.state.unsafe_row import struct_array

_NO_COLUMNS: frozenset[str] = frozenset()


def structs_of(
    table: pa.Table, column: str, kind: Struct, *, required: Set[str] = _NO_COLUMNS, is_key: bool = False
) -> pa.StructArray:
    """A column of structs in the types of the state.

    Args:
        table: the rows.
        column: name of the column.
        kind: type of its values in the state. Its fields may come in any order.
        required: fields that are never null.
        is_key: True for keys, in which Spark normalizes zeros and NaN.

    Raises:
        EditRowError: the column or a field is missing, or a value does not fit.
    """
    array = _column(table, column)
    if not pa.types.is_struct(array.type):
        raise EditRowError(column, None, f"it has the type {array.type}; expected {kind.arrow}")
    if array.null_count:
        raise EditRowError(column, _first(array.is_null()), "it is null")
    names = [field.name for field in array.type]
    if sorted(names) != sorted(kind.names):
        fields = ", ".join(kind.names) or "no fields"
        raise EditRowError(column, None, f"it has the fields {', '.join(names) or 'none'}; expected {fields}")
    parts = dict(zip(names, array.flatten(), strict=True))
    columns = []
    for field in kind.arrow:
        title = f"{column}.{field.name}"
        values = fitted(parts[field.name], field.type, title, is_key=is_key)
        if values.null_count and field.name in required:
            raise EditRowError(title, _first(values.is_null()), "it is null, which the query excludes")
        columns.append(values)
    return struct_array(columns, list(kind.arrow), len(array))


def fitted(values: pa.Array, kind: pa.DataType, title: str, *, is_key: bool = False) -> pa.Array:
    """Values in a type of the state, without loss.

    Raises:
        EditRowError: a value does not fit.
    """
    try:
        result = values.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as e:
        raise EditRowError(title, None, f"values of type {values.type} do not fit {kind}: {e}") from None
    if not is_key:
        return result
    if pa.types.is_floating(kind):
        return _normalized(result)
    if _has_fraction(kind):
        raise EditRowError(title, None, "fractions within a part of a key are not supported")
    return result


def _normalized(values: pa.Array) -> pa.Array:
    """One zero and one NaN, as in the grouping keys of Spark (`NormalizeFloatingNumbers`)."""
    numbers = values.to_numpy(zero_copy_only=False).copy()
    numbers[numbers == 0] = 0.0
    numbers[np.isnan(numbers)] = np.nan
    return pc.if_else(values.is_null(), pa.scalar(None, values.type), pa.array(numbers, values.type, from_pandas=False))


def _has_fraction(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or any(_has_fraction(kind.field(i).type) for i in range(kind.num_fields))


def _column(table: pa.Table, column: str) -> pa.Array:
    if column not in table.column_names:
        raise EditRowError(column, None, f"there is no such column; the columns are {', '.join(table.column_names)}")
    return one_chunk(table.column(column))


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """The values of a column as one array."""
    # Releases of Arrow differ in what they return for a column without chunks.
    chunks = column.combine_chunks()
    if isinstance(chunks, pa.ChunkedArray):
        return chunks.chunk(0) if chunks.num_chunks else pa.array([], chunks.type)
    return chunks


def _first(mask: pa.Array) -> int:
    return int(np.argmax(mask.to_numpy(zero_copy_only=False)))
