"""Savepoints of Flink SQL's own tests: every operator, state and entry is seen, as real Flink reads it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_ckpt.flink.streams import headers, serializers
from spark_ckpt.flink.streams.headers import KeyedHeader
from spark_ckpt.flink.streams.types import logical_types
from spark_ckpt.flink.tables.catalog import FlinkCatalog
from spark_ckpt.flink.tables.find import find_flink_state
from spark_ckpt.flink.tables.read import FlinkScan
from spark_ckpt.flink.types.arrow import opaque_type
from tests.flink.tables.planner_savepoints import (
    Savepoint,
    State,
    as_text,
    entry_of,
    flinks_states,
    numbers,
    savepoints,
)

SAVEPOINTS, OPERATORS, STATES, ENTRIES = 379, 332, 1273, 2061
"""What the jars have, savepoints in both counted twice."""

NEWER = ("cep", "operators.window", "NullSerializer", "External", "RawValue", "SortedMap")
"""Parts of the names of classes that these savepoints need, beyond those of plain streams."""


def catalog(savepoint: Savepoint) -> FlinkCatalog:
    found = find_flink_state(str(savepoint.directory))
    assert found is not None
    return found


def our_states(savepoint: Savepoint) -> dict[tuple[str, str], State]:
    found = catalog(savepoint)
    assert [found.unread(operator) for operator in found.operators] == [()] * len(found.operators)
    states: dict[tuple[str, str], State] = {}
    for state in found.states():
        entries: Counter[str] = Counter()
        for _, state_id, source in found.sources(state):
            entries.update(as_text(entry_of(entry)) for _, entry in source.entries(state_id))
        states[state.operator_id.hex(), state.name] = (state.kind, entries)
    return states


def test_operators_states_and_entries_are_those_of_flink(tmp_path: Path) -> None:
    flinks = flinks_states(savepoints(), tmp_path)
    for savepoint, theirs in zip(savepoints(), flinks, strict=True):
        assert our_states(savepoint) == theirs, str(savepoint)
    repeated = [each for savepoint, each in zip(savepoints(), flinks, strict=True) for _ in range(savepoint.number)]
    assert (len(repeated), *numbers(repeated)) == (SAVEPOINTS, OPERATORS, STATES, ENTRIES)


def has_bytes_of_a_class(kind: pa.DataType) -> bool:
    if kind == opaque_type("").type:
        return True
    return any(has_bytes_of_a_class(kind.field(number).type) for number in range(kind.num_fields))


def test_all_rows_are_typed() -> None:
    """Columns of bytes with the name of their class stand for unknown types."""
    typed = rows = 0
    for savepoint in savepoints():
        found = catalog(savepoint)
        for state in found.states():
            number = FlinkScan(found, state).to_arrow().num_rows
            rows += number
            typed += number * (not any(has_bytes_of_a_class(field.type) for field in state.columns.schema))
    assert typed == rows > 0


def test_headers_with_many_unknown_classes_hide_no_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the classes that these savepoints need, their states are still there, and the known types of each."""
    known = all_headers()

    def without(table: dict[str, Any]) -> dict[str, Any]:
        return {name: kind for name, kind in table.items() if not any(part in name for part in NEWER)}

    monkeypatch.setattr(serializers, "_SIMPLE", without(serializers._SIMPLE))
    monkeypatch.setattr(serializers, "_CONFIGURED", without(serializers._CONFIGURED))
    rare = (logical_types._STRUCTURED, logical_types._RAW)
    nested = {name: kind for name, kind in logical_types._NESTED.items() if name not in rare}
    monkeypatch.setattr(logical_types, "_NESTED", nested)
    headers._recovered.cache_clear()
    less = all_headers()
    headers._recovered.cache_clear()
    assert sum(header.unknown is not None for header in less) > 20
    for header, whole in zip(less, known, strict=True):
        assert header.is_complete
        assert [(state.name, state.kind, state.options) for state in header.states] == [
            (state.name, state.kind, state.options) for state in whole.states
        ]
        for state, other in zip(header.states, whole.states, strict=True):
            for part, serializer in state.serializers.items():
                assert serializer.is_opaque or str(serializer) == str(other.serializers[part])


def all_headers() -> list[KeyedHeader]:
    found = []
    for savepoint in savepoints():
        states = catalog(savepoint)
        found += [states._header(place)[0] for place in states._subtask_handles(None)]
    return found
