"""`transformWithState`: value, list and map states and timers, one to one.

Values with a time to live are a struct of the value and the time of its expiration
(`StateStoreColumnFamilySchemaUtils.getValueSchemaWithTTL`). Flink counts the time from the last access, which Spark
does not record: the state in Flink has none, and expired values are left out, as `transformWithState` leaves them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from spark_ckpt.flink.export.export_type import ExportType
from spark_ckpt.flink.export.model import StateKind
from spark_ckpt.flink.export.planned_state import (
    Parts,
    PlannedState,
    Read,
    Skipped,
    list_state,
    map_state,
    timers,
    value_state,
)
from spark_ckpt.flink.export.source_operator import SourceOperator
from spark_ckpt.flink.export.source_rows import SourceRows
from spark_ckpt.spark_files.operator_metadata import VariableKind
from spark_ckpt.spark_files.types import Struct
from spark_ckpt.state.views import View

EVENT_TIMERS = "$eventTimers_"
"""Prefix of Spark's timers in event time (`TimerStateUtils`); others are in processing time."""

_WITH_TTL = ("value", "ttlExpirationMs")
_TTL_NOTE = (
    "its values have a time to live, which the state in Flink lacks: declare it with a StateTtlConfig of its own"
)


def transform_with_state(operator: SourceOperator) -> list[PlannedState]:
    """States of a `transformWithState`.

    Raises:
        UnsupportedForFlinkError: a key or value has no type in Flink.
    """
    (store,) = operator.stores
    return [_state(operator, name, kind) for name, kind in store.variables.items()]


def _state(operator: SourceOperator, name: str, kind: VariableKind) -> PlannedState:
    view = operator.view(name)
    if kind is VariableKind.TIMER:
        return _timers(operator, name, view)
    grouping = view.family.key
    stored = view.family.value
    has_ttl = stored.names == _WITH_TTL and isinstance(stored.types[0], Struct)
    content = stored.types[0] if has_ttl and isinstance(stored.types[0], Struct) else stored
    value = operator.value(name, content, may_be_null=kind is VariableKind.MAP)

    def of_value(values: pa.StructArray) -> pa.Array:
        return value.of(values.field("value") if has_ttl else values)

    if kind is VariableKind.MAP:
        grouping, user_key = _nested(operator, name, grouping)
        key, map_key = operator.key(grouping), operator.value(name, user_key)
        state, java = map_state(name, map_key, value)
        parts = Parts(lambda keys: key.of(keys.field(0)), of_value, lambda keys: map_key.of(keys.field(1)))
    else:
        key = operator.key(grouping)
        state, java = (list_state if kind is VariableKind.LIST else value_state)(name, value)
        parts = Parts(key.of, of_value)
    planned = PlannedState(state, java, name, key, operator.read(view), parts)
    return _without_expired(operator, planned) if has_ttl else planned


def _timers(operator: SourceOperator, name: str, view: View) -> PlannedState:
    kind = StateKind.EVENT_TIMER if name.startswith(EVENT_TIMERS) else StateKind.PROCESSING_TIMER
    state, java = timers(kind)
    grouping = view.family.key.types[0]
    assert isinstance(grouping, Struct)
    key: ExportType = operator.key(grouping)
    parts = Parts(lambda keys: key.of(keys.field(0)), timestamp=lambda keys: keys.field(1))
    note = (
        "Spark's watermark is not exported: they fire when that of the job has passed them"
        if kind is StateKind.EVENT_TIMER
        else ""
    )
    return PlannedState(state, java, name, key, operator.read(view), parts, note)


def _nested(operator: SourceOperator, name: str, key: Struct) -> tuple[Struct, Struct]:
    """Grouping key and user key in the key of a map (`StateStoreColumnFamilySchemaUtils.getCompositeKeySchema`)."""
    grouping, user_key = key.types
    if not isinstance(grouping, Struct) or not isinstance(user_key, Struct):
        raise operator.refused("the keys of its rows are not those of a map", name)
    return grouping, user_key


def _without_expired(operator: SourceOperator, planned: PlannedState) -> PlannedState:
    offsets = operator.offsets
    metadata = {} if offsets is None else offsets.metadata or {}
    now_ms = int(metadata.get("batchTimestampMs", 0))
    skipped = Skipped()

    def read() -> Iterator[SourceRows]:
        skipped.rows = 0
        for rows in planned.read():
            live = rows.values.field("ttlExpirationMs").to_numpy(zero_copy_only=False) > now_ms
            skipped.rows += int(np.count_nonzero(~live))
            yield rows.where(live)

    reads: Read = read
    return replace(planned, read=reads, note=_TTL_NOTE, skipped=skipped)
