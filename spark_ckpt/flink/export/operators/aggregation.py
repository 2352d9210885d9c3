"""Aggregates: one value state with a row of the buffers.

With `is_sql`, the state is that of Flink SQL's `GROUP BY` (`GroupAggFunction`): `accState` with a row of the
accumulators, in the order of the query. Flink's accumulators of COUNT, SUM, MIN and MAX are single columns of the same
values as Spark's buffers. The others differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spark_ckpt.flink.export.planned_state import Parts, PlannedState, typed, value_state
from spark_ckpt.flink.export.row_data_types import row_data_type
from spark_ckpt.flink.export.source_operator import SourceOperator
from spark_ckpt.flink.export.struct_types import KeyForm
from spark_ckpt.spark_files.schemas import FamilySchema
from spark_ckpt.spark_files.types import Struct
from spark_ckpt.state.unsafe_row import struct_array

AGGREGATE, ACCUMULATORS = "aggregate", "accState"
"""Names of the state: our own, and Flink SQL's."""

_FORMAT = "spark.sql.streaming.aggregation.stateFormatVersion"
_OF_SQL = ("count", "sum", "min", "max")


def aggregation(operator: SourceOperator) -> list[PlannedState]:
    """State of an aggregate.

    Raises:
        UnsupportedForFlinkError: a key or value has no type in Flink, or Flink SQL has other accumulators.
    """
    view = operator.view()
    key = operator.key(view.family.key)
    first = len(view.family.key.types) if _has_keys_in_values(operator) else 0
    buffers = Struct(view.family.value.names[first:], view.family.value.types[first:])
    if operator.forms.is_sql:
        _check_sql(operator, buffers)
        value = typed(operator.title, ACCUMULATORS, lambda: row_data_type(buffers))
        state, java = value_state(ACCUMULATORS, value)
        java = f"// {java}: the aggregate of GROUP BY declares it"
    else:
        value = operator.row(AGGREGATE, buffers)
        state, java = value_state(AGGREGATE, value)
    take = _from(first, buffers)
    if operator.forms.is_sql:
        take = _without_sums_of_nothing(take, _averages(view.family, first))
    note = f"columns: {', '.join(buffers.names)}"
    return [
        PlannedState(
            state, java, view.family.name, key, operator.read(view), Parts(key.of, lambda v: value.of(take(v))), note
        )
    ]


def _has_keys_in_values(operator: SourceOperator) -> bool:
    """True in state format 1 (`StreamingAggregationStateManagerImplV1`)."""
    offsets = operator.offsets
    return offsets is not None and offsets.conf.get(_FORMAT) == "1"


def _from(first: int, kind: Struct) -> Callable[[pa.StructArray], pa.StructArray]:
    return lambda values: struct_array(values.flatten()[first:], list(kind.arrow), len(values)) if first else values


def _averages(family: FamilySchema, first: int) -> list[int]:
    """Places of the sums of averages among the buffers. A count of its own is never null in Spark."""
    names = family.value.names[first:]
    functions = [name.partition("_")[0] for name in names]
    return [
        at
        for at in range(len(names) - 1)
        if functions[at : at + 2] == ["sum", "count"] and names[at + 1] not in family.required
    ]


def _without_sums_of_nothing(
    take: Callable[[pa.StructArray], pa.StructArray], averages: Sequence[int]
) -> Callable[[pa.StructArray], pa.StructArray]:
    """The buffers, with the sum of an average as SUM has it: null without a value, where Spark's average has 0."""

    def changed(values: pa.StructArray) -> pa.StructArray:
        taken = take(values)
        parts = taken.flatten()
        for at in averages:
            nothing = pc.and_kleene(pc.equal(parts[at + 1], 0), pc.equal(parts[at], pa.scalar(0).cast(parts[at].type)))
            parts[at] = pc.if_else(nothing, pa.scalar(None, parts[at].type), parts[at])
        return struct_array(parts, list(taken.type), len(taken))

    return changed if averages else take


def _check_sql(operator: SourceOperator, buffers: Struct) -> None:
    if operator.forms.key is not KeyForm.ROW_DATA:
        raise operator.refused("Flink SQL keys by rows: use --key rowdata with --sql-aggregate", ACCUMULATORS)
    for name, kind in zip(buffers.names, buffers.types, strict=True):
        function = name.partition("_")[0]
        if function not in _OF_SQL or pa.types.is_nested(kind.arrow):
            reason = (
                f"the buffer {name} is none of COUNT, SUM, MIN and MAX, the only accumulators with one column; "
                "export without --sql-aggregate"
            )
            raise operator.refused(reason, ACCUMULATORS)
