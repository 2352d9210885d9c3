"""Plans of exports from locations, and their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spark_ckpt.flink.export.model import StateKind
from spark_ckpt.flink.export.plan import Plan, Target, plan_operator
from spark_ckpt.flink.export.planned_state import PlannedState
from spark_ckpt.flink.export.source_operator import Forms
from spark_ckpt.flink.export.struct_types import KeyForm, ValueForm
from spark_ckpt.flink.types.lookup import arrow_type
from spark_ckpt.state.catalog import open_state
from tests.support.state_location import StateLocation

UID = "orders"


def plan_of(
    location: StateLocation | Path | str, key: str = "string", value: str = "plain", *, is_sql: bool = False
) -> Plan:
    """Plan of the export of a location with one stateful operator."""
    place = location.path if isinstance(location, StateLocation) else str(location)
    forms = Forms(KeyForm(key), ValueForm(value), is_sql)
    return plan_operator(open_state(place), None, Target.of_uid(UID), forms)


def rows_of(plan: Plan, name: str) -> list[dict[str, Any]]:
    """Rows of a state for the writer, after a check of their Arrow types."""
    (planned,) = [each for each in plan.states if each.state.name == name]
    found: list[dict[str, Any]] = []
    for batch in planned.batches(plan.operator.title):
        assert tuple(batch.schema.names) == planned.state.columns
        assert batch.column("key").type == arrow_type(plan.key.serializer).type
        _check_types(planned, batch)
        batch.validate(full=True)
        found += batch.to_pylist()
    return found


def _check_types(planned: PlannedState, batch: Any) -> None:
    state = planned.state
    if state.kind.is_timer:
        assert str(batch.column("timestamp").type) == "int64"
        return
    value = batch.column("value").type
    assert (value.value_type if state.kind is StateKind.LIST else value) == arrow_type(state.value).type
    if state.map_key is not None:
        assert batch.column("map_key").type == arrow_type(state.map_key).type
