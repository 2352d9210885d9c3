"""`(flat)MapGroupsWithState` and `applyInPandasWithState`: a value state, and one with the time of the timeout.

In state format 2 a value is a struct of the state, null if only a timeout is set, and of the time
(`FlatMapGroupsWithStateExecHelper.StateManagerImplV2`); in format 1, the columns of the state before the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_ckpt.flink.export.export_type import ExportType
from spark_ckpt.flink.export.planned_state import Parts, PlannedState, Read, value_state
from spark_ckpt.flink.export.source_operator import SourceOperator, first_columns, without_last
from spark_ckpt.flink.export.source_rows import SourceRows
from spark_ckpt.flink.streams.types.primitives import LONG
from spark_ckpt.spark_files.types import Struct

GROUP_STATE, TIMEOUT = "groupState", "timeoutTimestamp"
"""Names of the states, and of Spark's columns."""

_NO_TIMEOUT = -1
_TIMEOUT_NOTE = "milliseconds since 1970, in the time of the query's GroupStateTimeout; register timers from it"


def map_groups(operator: SourceOperator) -> list[PlannedState]:
    """States of the operator.

    Raises:
        UnsupportedForFlinkError: a key or value has no type in Flink.
    """
    view = operator.view()
    stored, key = view.family.value, operator.key(view.family.key)
    kind, take = _group_state(stored)
    value = operator.value(GROUP_STATE, kind)
    states = [
        PlannedState(
            *value_state(GROUP_STATE, value),
            view.family.name,
            key,
            _where(operator.read(view), lambda rows: pc.is_valid(take(rows.values))),
            Parts(key.of, lambda values: value.of(take(values))),
        )
    ]
    if TIMEOUT in stored.names:
        at = ExportType.of_scalar(LONG)
        states.append(
            PlannedState(
                *value_state(TIMEOUT, at),
                view.family.name,
                key,
                _where(operator.read(view), lambda rows: pc.not_equal(rows.values.field(TIMEOUT), _NO_TIMEOUT)),
                Parts(key.of, lambda values: values.field(TIMEOUT)),
                _TIMEOUT_NOTE,
            )
        )
    return states


def _group_state(stored: Struct) -> tuple[Struct, Callable[[pa.StructArray], pa.StructArray]]:
    if stored.names[:1] == (GROUP_STATE,) and isinstance(stored.types[0], Struct):
        return stored.types[0], lambda values: values.field(GROUP_STATE)
    kind = without_last(stored) if stored.names[-1:] == (TIMEOUT,) else stored
    return kind, lambda values: first_columns(values, kind)


def _where(read: Read, condition: Callable[[SourceRows], pa.Array]) -> Read:
    def reads() -> Iterator[SourceRows]:
        for rows in read():
            mask: np.ndarray = pc.fill_null(condition(rows), False).to_numpy(zero_copy_only=False)
            yield rows.where(mask)

    return reads
