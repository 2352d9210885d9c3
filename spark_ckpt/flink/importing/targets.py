"""State of a Spark query that can take state of Flink: variables of `transformWithState`, timers, and aggregates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from spark_ckpt.spark_files.operator_metadata import VariableKind, read_operator_metadata
from spark_ckpt.spark_files.operators import DEFAULT_STORE, REAL_TIME_AGGREGATION, TRANSFORM_WITH_STATE
from spark_ckpt.spark_files.schemas import DEFAULT_FAMILY, FamilySchema
from spark_ckpt.spark_files.types import Struct
from spark_ckpt.state.catalog import StateCatalog, Store

AGGREGATIONS = ("stateStoreSave", REAL_TIME_AGGREGATION)
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

    @property
    def is_timers(self) -> bool:
        """True for timers of either time."""
        return self in (TargetKind.EVENT_TIMERS, TargetKind.PROCESSING_TIMERS)


_KINDS = {VariableKind.VALUE: TargetKind.VALUE, VariableKind.LIST: TargetKind.LIST, VariableKind.MAP: TargetKind.MAP}


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """State of the query that can take a state of Flink.

    Args:
        store: its store.
        kind: its kind.
        family: its column family; of timers, the one by key.
        key: type of the grouping key.
        beside: column families that follow from it: timers by time, or lengths of lists.
        problem: why nothing can be imported into it; None if it can.
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
        """Its name in `--state`: that of the state variable; for timers, such as `eventTimers`; `default` for an
        aggregate."""
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
    return tuple(target for store in catalog.stores for target in _targets(catalog, store))


def _targets(catalog: StateCatalog, store: Store) -> Iterator[Target]:
    families = {family.name: family for family in store.families}
    if store.state.name in AGGREGATIONS and store.state.store == DEFAULT_STORE:
        default = families[DEFAULT_FAMILY]
        yield Target(store, TargetKind.AGGREGATE, default, default.key, (), _problem(store))
    if store.state.name not in TRANSFORM_WITH_STATE:
        return
    metadata = read_operator_metadata(catalog.storage, store.state.operator_id, catalog.batch.batch_id)
    with_ttl = frozenset() if metadata is None else metadata.variables_with_ttl
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
