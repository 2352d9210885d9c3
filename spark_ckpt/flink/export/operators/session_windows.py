"""Session windows: a map state from the start of a session to a row of the session and its buffers.

The last column of Spark's keys is the start of the session (`StreamingSessionWindowStateManagerImplV1`).
"""

from __future__ import annotations

from spark_ckpt.flink.export.plain_types import plain_type
from spark_ckpt.flink.export.planned_state import Parts, PlannedState, map_state, typed
from spark_ckpt.flink.export.row_data_types import leaves_of
from spark_ckpt.flink.export.source_operator import SourceOperator, first_columns, without_last
from spark_ckpt.spark_files.types import Struct

SESSIONS = "sessions"
"""Name of the state."""


def session_windows(operator: SourceOperator) -> list[PlannedState]:
    """State of a session window.

    Raises:
        UnsupportedForFlinkError: a key or value has no type in Flink.
    """
    view = operator.view()
    stored: Struct = view.family.key
    grouping = without_last(stored)
    key = operator.key(grouping)
    start = typed(operator.title, SESSIONS, lambda: plain_type(stored.types[-1]))
    value = operator.row(SESSIONS, view.family.value)
    parts = Parts(
        lambda keys: key.of(first_columns(keys, grouping)), value.of, lambda keys: start.of(keys.flatten()[-1])
    )
    note = f"columns: {', '.join(leaves_of(view.family.value)[0])}"
    return [PlannedState(*map_state(SESSIONS, start, value), view.family.name, key, operator.read(view), parts, note)]
