"""The place of the grouping key in the keys of column families."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from spark_ckpt.checkpoint.batch import StoreState
from spark_ckpt.checkpoint.segment_table import SegmentTable
from spark_ckpt.spark_files.operator_metadata import VariableKind
from spark_ckpt.spark_files.schemas import FamilySchema
from spark_ckpt.spark_files.types import Struct, struct_of
from spark_ckpt.state.catalog import Store
from spark_ckpt.state.grouping import grouping_key
from tests.support.state_location import Schema, schema

USER, EMPTY = schema(user="string"), schema()


def struct(**parts: str | Schema) -> Schema:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in parts.items()]
    return {"type": "struct", "fields": fields}


def store(operator: str, name: str = "default", variables: Mapping[str, VariableKind] | None = None) -> Store:
    state = StoreState(0, name, operator, 2, (0,), ("",), SegmentTable.of([]))
    return Store(state, (), (), dict(variables or {}))


def family(name: str, key: Schema) -> FamilySchema:
    return FamilySchema(name, struct_of(key), struct_of(EMPTY))


TWS = store(
    "transformWithStateExec",
    variables={"v": VariableKind.VALUE, "l": VariableKind.LIST, "m": VariableKind.MAP},
)
MAP = struct(key=USER, userKey=schema(user="string"))


@pytest.mark.parametrize(
    ("of", "name", "key", "path", "names"),
    [
        (store("stateStoreSave"), "default", struct(window="long", user="string"), (), ("window", "user")),
        (store("dedupe"), "default", USER, (), ("user",)),
        (
            store("sessionWindowStateStoreSaveExec"),
            "default",
            struct(user="string", sessionStartTime="timestamp"),
            (),
            ("user",),
        ),
        (store("symmetricHashJoin", "left-keyToNumValues"), "default", schema(field0="long"), (), ("field0",)),
        (
            store("symmetricHashJoin", "left-keyWithIndexToValue"),
            "default",
            schema(field0="long", index="long"),
            (),
            ("field0",),
        ),
        (store("symmetricHashJoin"), "right-keyToNumValues", schema(field0="long"), (), ("field0",)),
        (store("symmetricHashJoin"), "right-keyWithIndexToValue", schema(field0="long", i="long"), (), ("field0",)),
        (TWS, "v", USER, (), ("user",)),
        (TWS, "l", USER, (), ("user",)),
        (TWS, "m", MAP, (0,), ("user",)),
        (TWS, "$rowCounter_l", USER, (), ("user",)),
        (TWS, "$count_l", USER, (), ("user",)),
        (TWS, "$min_l", USER, (), ("user",)),
        (TWS, "$ttl_v", struct(at="long", key=USER), (1,), ("user",)),
        (TWS, "$ttl_m", struct(at="long", key=MAP), (1, 0), ("user",)),
        (TWS, "$procTimers_keyToTimestamp", struct(key=USER, at="long"), (0,), ("user",)),
        (TWS, "$eventTimers_timestampToKey", struct(at="long", key=USER), (1,), ("user",)),
    ],
)
def test_where_it_is(of: Store, name: str, key: Schema, path: tuple[int, ...], names: tuple[str, ...]) -> None:
    grouping = grouping_key(of, family(name, key))
    assert grouping is not None
    assert (grouping.path, grouping.kind.names) == (path, names)


def test_its_values() -> None:
    grouping = grouping_key(TWS, family("$ttl_m", struct(at="long", key=MAP)))
    assert grouping is not None
    kind = struct_of(struct(at="long", key=MAP)).arrow
    keys = pa.array([{"at": 5, "key": {"key": {"user": "a"}, "userKey": {"user": "x"}}}], kind)
    assert grouping.of(keys).to_pylist() == [{"user": "a"}]
    of_window = schema(user="string", at="long")
    session = grouping_key(store("sessionWindowStateStoreSaveExec"), family("default", of_window))
    assert session is not None
    kind = Struct(("user", "at"), struct_of(of_window).types).arrow
    assert session.of(pa.array([{"user": "b", "at": 3}], kind)).to_pylist() == [{"user": "b"}]


def test_operators_without_one() -> None:
    assert grouping_key(store("globalLimit"), family("default", EMPTY)) is None
    assert grouping_key(store("stateStoreSave"), family("default", EMPTY)) is None
    assert grouping_key(store("unknown"), family("default", USER)) is None
