"""Stream-stream joins: a list state of each side's rows, as rows of Flink SQL.

The last column of Spark's keys is the number of the row among those of its key or, in state format 4, its event time
(`SymmetricHashJoinStateManager`). Since format 2, the last column of a row tells if it has been joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pyarrow as pa
import pyarrow.compute as pc

from spark_ckpt.flink.export.planned_state import Parts, PlannedState, list_state
from spark_ckpt.flink.export.row_data_types import leaves_of
from spark_ckpt.flink.export.source_operator import SourceOperator, first_columns, without_last
from spark_ckpt.flink.export.source_rows import SourceRows
from spark_ckpt.state.views import Side, View

_IN_STORES, _BY_TIME = 2, 4


def join(operator: SourceOperator) -> list[PlannedState]:
    """States of a join, one for each side.

    Raises:
        UnsupportedForFlinkError: a key or value has no type in Flink.
    """
    return [_side(operator, side) for side in get_args(Side)]


def _side(operator: SourceOperator, side: str) -> PlannedState:
    view = _view(operator, side)
    grouping = without_last(view.family.key)
    key = operator.key(grouping)
    element = operator.row(side, view.family.value)

    def read() -> Iterator[SourceRows]:
        for rows in operator.read(view)():
            order = pc.cast(rows.keys.flatten()[-1], pa.int64())
            yield rows.by_key(order, first_columns(rows.keys, grouping))

    note = f"columns: {', '.join(leaves_of(view.family.value)[0])}"
    return PlannedState(*list_state(side, element), view.family.name, key, read, Parts(key.of, element.of), note)


def _view(operator: SourceOperator, side: str) -> View:
    version = operator.stores[0].state.state_format_version or _IN_STORES
    name = f"{side}-keyWithTsToValues" if version >= _BY_TIME else f"{side}-keyWithIndexToValue"
    return operator.view(store=name) if version <= _IN_STORES else operator.view(name)
