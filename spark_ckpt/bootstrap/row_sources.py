"""Rows that the user gives for a state: a table of Arrow, or a batch `DataFrame`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from spark_ckpt.driver_jvm.objects import aggregate_buffers
from spark_ckpt.edit.rows import one_chunk
from spark_ckpt.spark_files.types import unique_names
from spark_ckpt.state.unsafe_row import struct_array
from spark_ckpt.state_writing.targets import Target, TargetKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RowSource: TypeAlias = "pa.Table | DataFrame"
"""Rows of a state."""

_KEY, _BUFFER = "key:", "buffer:"
"""Prefixes of the columns of `AggregateBuffers`, before their number and name."""


def problem_of(source: RowSource, target: Target) -> str | None:
    """Why rows cannot become those of a state; None if their columns are not known to be wrong. Runs no job."""
    if isinstance(source, pa.Table):
        return None
    if source.isStreaming:
        return "the rows are those of a streaming query: give a batch DataFrame"
    if target.kind is not TargetKind.AGGREGATE or (columns := _buffer_columns(source)) is None:
        return None
    names, types = _names(columns, _BUFFER), target.family.value.names
    keys = _names(columns, _KEY)
    if len(keys) == len(target.key.names) and unique_names(names) == types:
        return None
    return (
        f"the rows are those of another aggregation: {len(keys)} key columns and the buffers "
        f"{', '.join(names) or 'none'}; the query has {len(target.key.names)} and {', '.join(types) or 'none'}. Use "
        "the same functions in the same order, without a select after them"
    )


def table_of(source: RowSource, target: Target) -> pa.Table:
    """Rows of a state.

    A batch aggregation is executed up to its buffers, which are those that the streaming query would have after the
    same input (`AggregateBuffers`).

    Raises:
        PySparkException: a job of Spark fails.
    """
    if isinstance(source, pa.Table):
        return source
    buffers = _buffers_of(source) if target.kind is TargetKind.AGGREGATE else None
    if buffers is None:
        return source.toArrow()
    table = buffers.toArrow()
    value = target.family.value
    count = len(target.key.names)
    return pa.table(
        {
            "key": _structs(table.columns[:count], target.key.names, len(table)),
            "value": _structs(table.columns[count:], value.names, len(table)),
        }
    )


def _buffers_of(frame: Any) -> Any:  # noqa: ANN401  (Py4J has no types)
    """Keys and buffers of a batch aggregation; None of another query."""
    from pyspark.sql import DataFrame

    spark = frame.sparkSession
    found = aggregate_buffers(spark).of(frame._jdf)
    return None if found is None else DataFrame(found, spark)


def _buffer_columns(frame: Any) -> list[str] | None:  # noqa: ANN401
    """Columns of `_buffers_of`."""
    found = aggregate_buffers(frame.sparkSession).columns(frame._jdf)
    return None if found is None else [str(name) for name in found]


def _names(columns: Sequence[str], prefix: str) -> list[str]:
    return [name.split(":", 2)[2] for name in columns if name.startswith(prefix)]


def _structs(columns: Sequence[pa.ChunkedArray], names: Sequence[str], count: int) -> pa.StructArray:
    parts = [one_chunk(column) for column in columns]
    return struct_array(parts, [pa.field(name, part.type) for name, part in zip(names, parts, strict=True)], count)
