"""`dropDuplicates` and `dropDuplicatesWithinWatermark`: a value state for each key that was seen."""

from __future__ import annotations

import pyarrow as pa

from spark_ckpt.flink.export.export_type import ExportType
from spark_ckpt.flink.export.planned_state import Parts, PlannedState, value_state
from spark_ckpt.flink.export.source_operator import SourceOperator
from spark_ckpt.flink.streams.types.primitives import BOOLEAN

SEEN, EXPIRES_AT = "seen", "expiresAtMicros"
"""Names of the states."""

_SEEN = ExportType.of_scalar(BOOLEAN, lambda values: pa.repeat(pa.scalar(True), len(values)))


def deduplication(operator: SourceOperator) -> list[PlannedState]:
    """State of `dropDuplicates`, whose values in Spark are empty: true for each key.

    Raises:
        UnsupportedForFlinkError: a key has no type in Flink.
    """
    return [
        _of(operator, SEEN, _SEEN, "Spark forgets a key by the watermark; the state in Flink needs timers for that")
    ]


def deduplication_within_watermark(operator: SourceOperator) -> list[PlannedState]:
    """State of `dropDuplicatesWithinWatermark`: the event time at which a key is forgotten.

    Raises:
        UnsupportedForFlinkError: a key has no type in Flink.
    """
    value = operator.value(EXPIRES_AT, operator.view().family.value)
    return [_of(operator, EXPIRES_AT, value, "microseconds since 1970 of event time, when Spark forgets the key")]


def _of(operator: SourceOperator, name: str, value: ExportType, note: str) -> PlannedState:
    view = operator.view()
    key = operator.key(view.family.key)
    return PlannedState(
        *value_state(name, value), view.family.name, key, operator.read(view), Parts(key.of, value.of), note
    )
