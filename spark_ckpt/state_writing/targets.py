"""State of a Spark query that rows can be written to: variables of `transformWithState`, timers, aggregates,
de-duplications and arbitrary state by group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from spark_ckpt.spark_files.operator_metadata import VariableKind, read_operator_metadata
from spark_ckpt.spark_files.operators import (
    AGGREGATION,
    DEDUPLICATIONS,
    DEFAULT_STORE,
    GROUPS_WITH_STATE,
    REAL_TIME_AGGREGATION,
    TRANSFORM_WITH_STATE,
)
from spark_ckpt.spark_files.schemas import DEFAULT_FAMILY, FamilySchema
from spark_ckpt.spark_files.types import Struct
from spark_ckpt.state.catalog import StateCatalog, Store
from spark_ckpt.state.unsafe_row import struct_array
from spark_ckpt.state_writing.bases import WrittenFamily

AGGREGATIONS = (AGGREGATION, REAL_TIME_AGGREGATION)
"""Spark's short names of aggregations."""

_BY_KEY, _BY_TIME = "_keyToTimestamp", "_timestampToKey"
"""Suffixes of the two column families of timers (`TimerStateUtils`)."""

_COUNTER = "$rowCounter_"
"""Prefix of the column family with the lengths of the lists of a state variable
(`StateStoreColumnFamilySchemaUtils.getRowCounterCFName`)."""


class TargetKind(Enum):
    """Kind of a target."""

    VALUE = "value"
    LIST = "list"
    MAP = "map"
    EVENT_TIMERS = "event-time timers"
    PROCESSING_TIMERS = "processing-time timers"
    AGGREGATE = "aggregate"
    SEEN = "keys of a de-duplication"
    GROUP = "state of a group"

    @property
    def is_timers(self) -> bool:
        """True for timers of either time."""
        return self in (TargetKind.EVENT_TIMERS, TargetKind.PROCESSING_TIMERS)


_OF_OPERATORS = {
    **dict.fromkeys(AGGREGATIONS, TargetKind.AGGREGATE),
    **dict.fromkeys(DEDUPLICATIONS, TargetKind.SEEN),
    **dict.fromkeys(GROUPS_WITH_STATE, TargetKind.GROUP),
}
"""Kinds of operators with one row for each key."""

_KINDS = {VariableKind.VALUE: TargetKind.VALUE, VariableKind.LIST: TargetKind.LIST, VariableKind.MAP: TargetKind.MAP}


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """State of the query that rows can be written to.

    Args:
        store: its store.
        kind: its kind.
        family: its column family; of timers, the one by key.
        key: type of the grouping key.
        beside: column families that follow from it: timers by time, or lengths of lists.
        problem: why no rows can be written to it; None if they can.
    """

    store: Store
    kind: TargetKind
    family: FamilySchema
    key: Struct
    beside: tuple[FamilySchema, ...] = ()
    problem: str | None = None

    @property
    def operator_id(self) -> int:
        """Spark's number of its operator."""
        return self.store.state.operator_id

    @property
    def name(self) -> str:
        """Its name: that of the state variable; for timers, such as `eventTimers`; `default` for an operator without
        variables."""
        return self.family.name.removesuffix(_BY_KEY).removeprefix("$") if self.kind.is_timers else self.family.name

    @property
    def title(self) -> str:
        """Its name with the operator, unique in the query."""
        return f"{self.operator_id}/{self.name}"


def targets_of(catalog: StateCatalog) -> tuple[Target, ...]:
    """The targets in the state of a query, by operator.

    Raises:
        StateSchemaError: operator metadata is damaged.
        StorageError: it cannot be read.
    """
    found: list[Target] = []
    for store in catalog.stores:
        metadata = read_operator_metadata(catalog.storage, store.state.operator_id, catalog.batch.batch_id)
        found += targets_in(store, frozenset() if metadata is None else metadata.variables_with_ttl)
    return tuple(found)


def targets_in(store: Store, with_ttl: Set[str]) -> Iterator[Target]:
    """The targets in a store.

    Args:
        store: the store.
        with_ttl: its variables with a time to live.
    """
    families = {family.name: family for family in store.families}
    if store.state.name in _OF_OPERATORS and store.state.store == DEFAULT_STORE:
        default = families[DEFAULT_FAMILY]
        yield Target(store, _OF_OPERATORS[store.state.name], default, default.key, (), _problem(store))
    if store.state.name not in TRANSFORM_WITH_STATE:
        return
    for name, kind in store.variables.items():
        family = families.get(name)
        if family is None or name.endswith(_BY_TIME):
            continue
        problem = _problem(store) or ("it has a time to live" if name in with_ttl else None)
        if kind is VariableKind.TIMER:
            by_time = families[name.removesuffix(_BY_KEY) + _BY_TIME]
            timers = TargetKind.EVENT_TIMERS if name.startswith("$event") else TargetKind.PROCESSING_TIMERS
            yield Target(store, timers, family, _first(family.key), (by_time,), problem)
            continue
        counter = families.get(_COUNTER + name)
        beside = () if counter is None else (counter,)
        key = _first(family.key) if kind is VariableKind.MAP else family.key
        yield Target(store, _KINDS[kind], family, key, beside, problem)


def _first(key: Struct) -> Struct:
    """Grouping key in the keys of a map or of timers."""
    first = key.types[0]
    assert isinstance(first, Struct)
    return first


def _problem(store: Store) -> str | None:
    if store.values_are_avro:
        return "its values are in Avro (spark.sql.streaming.stateStore.encodingFormat); start the query with unsaferow"
    return None


def families_of(targets: Sequence[Target]) -> dict[str, WrittenFamily]:
    """The families with rows of their own, by name, in the order of their sections.

    Args:
        targets: the targets in one store.
    """
    result = {}
    for target in targets:
        counter = target.beside[0] if target.kind is TargetKind.LIST and target.beside else None
        result[target.family.name] = WrittenFamily(target.family, target.kind is TargetKind.LIST, counter)
        if target.kind.is_timers:
            result |= {other.name: WrittenFamily(other) for other in target.beside}
    return result


def rows_of_families(
    target: Target, grouping: pa.StructArray, part: pa.Array | None, values: pa.StructArray | None
) -> Iterator[tuple[FamilySchema, pa.StructArray, pa.StructArray]]:
    """Keys and values of each column family with rows of a target.

    Args:
        target: the target.
        grouping: grouping key of each row.
        part: the rest of the key: keys within a map, or times of timers; None for others.
        values: the values; None for timers, whose values are null.
    """
    family, count = target.family, len(grouping)
    if target.kind.is_timers:
        pairs = [(family, [grouping, part]), *((other, [part, grouping]) for other in target.beside)]
        for each, parts in pairs:
            nulls = [pa.nulls(count, field.type) for field in each.value.arrow]
            keys = struct_array(parts, list(each.key.arrow), count)
            yield each, keys, struct_array(nulls, list(each.value.arrow), count)
        return
    assert values is not None
    keys = grouping if part is None else struct_array([grouping, part], list(family.key.arrow), count)
    yield family, keys, values
