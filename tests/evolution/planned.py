"""Planned queries, made without Spark."""

from __future__ import annotations

from collections.abc import Sequence

from spark_ckpt.checkpoint.meaning import FunctionMeaning, QueryMeaning
from spark_ckpt.evolution.planned_query import PlannedQuery
from spark_ckpt.evolution.schemas import StoreSchema
from spark_ckpt.spark_files.operator_metadata import OperatorMetadata
from spark_ckpt.spark_files.schemas import FamilySchema
from spark_ckpt.spark_files.types import struct_of
from tests.support.meanings import function, meaning
from tests.support.state_location import Schema, schema, schema_v2

COUNT = function("count(1)", initial=("0",), merges="sum")
SUM = function("sum(0.v)", merges="sum")
MAX = function("max(0.v)", merges="max")


def family(key: Schema, value: Schema, name: str = "default", required: Sequence[str] = ()) -> FamilySchema:
    """A column family."""
    return FamilySchema(name, struct_of(key), struct_of(value), frozenset(required))


def store(
    key: Schema,
    value: Schema,
    *,
    operator: int = 0,
    name: str = "stateStoreSave",
    rows: int = 0,
    required: Sequence[str] = (),
) -> StoreSchema:
    """A store with one column family."""
    return StoreSchema(operator, "default", name, (family(key, value, required=required),), rows=rows)


def planned(
    key: Schema,
    value: Schema,
    keys: Sequence[str],
    functions: tuple[FunctionMeaning, ...],
    sources: Sequence[str] = ("json path=/in",),
) -> PlannedQuery:
    """A planned aggregation."""
    metadata = OperatorMetadata(
        1,
        {
            "operatorInfo": {"operatorId": 0, "operatorName": "stateStoreSave"},
            "stateStoreInfo": [{"storeName": "default", "numColsPrefixKey": 0, "numPartitions": 4}],
        },
    )
    files = {
        "state/0/0/_metadata/schema": schema_v2(key, value),
        "state/0/_metadata/metadata": metadata.encode(),
    }
    means: QueryMeaning = meaning(keys, functions, sources=sources)
    return PlannedQuery(means, (store(key, value),), files, "4.2.0")


USER = schema(user="string")
