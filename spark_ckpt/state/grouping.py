"""The grouping key in the keys of a column family, whatever else they have.

Spark hashes the grouping key, so all rows of one are in the same partition and key group, in every store and column
family of the operator. The rules are those of `StatePartitionKeyExtractorFactory`; the shim has them in `PartitionKey`.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from spark_ckpt.spark_files.operator_metadata import VariableKind
from spark_ckpt.spark_files.operators import HASHED, SESSION_WINDOW, TRANSFORM_WITH_STATE
from spark_ckpt.spark_files.schemas import DEFAULT_FAMILY, FamilySchema
from spark_ckpt.spark_files.types import Struct
from spark_ckpt.state.catalog import Store
from spark_ckpt.state.unsafe_row import struct_array

_TIMERS = ("$procTimers", "$eventTimers")
_TIMERS_BY_TIME = "_timestampToKey"
_TTL_INDEX = "$ttl_"
_OF_VARIABLES = (_TTL_INDEX, "$min_", "$count_", "$rowCounter_")
WITH_ROW_NUMBER = ("-keyWithIndexToValue", "-keyWithTsToValues", "-tsWithKey")
"""Families of joins whose last key column tells rows of a key apart."""


@dataclass(frozen=True, slots=True)
class GroupingKey:
    """Place of the grouping key in the keys of a column family.

    Args:
        kind: its type; the names of its columns are those of the query, except for joins.
        path: fields that lead to its struct; empty if the keys begin with its columns.
    """

    kind: Struct
    path: tuple[int, ...] = ()

    def of(self, keys: pa.StructArray) -> pa.StructArray:
        """The grouping key of each key.

        Args:
            keys: decoded keys of the family.
        """
        for field in self.path:
            keys = keys.field(field)
        return struct_array(keys.flatten()[: len(self.kind.types)], list(self.kind.arrow), len(keys))


def grouping_key(store: Store, family: FamilySchema) -> GroupingKey | None:
    """The grouping key in the keys of a column family; None if the operator has none that Spark exposes.

    Args:
        store: the store.
        family: one of its column families.
    """
    operator = store.state.name
    if operator not in HASHED:
        return None
    if operator in TRANSFORM_WITH_STATE:
        kind, path = family.key, _path(family.name, store)
        for field in path:
            inner = kind.types[field]
            assert isinstance(inner, Struct)
            kind = inner
        return GroupingKey(kind, path)
    name = family.name if family.name != DEFAULT_FAMILY else store.state.store
    columns = len(family.key.types) - (operator == SESSION_WINDOW or name.endswith(WITH_ROW_NUMBER))
    kind = Struct(family.key.names[:columns], family.key.types[:columns])
    return GroupingKey(kind) if columns else None


def is_by_time(family: str) -> bool:
    """True for timers whose keys begin with their time (`TimerStateUtils`)."""
    return family.startswith(_TIMERS) and family.endswith(_TIMERS_BY_TIME)


def _path(family: str, store: Store) -> tuple[int, ...]:
    """Fields that lead to the grouping key in a family of `transformWithState`; a list has the keys of a value."""
    if family.startswith(_TIMERS):
        return (1,) if is_by_time(family) else (0,)
    mark = next((mark for mark in _OF_VARIABLES if family.startswith(mark)), "")
    is_map = store.variables.get(family.removeprefix(mark)) is VariableKind.MAP
    if mark == _TTL_INDEX:
        return (1, 0) if is_map else (1,)
    return (0,) if is_map and not mark else ()
