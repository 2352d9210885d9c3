"""Differences between checkpoints of real Flink, beside those of their entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_ckpt.flink.export.model import FlinkOperator, StateKind
from spark_ckpt.flink.export.model import FlinkState as FlinkStateDescription
from spark_ckpt.flink.export.writer import write_savepoint
from spark_ckpt.flink.streams import Serializer
from spark_ckpt.flink.streams.types.composites import TupleSerializer
from spark_ckpt.flink.streams.types.logical_types import LogicalType
from spark_ckpt.flink.streams.types.primitives import DOUBLE, LONG
from spark_ckpt.flink.streams.types.row_data import RowDataSerializer
from spark_ckpt.flink.streams.values import Timer
from spark_ckpt.flink.tables import read
from spark_ckpt.flink.tables.catalog import FlinkState
from spark_ckpt.flink.tables.diff import FlinkDiff, diff_flink_state
from spark_ckpt.flink.tables.sources import open_source
from spark_ckpt.flink.types.lookup import arrow_type
from spark_ckpt.state.errors import StateNotFoundError
from spark_ckpt.storage import LocalStorage
from tests.flink.streams.corpus import StateVector, flink_job, job

HEAP, CANONICAL, ROCKSDB = "f120-heap-p1-file", "f120-savepoint-canonical-heap-p2", "f120-rocksdb-incr-p2-second"


def diff(place: Path, variable: str, before: int = 1, after: int = 2) -> FlinkDiff:
    found = diff_flink_state(str(place), before, after, variable=variable, moved=[("oracle://ckpt", str(place.parent))])
    assert found is not None
    return found


def content(vector: StateVector, name: str) -> dict[Any, Any]:
    """Values of a state by key, from the entries of each handle."""
    found: dict[Any, Any] = {}
    for operator, handle in vector.keyed():
        source = open_source(handle, vector.files, operator.max_parallelism)  # type: ignore[arg-type]
        for state_id, meta in enumerate(source.header.states):
            for _, entry in source.entries(state_id) if meta.name == name else ():
                parts = {part.value: datum.value for part, datum in entry.parts.items()}
                if isinstance(element := parts.get("element"), Timer):
                    found[element.key, element.timestamp] = None
                elif meta.keyed_state_type == "MAP" and source.is_heap:
                    found |= {(parts["key"], key): value for key, value in parts["value"] or ()}  # type: ignore[union-attr, misc, str-unpack]
                elif "map key" in parts:
                    found[parts["key"], parts["map key"]] = parts["value"]
                else:
                    value = parts["value"]
                    found[(parts["key"],)] = list(value) if isinstance(value, tuple) else value
        source.close()
    return found


@pytest.mark.parametrize("names", [(HEAP, CANONICAL), (CANONICAL, ROCKSDB), (ROCKSDB, HEAP), (HEAP, HEAP)])
@pytest.mark.parametrize(
    "state", ["sum", "list", "map", "_timer_state/event_user-timers", "_timer_state/processing_user-timers"]
)
def test_changes_are_those_of_the_entries(
    names: tuple[str, str], state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "BATCH_ROWS", 7)
    old, new = (content(job(name), state) for name in names)
    expected = {("delete", key, value, None) for key, value in frozen(old).items() if key not in new}
    expected |= {("insert", key, None, value) for key, value in frozen(new).items() if key not in old}
    expected |= {
        ("update", key, value, frozen(new)[key])
        for key, value in frozen(old).items()
        if key in new and new[key] != old[key]
    }
    difference = diff(flink_job(tmp_path / "flink", *names), state)
    batches = list(difference.batches())
    assert all(0 < len(batch) <= 7 and batch.schema == difference.schema for batch in batches)
    found = set()
    for batch in batches:
        for row in batch.to_pylist():
            kind, *key, before, after, _ = row.values()
            found.add((kind, tuple(key), *frozen({0: before, 1: after}).values()))
    assert found == expected
    assert bool(found) == (names[0] != names[1])


def frozen(values: dict[Any, Any]) -> dict[Any, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}


def test_a_location_of_spark_is_left_to_its_diff(tmp_path: Path) -> None:
    (tmp_path / "ckpt" / "chk-1").mkdir(parents=True)
    assert diff_flink_state(str(tmp_path), 1, 2) is None


def test_a_state_that_one_side_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateNotFoundError, match="no state 'other'"):
        diff(flink_job(tmp_path / "flink"), "other")


def test_one_state_is_enough(tmp_path: Path) -> None:
    difference = diff(flink_job(tmp_path / "flink"), "sum")
    assert isinstance(difference.state_after, FlinkState)
    assert difference.schema.names == ["change", "key", "before", "after", "key_group"]


def written(place: Path, key: Serializer, value: Serializer, *sides: tuple[list[Any], list[Any]]) -> Path:
    """A location with a savepoint for each side, of keys and values of a state `s`."""
    for number, (keys, values) in enumerate(sides, 1):
        operator = FlinkOperator.of_uid("u", key, [FlinkStateDescription("s", StateKind.VALUE, value)])
        arrays = [pa.array(keys, arrow_type(key).type), pa.array(values, arrow_type(value).type)]
        batch = pa.RecordBatch.from_arrays(arrays, names=["key", "value"])
        storage = LocalStorage(place / f"chk-{number}")
        write_savepoint(storage, [(operator, {"s": iter([batch])})], checkpoint_id=number)
    return place


NAN = float("nan")
OF_TUPLE = TupleSerializer.of(LONG, DOUBLE)
FRACTIONS: dict[str, tuple[Serializer, Serializer, list[Any], list[Any], list[Any], list[Any], list[str]]] = {
    "NaN as key": (DOUBLE, LONG, [NAN], [1], [NAN], [1], []),
    "NaN in a key": (OF_TUPLE, LONG, [{"f0": 1, "f1": NAN}], [1], [{"f0": 1, "f1": NAN}], [1], []),
    "another value of NaN": (DOUBLE, LONG, [NAN], [1], [NAN], [2], ["update"]),
    "NaN as value": (LONG, DOUBLE, [1], [NAN], [1], [NAN], []),
    "NaN in a value": (LONG, OF_TUPLE, [1], [{"f0": 1, "f1": NAN}], [1], [{"f0": 1, "f1": NAN}], []),
    "zeros of both signs": (LONG, DOUBLE, [1], [0.0], [1], [-0.0], ["update"]),
    "zeros in a value": (LONG, OF_TUPLE, [1], [{"f0": 1, "f1": 0.0}], [1], [{"f0": 1, "f1": -0.0}], ["update"]),
    "zeros as keys": (DOUBLE, LONG, [0.0], [1], [-0.0], [1], ["delete", "insert"]),
    "zeros in a row": (
        LONG,
        RowDataSerializer((LogicalType("DOUBLE"),)),
        *([1], [{"kind": 0, "f0": 0.0}], [1], [{"kind": 0, "f0": -0.0}]),
        ["update"],
    ),
    "the same row with NaN": (
        LONG,
        RowDataSerializer((LogicalType("DOUBLE"),)),
        *([1], [{"kind": 0, "f0": NAN}], [1], [{"kind": 0, "f0": NAN}]),
        [],
    ),
}


@pytest.mark.parametrize("name", FRACTIONS)
def test_fractions_are_compared_as_flink_writes_them(name: str, tmp_path: Path) -> None:
    key, value, old_keys, old_values, new_keys, new_values, changes = FRACTIONS[name]
    found = diff_flink_state(str(written(tmp_path, key, value, (old_keys, old_values), (new_keys, new_values))), 1, 2)
    assert found is not None
    assert sorted(found.to_arrow().column("change").to_pylist()) == changes
