"""States and state variables that do not go together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_ckpt.flink.importing import import_flink_savepoint
from spark_ckpt.flink.importing.errors import FlinkImportRefusedError, FlinkStateNotMappedError
from spark_ckpt.format.segments import Section
from spark_ckpt.spark_files.logs import SparkLog
from spark_ckpt.storage import LocalStorage
from tests.flink.importing.places import target, variables_of_the_vectors
from tests.flink.streams.corpus import StateVector, backend, job, lay_out
from tests.metadata.corpus import VECTORS
from tests.support.state_location import row, schema


@pytest.fixture
def savepoint(tmp_path: Path) -> str:
    return str(lay_out(job("f120-savepoint-canonical-heap-p2"), tmp_path / "flink").parent)


def test_a_variable_with_a_time_to_live(savepoint: str, tmp_path: Path) -> None:
    location = target(tmp_path / "query", *variables_of_the_vectors("long")).path
    name = "state/0/_metadata/v2/0"
    storage = LocalStorage(location)
    version, _, text = storage.read(name).decode().partition("\n")
    metadata = json.loads(text)
    properties = json.loads(metadata["operatorPropertiesJson"])
    for variable in properties["stateVariables"]:
        variable["ttlEnabled"] = variable["stateName"] == "list"
    metadata["operatorPropertiesJson"] = json.dumps(properties)
    storage.write_atomic(name, f"{version}\n{json.dumps(metadata)}".encode())
    with pytest.raises(FlinkStateNotMappedError, match="nothing can be imported into 0/list: it has a time to live"):
        import_flink_savepoint(savepoint, location)
    assert import_flink_savepoint(savepoint, location, ignore=["list"]).empty == ("0/list",)


def test_values_in_avro(savepoint: str, tmp_path: Path) -> None:
    location = target(
        tmp_path / "query",
        *variables_of_the_vectors("long"),
        conf={"spark.sql.streaming.stateStore.encodingFormat": "avro"},
    ).path
    with pytest.raises(FlinkStateNotMappedError, match="in Avro"):
        import_flink_savepoint(savepoint, location)


def test_state_of_windows(tmp_path: Path) -> None:
    place = str(lay_out(backend("types-full"), tmp_path / "flink").parent)
    families = {"values": (schema(key="integer"), schema(value="long"))}
    location = target(tmp_path / "query", families, {"values": "ValueState"}).path
    with pytest.raises(FlinkStateNotMappedError, match="it has a namespace"):
        import_flink_savepoint(place, location, states={"long": "values"})


def test_two_states_for_one_variable(savepoint: str, tmp_path: Path) -> None:
    families, kinds = variables_of_the_vectors("long")
    location = target(tmp_path / "query", families, kinds).path
    event, processing = "_timer_state/event_user-timers", "_timer_state/processing_user-timers"
    with pytest.raises(FlinkStateNotMappedError, match="cannot become 0/eventTimers"):
        import_flink_savepoint(savepoint, location, states={processing: "eventTimers"})
    with pytest.raises(FlinkStateNotMappedError, match="there is no such state"):
        import_flink_savepoint(savepoint, location, states={event.upper(): "eventTimers"})


def test_an_aggregation_takes_accumulators_only(savepoint: str, tmp_path: Path) -> None:
    families = {"default": (schema(key="long"), schema(sum="long"))}
    location = target(tmp_path / "query", families).path
    with pytest.raises(FlinkStateNotMappedError, match="no state variable of its name and kind"):
        import_flink_savepoint(savepoint, location)
    others = ["list", "map", "_timer_state/event_user-timers", "_timer_state/processing_user-timers"]
    done = import_flink_savepoint(savepoint, location, states={"sum": "default"}, ignore=others)
    assert [(state.spark, state.rows) for state in done.states] == [("0/default", 10)]


def test_accumulators_in_another_order(tmp_path: Path) -> None:
    vector = StateVector(VECTORS / "sql" / "f120-sql-hashmap")
    place = str(lay_out(vector, tmp_path / "flink").parent)
    value = schema(total="long", most="long", least="long", values="long", rows="long")
    location = target(tmp_path / "query", {"default": (schema(day="integer", word="string"), value)}).path
    done = import_flink_savepoint(
        place, location, key_order={"accState": ["f1", "f0"]}, value_order={"accState": ["f2", "f4", "f3", "f1", "f0"]}
    )
    (state,) = done.states
    assert [column[:2] for column in state.columns] == [
        ("key.f1", "key.day"),
        ("key.f0", "key.word"),
        ("value.f2", "value.total"),
        ("value.f4", "value.most"),
        ("value.f3", "value.least"),
        ("value.f1", "value.values"),
        ("value.f0", "value.rows"),
    ]
    assert [name.rpartition("/")[2] for name in done.unmapped] == ["processing_user-timers", "event_user-timers"]


def test_an_aggregation_without_a_key_has_rows_of_its_own(tmp_path: Path) -> None:
    """The first row of such an aggregation is replaced; one that has counted is not."""
    place = str(lay_out(StateVector(VECTORS / "sql" / "f120-sql-global"), tmp_path / "flink").parent)
    key, value = schema(), schema(count="long", sum="long")
    for number, (count, total) in enumerate([(0, None), (3, 4)]):
        own = Section(((row(key), row(value, count, total)),))
        location = target(tmp_path / f"query-{number}", {"default": (key, value)}, rows=own).path
        if count:
            with pytest.raises(FlinkImportRefusedError, match="rows of the query's own"):
                import_flink_savepoint(place, location)
        else:
            assert import_flink_savepoint(place, location).states[0].rows == 1
            assert SparkLog(LocalStorage(location)).offsets(1).offsets
