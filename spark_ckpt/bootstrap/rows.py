"""Rows of the user as rows of the query's column families."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from spark_ckpt.edit.errors import EditRowError
from spark_ckpt.edit.rows import fitted, one_chunk, structs_of
from spark_ckpt.spark_files.types import Struct
from spark_ckpt.state.partition_hash import grouping_hashes
from spark_ckpt.state.unsafe_row import struct_array
from spark_ckpt.state.unsafe_row_encoder import encode_rows
from spark_ckpt.state_writing.family_rows import FamilyRows
from spark_ckpt.state_writing.targets import Target, TargetKind, rows_of_families

BATCH_ROWS = 1 << 16
"""Rows that are encoded at a time."""

_KEY, _MAP_KEY, _TIME = "key", "user_map_key", "expiration_timestamp_ms"
_VALUES = {TargetKind.LIST: "list_element", TargetKind.MAP: "user_map_value"}


def encoded_rows(target: Target, rows: pa.Table) -> Iterator[FamilyRows]:
    """Encoded rows of a state, a batch at a time.

    Args:
        target: the state.
        rows: its rows, with the columns that `read_state` returns; or with the fields of its key and its value as
            columns. Other columns are ignored. The elements of a list have their order.

    Raises:
        EditRowError: a column is missing, or a value does not fit.
    """
    table = _with_structs(target, rows)
    for start in range(0, len(table), BATCH_ROWS):
        yield from _batch(target, table, start)


def _batch(target: Target, table: pa.Table, start: int) -> Iterator[FamilyRows]:
    try:
        yield from _encoded(target, table.slice(start, BATCH_ROWS))
    except EditRowError as e:
        row = None if e.row is None else start + e.row
        raise EditRowError(f"{target.title}, {e.column}", row, e.reason) from None


def _encoded(target: Target, table: pa.Table) -> Iterator[FamilyRows]:
    family = target.family
    grouping = structs_of(table, _KEY, target.key, is_key=True)
    hashes = grouping_hashes(target.key, encode_rows(target.key, grouping))
    part: pa.Array | None = None
    values: pa.StructArray | None = None
    if target.kind.is_timers:
        part = _times(table, family.key.types[1].arrow)
    elif target.kind is TargetKind.MAP:
        kind = family.key.types[1]
        assert isinstance(kind, Struct)
        part = structs_of(table, _MAP_KEY, kind, is_key=True)
    if not target.kind.is_timers:
        values = structs_of(table, _value_of(target), family.value, required=family.required)
    for each, keys, row_values in rows_of_families(target, grouping, part, values):
        is_list = target.kind is TargetKind.LIST
        yield FamilyRows(each, encode_rows(each.key, keys), encode_rows(each.value, row_values), hashes, is_list)


def _times(table: pa.Table, kind: pa.DataType) -> pa.Array:
    if _TIME not in table.column_names:
        raise EditRowError(_TIME, None, "there is no such column")
    times = fitted(one_chunk(table.column(_TIME)), kind, _TIME)
    if times.null_count:
        raise EditRowError(_TIME, None, "a time is null")
    return times


def _value_of(target: Target) -> str:
    return _VALUES.get(target.kind, "value")


def _nulls(kind: Struct, count: int) -> pa.StructArray:
    return struct_array([pa.nulls(count, field.type) for field in kind.arrow], list(kind.arrow), count)


# ---- columns of the user ---------------------------------------------------------------------------------------------


def _with_structs(target: Target, table: pa.Table) -> pa.Table:
    """The rows with a struct for the key and one for the value."""
    kind, value = target.family.value, _value_of(target)
    if not (_KEY in table.column_names and pa.types.is_struct(table.schema.field(_KEY).type)):
        if target.kind is TargetKind.MAP:
            raise EditRowError(f"{target.title}, {_KEY}", None, "a map needs structs for its keys and values")
        both = set(target.key.names) & set(kind.names)
        if both and not target.kind.is_timers:
            name = min(both)
            raise EditRowError(f"{target.title}, {name}", None, f"key and value have it; give structs, key and {value}")
        structs = {_KEY: _struct(target, table, target.key)}
        if target.kind.is_timers:
            structs[_TIME] = table.column(_TIME) if _TIME in table.column_names else None
        elif set(kind.names) & set(table.column_names):
            structs[value] = _struct(target, table, kind)
        table = pa.table({name: column for name, column in structs.items() if column is not None})
    if target.kind is TargetKind.SEEN and value not in table.column_names and _is_empty(kind):
        table = table.append_column(value, _nulls(kind, len(table)))
    return table


def _is_empty(kind: Struct) -> bool:
    """True for the values of a de-duplication without a bound (`StreamingDeduplicateExec.EMPTY_ROW`)."""
    return all(pa.types.is_null(field.type) for field in kind.arrow)


def _struct(target: Target, table: pa.Table, kind: Struct) -> pa.StructArray:
    missing = [name for name in kind.names if name not in table.column_names]
    if missing:
        there = ", ".join(table.column_names)
        raise EditRowError(f"{target.title}, {missing[0]}", None, f"there is no such column; the columns are {there}")
    parts = [one_chunk(table.column(name)) for name in kind.names]
    fields = [pa.field(name, part.type) for name, part in zip(kind.names, parts, strict=True)]
    return struct_array(parts, fields, len(table))
