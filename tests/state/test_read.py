from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import spark_ckpt
from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.format.errors import SegmentError
from spark_ckpt.format.segments import Section
from spark_ckpt.location.errors import TargetExistsError
from spark_ckpt.spark_files.errors import StateSchemaError
from spark_ckpt.state import blocks
from spark_ckpt.state.errors import StateNotFoundError, StateRowError, UnsupportedStateError
from spark_ckpt.storage import resolve
from tests.state.changes import (
    KEY,
    KINDS,
    LISTED,
    VALUE,
    Changes,
    batches,
    commit_all,
    key,
    lists,
    section,
    value,
)
from tests.support.examples import OF_THE_MACHINE
from tests.support.state_location import StateLocation, key_group, row, schema


def read(location: StateLocation, **arguments: Any) -> dict[str, int]:
    rows = spark_ckpt.read_state(location.path, **arguments).to_arrow().to_pylist()
    assert len({found["key"]["user"] for found in rows}) == len(rows), "a key came twice"
    assert all(found["value"]["label"] == "x" * found["value"]["n"] for found in rows)
    return {found["key"]["user"]: found["value"]["n"] for found in rows}


@pytest.fixture
def location(tmp_path: Path) -> StateLocation:
    """Location with two checkpoints: the second one updates, removes and adds one row each."""
    location = StateLocation(tmp_path, {"default": (KEY, VALUE)})
    location.commit(section({"a": 1, "b": 2, "c": 3}), rows=3)
    location.commit(section({"a": 10, "b": None, "d": 4}), rows=3)
    return location


@settings(max_examples=60, suppress_health_check=[*OF_THE_MACHINE, HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(batches, st.booleans()), min_size=1, max_size=6), st.sampled_from([1, 200, 1 << 20]))
def test_every_checkpoint_has_what_its_batches_have_made(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    history: list[tuple[Changes, bool]],
    batch_bytes: int,
) -> None:
    """Over bases and deltas, the newest value wins and removed keys are gone, for any number of key groups per read."""
    monkeypatch.setattr(blocks, "BATCH_BYTES", batch_bytes)
    location = StateLocation(tmp_path_factory.mktemp("location"), {"default": (KEY, VALUE)})
    for checkpoint_id, rows in commit_all(location, history).items():
        assert read(location, id=checkpoint_id) == rows


def test_the_newest_checkpoint_and_an_earlier_one(location: StateLocation) -> None:
    assert read(location) == {"a": 10, "c": 3, "d": 4}
    assert read(location, id=2) == {"a": 1, "b": 2, "c": 3}


def test_columns_and_forms(location: StateLocation) -> None:
    scan = spark_ckpt.read_state(location.path)
    struct = pa.struct([("n", pa.int64()), ("label", pa.string())])
    assert scan.schema == pa.schema(
        [("key", pa.struct([("user", pa.string())])), ("value", struct), ("partition_id", pa.int32())]
    )
    reader = scan.to_arrow_batch_reader()
    assert reader.schema == scan.schema
    assert reader.read_all().equals(scan.to_arrow())
    assert scan.to_pandas()["key"].tolist() == [found["key"] for found in scan.to_arrow().to_pylist()]
    partitions = {found["key"]["user"]: found["partition_id"] for found in scan.to_arrow().to_pylist()}
    assert partitions == {user: key_group(key(user)) // 8 for user in ("a", "c", "d")}


def test_places_may_be_path_objects(location: StateLocation, tmp_path: Path) -> None:
    scan = spark_ckpt.read_state(Path(location.path))
    assert scan.to_arrow() == spark_ckpt.read_state(str(location.path)).to_arrow()
    assert scan.to_parquet(tmp_path / "rows.parquet") == scan.to_arrow().num_rows
    assert scan.to_delta(tmp_path / "rows") == scan.to_arrow().num_rows
    assert resolve(Path(location.path)).describe("x") == resolve(str(location.path)).describe("x")


def test_batches_are_read_when_they_are_asked_for(location: StateLocation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BATCH_BYTES", 1)
    batches = spark_ckpt.read_state(location.path).batches()
    assert len(next(batches)) == 1
    for file in Path(location.path, "ckpt", "shared").iterdir():
        file.unlink()
    with pytest.raises(StateFileNotFoundError):
        next(batches)


def test_conditions_and_limits(location: StateLocation) -> None:
    assert read(location, where="value.n > 3") == {"a": 10, "d": 4}
    assert read(location, where="key.user = 'b'") == {}
    assert len(read(location, limit=2)) == 2
    assert len(read(location, where="value.n > 3", limit=1)) == 1
    assert read(location, limit=0) == {}


def test_several_bases_after_the_partitions_were_joined(tmp_path: Path) -> None:
    """A partition owns the state of two former ones: two bases and a delta of each."""
    location = StateLocation(tmp_path, {"default": (KEY, VALUE)})
    everyone = {f"user-{number}": number for number in range(20)}
    location.commit(section(everyone))
    location.commit(section({"user-3": None, "user-4": 7}), base=[section(everyone)])
    one, other = location.chains
    entries = sorted((*one.entries, *other.entries), key=lambda entry: (not entry.is_base, entry.version))
    assert [entry.is_base for entry in entries[:3]] == [True, True, False]
    location.chains = [type(one)("0" * 32, 19, tuple(entries))]
    location.complete()
    del everyone["user-3"]
    assert read(location) == everyone | {"user-4": 7}
    assert set(spark_ckpt.read_state(location.path).to_arrow()["partition_id"].to_pylist()) == {0}


def test_lists(tmp_path: Path) -> None:
    """Lists that are put, appended to, replaced and removed."""
    location = StateLocation(tmp_path, LISTED, name="transformWithStateExec", variables=KINDS)
    location.commit(lists({"a": [1, 2], "b": [3], "c": [4]}), section({"a": 1}, "count"))
    location.commit(lists({"a": [5], "c": [6, 7]}, appends=True), lists({"b": [8, 9]}))
    removed = Section(((key("c"), None),), "listed", True)
    location.commit(lists({"a": [10]}, appends=True), removed)
    rows = spark_ckpt.read_state(location.path, variable="listed").to_arrow()
    assert rows.schema.names == ["key", "list_element", "partition_id"]
    found: dict[str, list[int]] = {}
    for each in rows.to_pylist():
        found.setdefault(each["key"]["user"], []).append(each["list_element"]["n"])
    assert found == {"a": [1, 2, 5, 10], "b": [8, 9]}
    assert read(location, variable="count") == {"a": 1}


def test_deltas_that_tell_every_write(tmp_path: Path) -> None:
    """The last write of a key wins, even without an earlier segment; lists are put, appended to and removed."""
    location = StateLocation(tmp_path, LISTED, name="transformWithStateExec", variables=KINDS)
    writes = [*section({"a": 1, "b": 2}).entries, *section({"a": 3, "b": None}).entries, *section({"a": 4}).entries]
    emptied = Section(((key("a"), None), *lists({"a": [], "b": []}).entries), "listed", True)
    location.commit(
        Section(tuple(writes), "count"),
        lists({"a": [1]}),
        lists({"a": [2]}, appends=True),
        emptied,
        lists({"a": [3], "b": [4, 5]}, appends=True),
    )
    assert read(location, variable="count") == {"a": 4}
    rows = spark_ckpt.read_state(location.path, variable="listed").to_arrow().to_pylist()
    assert [(each["key"]["user"], each["list_element"]["n"]) for each in rows] == [("a", 3), ("b", 4), ("b", 5)]


def test_a_list_that_is_none(tmp_path: Path) -> None:
    location = StateLocation(tmp_path, LISTED, name="transformWithStateExec", variables=KINDS)
    location.commit(Section(((key("a"), b"\0\0\0\2\0\0\0\0"),), "listed"), inline=False)
    location.commit(lists({"b": [1]}))
    with pytest.raises(StateRowError, match="a list value of 2 rows holds 1") as caught:
        spark_ckpt.read_state(location.path, variable="listed").to_arrow()
    assert caught.value.key_group == key_group(key("a"))


def test_maps_and_timers(tmp_path: Path) -> None:
    composite = schema(key=KEY, userKey=schema(digit="long"))
    timer = schema(key=KEY, expiryTimestampMs="long")
    nothing = schema(__dummy__="void")
    timers = "$eventTimers_keyToTimestamp"
    location = StateLocation(
        tmp_path,
        {"mapped": (composite, VALUE), timers: (timer, nothing)},
        name="transformWithStateExec",
        variables={"mapped": "MapState", timers: "TimerState"},
    )
    location.commit(
        Section(((row(composite, {"user": "a"}, {"digit": 7}), value(1)),), "mapped"),
        Section(((row(timer, {"user": "a"}, 1000), row(nothing, None)),), timers),
    )
    (found,) = spark_ckpt.read_state(location.path, variable="mapped").to_arrow().drop(["partition_id"]).to_pylist()
    assert found == {"key": {"user": "a"}, "user_map_key": {"digit": 7}, "user_map_value": {"n": 1, "label": "x"}}
    (found,) = spark_ckpt.read_state(location.path, variable=timers).to_arrow().drop(["partition_id"]).to_pylist()
    assert found == {"key": {"user": "a"}, "expiration_timestamp_ms": 1000}


@pytest.mark.parametrize(
    ("arguments", "reason", "available"),
    [
        ({"operator": 1}, "no stateful operator 1", ("0 (transformWithStateExec)",)),
        ({"store": "left"}, "no store 'left'", ("default",)),
        ({}, "choose a state variable of operator 0, store default", ("count", "listed")),
        ({"variable": "sum"}, "has no state variable 'sum'", ("count", "listed")),
        ({"side": "left", "variable": "count"}, "omit the store and the variable", ("left", "right")),
        ({"side": "left"}, "operator 0 is a transformWithStateExec, which has no sides", ("default",)),
    ],
)
def test_what_is_not_there(tmp_path: Path, arguments: dict[str, Any], reason: str, available: tuple[str, ...]) -> None:
    location = StateLocation(tmp_path, LISTED, name="transformWithStateExec", variables=KINDS)
    location.commit(section({"a": 1}, "count"))
    with pytest.raises(StateNotFoundError, match=reason) as caught:
        spark_ckpt.read_state(location.path, **arguments)
    assert caught.value.location == location.path
    assert caught.value.available == available


def test_values_in_avro_are_refused(tmp_path: Path) -> None:
    offsets = b'v1\n{"conf":{"spark.sql.streaming.stateStore.encodingFormat":"avro"}}\n{}'
    location = StateLocation(tmp_path, LISTED, name="transformWithStateExec", variables=KINDS, offsets=offsets)
    location.commit(section({"a": 1}, "count"))
    with pytest.raises(UnsupportedStateError, match="operator 0, store default: its values are in Avro"):
        spark_ckpt.read_state(location.path, variable="count")


def test_a_damaged_block(location: StateLocation) -> None:
    (file, *_) = Path(location.path, "ckpt", "shared").iterdir()
    content = bytearray(file.read_bytes())
    content[40] ^= 1
    file.write_bytes(content)
    with pytest.raises(SegmentError, match="the block is damaged") as caught:
        spark_ckpt.read_state(location.path).to_arrow()
    assert caught.value.path == str(file)


@pytest.mark.parametrize("inline", [False, True])
def test_a_damaged_row_names_its_place(tmp_path: Path, inline: bool) -> None:
    """For a malformed row with a valid checksum, the error names file, store, key group and byte offset."""
    location = StateLocation(tmp_path, {"default": (KEY, VALUE)}, store="right")
    wrong = bytearray(value(2))
    wrong[16:20] = (100).to_bytes(4, "little")
    location.commit(Section(((key("a"), value(1)), (key("b"), bytes(wrong)))), inline=inline)
    with pytest.raises(StateRowError, match="a value of 100 bytes at 24 exceeds its row of 32 bytes") as caught:
        spark_ckpt.read_state(location.path).to_arrow()
    error = caught.value
    assert (error.store, error.key_group) == ("operator 0, store right", key_group(key("b")))
    chain = location.chains[key_group(key("b")) // 8].entries[0]
    content = bytes(chain.data) or Path(location.path, "ckpt", str(chain.path)).read_bytes()
    assert content[error.offset : error.offset + 8] == wrong[16:24]
    assert error.path == ("delta-1 in _metadata" if inline else str(Path(location.path, "ckpt", str(chain.path))))


def test_a_row_of_another_schema(tmp_path: Path) -> None:
    location = StateLocation(tmp_path, {"default": (KEY, schema(a="long", b="long", c="long", d="long"))})
    location.commit(section({"a": 1}))
    with pytest.raises(StateRowError, match="a row of 32 bytes; expected at least 40"):
        spark_ckpt.read_state(location.path).to_arrow()


def test_the_schema_is_missing(location: StateLocation) -> None:
    file = Path(location.path, "state", "0", "0", "_metadata", "schema")
    file.unlink()
    with pytest.raises(StateSchemaError, match="the state schema is missing") as caught:
        spark_ckpt.read_state(location.path)
    assert caught.value.path == str(file)


@pytest.mark.parametrize(
    ("content", "reason"),
    [("v3\n{}", "unknown version 'v3'"), ("v2\n{}", "KeyError"), ("v2\n[]", "TypeError"), ("v2\n{", "not operator")],
)
def test_operator_metadata_that_is_none(tmp_path: Path, content: str, reason: str) -> None:
    location = StateLocation(tmp_path, LISTED, name="transformWithStateExec", variables=KINDS)
    location.commit(section({"a": 1}, "count"))
    location.storage.write_atomic("state/0/_metadata/v2/0", content.encode())
    with pytest.raises(StateSchemaError, match=reason):
        spark_ckpt.read_state(location.path, variable="count")


def test_operator_metadata_of_later_batches_only(tmp_path: Path) -> None:
    location = StateLocation(tmp_path, LISTED, name="transformWithStateExec", variables=KINDS)
    location.commit(section({"a": 1}, "count"))
    metadata = Path(tmp_path, "state", "0", "_metadata", "v2")
    (metadata / "0").rename(metadata / "7")
    with pytest.raises(StateSchemaError, match="no operator metadata of batch 0"):
        spark_ckpt.read_state(location.path, variable="count")


def test_parquet(location: StateLocation, tmp_path: Path) -> None:
    scan = spark_ckpt.read_state(location.path)
    target = tmp_path / "rows.parquet"
    assert scan.to_parquet(str(target)) == 3
    assert pq.read_table(target).equals(scan.to_arrow())
    before = target.read_bytes()
    with pytest.raises(TargetExistsError):
        scan.to_parquet(str(target))
    assert target.read_bytes() == before


def test_a_key_without_fields_in_parquet(tmp_path: Path) -> None:
    location = StateLocation(tmp_path / "location", {"default": (schema(), VALUE)})
    location.commit(Section(((b"", value(5)),)))
    scan = spark_ckpt.read_state(location.path)
    assert scan.to_arrow()["key"].to_pylist() == [{}]
    scan.to_parquet(str(tmp_path / "rows.parquet"))
    (found,) = pq.read_table(tmp_path / "rows.parquet").to_pylist()
    assert (found["key"], found["value"]["n"]) == (None, 5)


def test_nothing_is_left_of_a_file_that_could_not_be_written(location: StateLocation, tmp_path: Path) -> None:
    for file in Path(location.path, "ckpt", "shared").iterdir():
        content = bytearray(file.read_bytes())
        content[40] ^= 1
        file.write_bytes(content)
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(SegmentError):
        spark_ckpt.read_state(location.path).to_parquet(str(out / "rows.parquet"))
    assert list(out.iterdir()) == []
