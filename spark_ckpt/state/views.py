"""Tables of column families, with the columns of Spark's `statestore` data source (`SchemaUtil`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa

from spark_ckpt.spark_files.operator_metadata import VariableKind
from spark_ckpt.spark_files.operators import GLOBAL_LIMIT, JOIN, SESSION_WINDOW, TRANSFORM_WITH_STATE
from spark_ckpt.spark_files.schemas import DEFAULT_FAMILY, FamilySchema
from spark_ckpt.state.catalog import StateCatalog, Store
from spark_ckpt.state.errors import StateNotFoundError
from spark_ckpt.state.grouping import WITH_ROW_NUMBER, grouping_key, is_by_time
from spark_ckpt.state.partition_hash import PartitionKey
from spark_ckpt.state.unsafe_row import struct_array

Side: TypeAlias = Literal["left", "right"]
"""A side of a join."""

PARTITION = "partition_id"
"""The last column: partition of the row."""

_LISTS_OF_JOINS = ("-keyWithTsToValues", "-tsWithKey")

_Columns: TypeAlias = Callable[[pa.StructArray, pa.StructArray], dict[str, pa.Array]]


@dataclass(frozen=True, slots=True)
class View:
    """A column family as a table.

    Args:
        store: the store.
        family: the column family.
        columns: makes the columns from keys and values of equal length.
        lists: True if a key has a list of values.
    """

    store: Store
    family: FamilySchema
    columns: _Columns
    lists: bool = False

    @property
    def segment_family(self) -> str:
        """The name of the family in segments."""
        return "" if self.family.name == DEFAULT_FAMILY else self.family.name

    @property
    def value_type(self) -> pa.DataType:
        """Type of what a key has: a value, or a list of them."""
        return pa.list_(self.family.value.arrow) if self.lists else self.family.value.arrow

    @property
    def partition_key(self) -> PartitionKey:
        """Key fields that Spark partitions by: all but the one that tells sessions or rows of a key apart.

        For a map or timers it is the first field, the grouping key. A limit runs as one task and has none."""
        if self.store.state.name == GLOBAL_LIMIT:
            return PartitionKey(self.family.key, 0)
        name = self.family.name if self.family.name != DEFAULT_FAMILY else self.store.state.store
        if self.store.state.name in TRANSFORM_WITH_STATE:
            if is_by_time(name):  # after the time
                grouping = grouping_key(self.store, self.family)
                assert grouping is not None
                return PartitionKey(self.family.key, len(grouping.kind.types), grouping.path)
            return PartitionKey(self.family.key, self._columns_of_group(self.store.variables.get(name)))
        is_part = self.store.state.name == SESSION_WINDOW or name.endswith(WITH_ROW_NUMBER)
        return PartitionKey(self.family.key, len(self.family.key.types) - is_part)

    def _columns_of_group(self, kind: VariableKind | None) -> int | None:
        """Number of key fields that hold the grouping key; None for an internal index of Spark."""
        if kind is None:
            return None
        return 1 if kind in (VariableKind.MAP, VariableKind.TIMER) else len(self.family.key.types)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        keys, values = (pa.array([], kind.arrow) for kind in (self.family.key, self.family.value))
        fields = [pa.field(name, column.type) for name, column in self.columns(keys, values).items()]
        return pa.schema([*fields, pa.field(PARTITION, pa.int32())])

    def batch(self, keys: pa.StructArray, values: pa.StructArray, partition: int) -> pa.RecordBatch:
        """Rows of one partition."""
        columns = list(self.columns(keys, values).values())
        partitions = pa.repeat(pa.scalar(partition, pa.int32()), len(keys))
        return pa.RecordBatch.from_arrays([*columns, partitions], schema=self.schema)


def choose_view(
    catalog: StateCatalog,
    operator: int | str | None = None,
    store: str | None = None,
    variable: str | None = None,
    side: Side | None = None,
) -> View:
    """The view that the arguments select; see `read_state`.

    Raises:
        StateNotFoundError: no such operator, store, state variable or side, or one must be selected.
        UnsupportedStateError: only Spark can read it.
    """
    if side is not None:
        if store is not None or variable is not None:
            reason = "a side of a join covers all its stores: omit the store and the variable"
            raise StateNotFoundError(catalog.location, reason, ["left", "right"])
        return _side(catalog, operator, side)
    chosen = catalog.store(operator, store)
    if variable is None:
        if chosen.variables or len(chosen.families) != 1:
            names = [family.name for family in chosen.families if not family.name.startswith("$")]
            timers = [name for name, kind in chosen.variables.items() if kind is VariableKind.TIMER]
            reason = f"choose a state variable of {chosen.state.key}"
            raise StateNotFoundError(catalog.location, reason, [*names, *timers])
        variable = chosen.families[0].name
    family = chosen.family(catalog.location, variable)
    return view_of(chosen, family)


def view_of(store: Store, family: FamilySchema) -> View:
    """The view of a column family, an internal index included."""
    kind = store.variables.get(family.name, VariableKind.VALUE)
    is_list = kind is VariableKind.LIST or (store.state.name == JOIN and family.name.endswith(_LISTS_OF_JOINS))
    return View(store, family, _COLUMNS[kind], is_list)


def _side(catalog: StateCatalog, operator: int | str | None, side: Side) -> View:
    """The rows of one side of a join: separate stores in formats 1 and 2, column families in formats 3 and 4."""
    stores = catalog.of_operator(operator)
    if stores[0].state.name != JOIN:
        reason = f"operator {stores[0].state.operator_id} is a {stores[0].state.name}, which has no sides"
        raise StateNotFoundError(catalog.location, reason, [store.state.store for store in stores])
    version = stores[0].state.state_format_version or 2
    name = f"{side}-keyWithTsToValues" if version >= 4 else f"{side}-keyWithIndexToValue"
    store = catalog.store(stores[0].state.operator_id, name if version <= 2 else None)
    family = store.family(catalog.location, DEFAULT_FAMILY if version <= 2 else name)
    return View(store, family, _joined if version == 1 else _joined_with_match, version >= 4)


def _plain(keys: pa.StructArray, values: pa.StructArray) -> dict[str, pa.Array]:
    return {"key": keys, "value": values}


def _list(keys: pa.StructArray, values: pa.StructArray) -> dict[str, pa.Array]:
    return {"key": keys, "list_element": values}


def _map(keys: pa.StructArray, values: pa.StructArray) -> dict[str, pa.Array]:
    return {"key": keys.field(0), "user_map_key": keys.field(1), "user_map_value": values}


def _timer(keys: pa.StructArray, values: pa.StructArray) -> dict[str, pa.Array]:
    return {"key": keys.field(0), "expiration_timestamp_ms": keys.field(1)}


def _joined(keys: pa.StructArray, values: pa.StructArray) -> dict[str, pa.Array]:
    """Without the index or time that makes the key of each row unique."""
    return {"key": _without_last(keys), "value": values}


def _joined_with_match(keys: pa.StructArray, values: pa.StructArray) -> dict[str, pa.Array]:
    """Also without the flag of matched rows."""
    return {"key": _without_last(keys), "value": _without_last(values)}


def _without_last(structs: pa.StructArray) -> pa.StructArray:
    return struct_array(structs.flatten()[:-1], list(structs.type)[:-1], len(structs))


_COLUMNS: dict[VariableKind, _Columns] = {
    VariableKind.VALUE: _plain,
    VariableKind.LIST: _list,
    VariableKind.MAP: _map,
    VariableKind.TIMER: _timer,
}
