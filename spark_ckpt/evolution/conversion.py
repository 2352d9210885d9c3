"""Rows of the changed query, from those of the earlier one, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_ckpt.evolution.columns import Column, FamilyMapping
from spark_ckpt.evolution.errors import EvolutionValueError
from spark_ckpt.spark_files.types import SparkType, Struct
from spark_ckpt.state.grouping import GroupingKey
from spark_ckpt.state.unsafe_row import binary_array, decode_rows, struct_array
from spark_ckpt.state.unsafe_row_encoder import encode_rows, rows_of

_Merge: TypeAlias = Callable[[pa.Array, pa.Array], pa.Array]


def converted(rows: pa.StructArray, columns: Sequence[Column], kind: Struct, state: str) -> pa.StructArray:
    """Rows with other columns.

    Args:
        rows: earlier rows.
        columns: where each column comes from.
        kind: type of the rows.
        state: their state, for errors.

    Raises:
        EvolutionValueError: a value does not fit into its column.
    """
    parts = rows.flatten() if rows.type.num_fields else []
    made = [
        _column(parts, column, field, len(rows), f"{state}, {name}")
        for column, name, field in zip(columns, kind.names, kind.types, strict=True)
    ]
    return struct_array(made, list(kind.arrow), len(rows))


def with_grouping(keys: pa.StructArray, path: Sequence[int], grouping: pa.StructArray, kind: Struct) -> pa.StructArray:
    """Keys of a column family with another grouping key.

    Args:
        keys: earlier keys.
        path: fields that lead to the grouping key; empty if the keys begin with its columns.
        grouping: the grouping key of each key.
        kind: type of the keys.
    """
    parts = keys.flatten() if keys.type.num_fields else []
    if path:
        inner = kind.types[path[0]]
        assert isinstance(inner, Struct)
        parts[path[0]] = with_grouping(parts[path[0]], path[1:], grouping, inner)
    else:
        columns = grouping.flatten() if grouping.type.num_fields else []
        rest = len(kind.types) - len(columns)
        parts = [*columns, *parts[len(parts) - rest :]]
    made = [renamed(part, field.type) for part, field in zip(parts, kind.arrow, strict=True)]
    return struct_array(made, list(kind.arrow), len(keys))


def new_keys(
    keys: pa.StructArray, mapping: FamilyMapping, old: GroupingKey | None, new: GroupingKey | None, state: str
) -> tuple[pa.StructArray, pa.StructArray]:
    """Keys of the changed query, and their grouping keys.

    Args:
        keys: earlier keys.
        mapping: the mapping of their family.
        old: place of the grouping key in them; None if there is none.
        new: its place in the new keys.
        state: their state, for errors.

    Raises:
        EvolutionValueError: a value does not fit into its column.
    """
    nothing = struct_array([], [], len(keys))
    had = nothing if old is None else old.of(keys)
    kind = Struct((), ()) if new is None else new.kind
    grouping = converted(had, mapping.grouping, kind, f"{state}, key")
    if old is not None and not old.path:  # the columns of the earlier grouping key go, even if the new one has fewer
        parts = keys.flatten()[len(old.kind.types) :]
        fields = [keys.type.field(index) for index in range(len(old.kind.types), keys.type.num_fields)]
        keys = struct_array(parts, fields, len(keys))
    return with_grouping(keys, () if new is None else new.path, grouping, mapping.new.key), grouping


def renamed(part: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same values under other names of fields."""
    if part.type == kind:
        return part
    if pa.types.is_struct(kind):
        fields = [renamed(field, to.type) for field, to in zip(part.flatten(), kind, strict=True)]
        mask = part.is_null() if part.null_count else None
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=mask)
    return part.cast(kind)


def _column(parts: Sequence[pa.Array], column: Column, kind: SparkType, count: int, state: str) -> pa.Array:
    if column.source is None:
        return constant(column.value, kind, count, state)
    part = parts[column.source]
    if column.fields is not None and isinstance(kind, Struct):
        made = converted(part, column.fields, kind, state)
        if not part.null_count:
            return made
        return pa.StructArray.from_arrays(made.flatten(), fields=list(kind.arrow), mask=part.is_null())
    if column.is_widened:
        try:
            return part.cast(kind.arrow, safe=True)
        except pa.ArrowInvalid as e:
            raise EvolutionValueError(state, f"{e}, as a column of type {kind.arrow}") from None
    return renamed(part, kind.arrow)


def constant(value: object, kind: SparkType, count: int, state: str) -> pa.Array:
    """A column with one value in all rows.

    Args:
        value: the value, as Python or as Spark's text; bytes as hexadecimal text.
        kind: its type.
        count: number of rows.
        state: the state, for errors.

    Raises:
        EvolutionValueError: the type does not have the value.
    """
    if value is None:
        return pa.nulls(count, kind.arrow)
    try:
        return pa.repeat(_scalar(value, kind.arrow), count)
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError) as e:
        raise EvolutionValueError(state, f"{value!r} is no value of type {kind.arrow}: {e}") from None


def _scalar(value: object, kind: pa.DataType) -> pa.Scalar:
    if not isinstance(value, str):
        return pa.scalar(value, kind)
    if pa.types.is_string(kind):
        return pa.scalar(value, kind)
    if pa.types.is_binary(kind):
        return pa.scalar(bytes.fromhex(value), kind)
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(value), kind)
    return pa.scalar(value).cast(kind)


# ---- rows whose keys become equal ------------------------------------------------------------------------------------


def combined(
    keys: list[bytes], values: list[bytes], merges: Sequence[str], kind: Struct
) -> tuple[list[bytes], list[bytes]]:
    """One row of those with the same key.

    Args:
        keys: encoded keys.
        values: encoded values.
        merges: how each column is merged: `sum`, `min`, `max`, or `any`.
        kind: type of the values.

    Raises:
        EvolutionValueError: a sum does not fit into its type.
    """
    owners = pa.array(keys, pa.large_binary()).dictionary_encode()
    codes = owners.indices
    sizes = np.array([len(value) for value in values], np.int64)
    rows = rows_of(np.frombuffer(b"".join(values), np.uint8), sizes, "merged")
    decoded = decode_rows(kind, rows)
    columns = (
        [_MERGES[how](codes, column) for how, column in zip(merges, decoded.flatten(), strict=True)]
        if kind.types
        else []
    )
    merged = struct_array(columns, list(kind.arrow), len(owners.dictionary))
    return owners.dictionary.to_pylist(), binary_array(encode_rows(kind, merged)).to_pylist()


def _first(codes: pa.Array, column: pa.Array) -> pa.Array:
    _, first = np.unique(codes.to_numpy(), return_index=True)
    return column.take(pa.array(first))


def _sum(codes: pa.Array, column: pa.Array) -> pa.Array:
    """The sum, null without any value; Arrow would let it overflow."""
    exact = column.cast(pa.decimal128(38, 0)) if pa.types.is_integer(column.type) else column
    total = _grouped(codes, exact, "sum", pc.ScalarAggregateOptions(min_count=1))
    try:
        return total.cast(column.type)
    except pa.ArrowInvalid as e:
        raise EvolutionValueError("merged states", f"a sum does not fit into {column.type}: {e}") from None


def _grouped(codes: pa.Array, column: pa.Array, how: str, options: pc.FunctionOptions | None = None) -> pa.Array:
    table = pa.table({"code": codes, "value": column})
    grouped = table.group_by("code", use_threads=False).aggregate([("value", how, options)])
    order = np.argsort(grouped.column("code").to_numpy())
    return grouped.column(f"value_{how}").combine_chunks().take(pa.array(order))


_MERGES: Mapping[str, _Merge] = {
    "any": _first,
    "sum": _sum,
    "min": lambda codes, column: _grouped(codes, column, "min"),
    "max": lambda codes, column: _grouped(codes, column, "max"),
}
