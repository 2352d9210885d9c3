"""Flink SQL's rows for structs of Spark.

Columns within structs become columns of the row, since only Flink writes nested types of rows. All are nullable: Flink
compares types with their nullability (`RowDataSerializerSnapshot`), and the accumulators of its SQL are nullable.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from spark_ckpt.flink.export.export_type import ExportType, NotForFlinkError, check_no_null, rows_of_kind
from spark_ckpt.flink.streams.types.logical_types import MAX_LENGTH, REGULAR, LogicalType, java_expression
from spark_ckpt.flink.streams.types.row_data import RowDataSerializer
from spark_ckpt.flink.types.lookup import arrow_type
from spark_ckpt.spark_files.types import SparkType, Struct

_MICROS = 6
_BIGINT = LogicalType("BIGINT")
_SIMPLE = {
    pa.bool_(): LogicalType("BOOLEAN"),
    pa.int8(): LogicalType("TINYINT"),
    pa.int16(): LogicalType("SMALLINT"),
    pa.int32(): LogicalType("INTEGER"),
    pa.int64(): _BIGINT,
    pa.float32(): LogicalType("FLOAT"),
    pa.float64(): LogicalType("DOUBLE"),
    pa.string(): LogicalType("VARCHAR", (MAX_LENGTH,)),
    pa.binary(): LogicalType("VARBINARY", (MAX_LENGTH,)),
    pa.date32(): LogicalType("DATE"),
    pa.timestamp("us"): LogicalType("TIMESTAMP_WITHOUT_TIME_ZONE", (_MICROS,), timestamp_kind=REGULAR),
    pa.timestamp("us", "UTC"): LogicalType("TIMESTAMP_WITH_LOCAL_TIME_ZONE", (_MICROS,), timestamp_kind=REGULAR),
}


def row_data_type(kind: Struct) -> ExportType:
    """Row of Flink SQL for a struct; its columns are the leaves of the struct.

    Raises:
        NotForFlinkError: a column is an array, a map, or of a type that Flink lacks.
    """
    names, leaves = leaves_of(kind)
    types = tuple([_sql_type(name, leaf) for name, leaf in zip(names, leaves, strict=True)])
    serializer = RowDataSerializer(types)
    arrow = arrow_type(serializer).type
    targets = [field.type for field in arrow][1:]

    def convert(values: pa.Array) -> pa.Array:
        columns = [_as(column, target) for column, target in zip(flattened(values, kind), targets, strict=True)]
        return rows_of_kind(columns, arrow, values)

    return ExportType(serializer, f"InternalTypeInfo.ofFields({', '.join(map(java_expression, types))})", convert)


def is_flat(kind: Struct) -> bool:
    """True if a struct has neither arrays, maps nor structs, so that a row of Flink SQL holds it as it is."""
    return not any(pa.types.is_nested(part.arrow) for part in kind.types)


def leaves_of(kind: Struct) -> tuple[tuple[str, ...], tuple[SparkType, ...]]:
    """Names and types of the columns that are no structs, at all depths; a name has those of its structs before it."""
    found = list(_leaves(kind, ""))
    return tuple(name for name, _ in found), tuple(leaf for _, leaf in found)


def _leaves(kind: Struct, prefix: str) -> Iterator[tuple[str, SparkType]]:
    for name, part in zip(kind.names, kind.types, strict=True):
        if isinstance(part, Struct):
            yield from _leaves(part, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", part


def flattened(values: pa.StructArray, kind: Struct, prefix: str = "") -> list[pa.Array]:
    """The columns of `leaves_of`.

    Raises:
        NullValueError: a struct within the struct is null, which its columns could not tell.
    """
    columns: list[pa.Array] = []
    for name, part, column in zip(kind.names, kind.types, values.flatten(), strict=True):
        if isinstance(part, Struct):
            if column.null_count > values.null_count:
                check_no_null(column, f"{prefix}{name}", "a struct within a row must not be null")
            columns += flattened(column, part, f"{prefix}{name}.")
        else:
            columns.append(column)
    return columns


def _sql_type(name: str, kind: SparkType) -> LogicalType:
    arrow = kind.arrow
    if (simple := _SIMPLE.get(arrow)) is not None:
        return simple
    if pa.types.is_decimal(arrow) and 0 <= arrow.scale <= arrow.precision:
        return LogicalType("DECIMAL", (arrow.precision, arrow.scale))
    if pa.types.is_duration(arrow) or pa.types.is_time(arrow):
        # Flink's TIME has milliseconds, Spark's nanoseconds.
        return _BIGINT
    raise NotForFlinkError(f"column {name}: {arrow} has no type in a flat row of Flink SQL")


def _as(column: pa.Array, target: pa.DataType) -> pa.Array:
    return column if column.type == target else column.view(target)
