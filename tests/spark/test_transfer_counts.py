"""`import`, `list` and `inspect` count imported state as Spark's `statestore` source and the files do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_ckpt.migrate import import_location
from tests.migrate.queries import QUERIES, stop_query
from tests.support import cli
from tests.support.spark_version import MINOR, order

JOIN_STORES = [f"{side}-{store}" for side in ("left", "right") for store in ("keyToNumValues", "keyWithIndexToValue")]
VARIABLES = ("count", "seen", "users")


def state(spark: SparkSession, location: Path, **options: str | bool) -> DataFrame:
    """State as Spark reads it."""
    reader = spark.read.format("statestore")
    for key, value in options.items():
        reader = reader.option(key, value)
    return reader.load(str(location))


def rows_of_join(spark: SparkSession, location: Path, side: str) -> dict[str, int]:
    """Numbers of a side: keys, rows, and different pairs of key and time."""
    rows = state(spark, location, joinSide=side).select("value.id", "value.ts")
    return {"keys": rows.select("id").distinct().count(), "rows": rows.count(), "pairs": rows.distinct().count()}


def expected_families(spark: SparkSession, location: Path, name: str) -> Iterator[tuple[str, str, int]]:
    """Rows of each store and column family."""
    if name == "outer-join":
        yield from ((store, "default", state(spark, location, storeName=store).count()) for store in JOIN_STORES)
    elif name.startswith("outer-join"):
        for side in ("left", "right"):
            found = rows_of_join(spark, location, side)
            if name == "outer-join-3":
                yield "default", f"{side}-keyToNumValues", found["keys"]
                yield "default", f"{side}-keyWithIndexToValue", found["rows"]
            else:
                yield "default", f"{side}-keyWithTsToValues", found["rows"]
                yield "default", f"{side}-tsWithKey", found["pairs"]
    elif name.startswith("processor"):
        for variable in VARIABLES:
            yield "default", variable, state(spark, location, stateVarName=variable).count()
        keys = state(spark, location, stateVarName="count").count()
        timers = state(spark, location, readRegisteredTimers=True).count()
        kind = "event" if name == "processor" else "proc"
        yield "default", f"${kind}Timers_keyToTimestamp", timers
        yield "default", f"${kind}Timers_timestampToKey", timers
        yield "default", "$rowCounter_seen", keys if name == "processor" else 0
        if name == "processor-ttl":
            users = state(spark, location, stateVarName="users").count()
            yield from (("default", family, keys) for family in ("$ttl_count", "$ttl_seen", "$count_seen", "$min_seen"))
            yield "default", "$ttl_users", users
    else:
        yield "default", "default", state(spark, location).count()


def keys_of(families: Mapping[str, int]) -> int:
    """Rows of all families, where a list is one row: each has one in another family."""
    counters = {"seen": "$rowCounter_seen" if families.get("$rowCounter_seen") else "$count_seen"}
    counters |= {f"{side}-keyWithTsToValues": f"{side}-tsWithKey" for side in ("left", "right")}
    return sum(families[counters.get(family, family)] for family in families)


@pytest.mark.parametrize(
    ("name", "began_with"),
    [
        pytest.param("windows", "hdfs", marks=pytest.mark.long),
        pytest.param("outer-join", "hdfs", marks=pytest.mark.long),
        pytest.param("outer-join-3", "changelog", marks=pytest.mark.long),
        ("outer-join-4", "changelog"),
        pytest.param("processor", "changelog", marks=pytest.mark.long),
        pytest.param("processor-ttl", "changelog", marks=pytest.mark.long),
    ],
)
def test_an_imported_base(name: str, began_with: str, spark: SparkSession, tmp_path: Path) -> None:
    if order(MINOR) < order(QUERIES[name].since):
        pytest.skip(f"Spark runs this query since {QUERIES[name].since}, this is {MINOR}")
    location, new = stop_query(spark, tmp_path, name, began_with), tmp_path / "new"
    for key, value in QUERIES[name].conf.items():
        spark.conf.set(key, value)
    expected: dict[str, dict[str, int]] = {}
    for store, family, rows in expected_families(spark, location, name):
        expected.setdefault(store, {})[family] = rows
    by_store = {store: keys_of(expected[store]) for store in expected}
    assert all(by_store.values())

    imported = import_location(spark, str(location), str(new), force=True)

    files = [path.stat().st_size for path in (new / "ckpt" / "shared").iterdir()]
    assert {store.store: dict(store.families) for store in imported.stores} == expected
    assert {store.store: store.rows for store in imported.stores} == by_store
    assert sum(store.size or 0 for store in imported.stores) == sum(files)
    (listed,) = cli.run("list", new, "--json").json["checkpoints"]
    assert {each["store"]: each["rows"] for each in listed["operators"]} == by_store
    assert (listed["rows"], listed["state_bytes"]) == (sum(by_store.values()), sum(files))
    assert listed["new_bytes"] == sum(files) + (new / "ckpt" / listed["metadata"]["path"]).stat().st_size
    operators = [each for each in cli.run("inspect", new, "--json").json["operator_states"] if each["store"]]
    subtasks = [subtask for each in operators for subtask in each["subtask_states"]]
    assert {each["store"]["store"]: each["store"]["rows"] for each in operators} == by_store
    assert sum(subtask["rows"] for subtask in subtasks) == listed["rows"]
    assert sum(each["state_size"] for each in operators) == sum(files)
    segments = [segment for subtask in subtasks for segment in subtask["segments"]]
    assert sorted(segment["size"] for segment in segments) == sorted(files)
    assert {segment["kind"] for segment in segments} == {"base"}
