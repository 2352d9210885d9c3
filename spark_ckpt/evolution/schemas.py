"""Stores of a query and the types of their rows, whether it has state or is only planned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from spark_ckpt.checkpoint.batch import StoreState
from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.checkpoint.meaning import QueryMeaning
from spark_ckpt.checkpoint.segment_table import SegmentTable
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.spark_files.errors import StateSchemaError
from spark_ckpt.spark_files.logs import SparkLog
from spark_ckpt.spark_files.operator_metadata import VariableKind, read_operator_metadata
from spark_ckpt.spark_files.operators import GLOBAL_LIMIT, JOIN, TRANSFORM_WITH_STATE
from spark_ckpt.spark_files.schemas import FamilySchema, read_schema
from spark_ckpt.state.catalog import StateCatalog, Store
from spark_ckpt.storage import Storage

_AVRO = "avro"
ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"


@dataclass(frozen=True, slots=True)
class StoreSchema:
    """A store of a query.

    Args:
        operator_id: Spark's number of the operator.
        store: name of the store.
        name: Spark's short name of the operator.
        families: its column families.
        variables: kinds of the state variables of a `transformWithState`, by name.
        with_ttl: variables with a time to live.
        rows: rows of the store; 0 for a planned query.
        is_avro: True if values are in Avro.
    """

    operator_id: int
    store: str
    name: str
    families: tuple[FamilySchema, ...]
    variables: Mapping[str, VariableKind] = field(default_factory=dict)
    with_ttl: frozenset[str] = frozenset()
    rows: int = 0
    is_avro: bool = False

    @property
    def key(self) -> StoreKey:
        """Key of the store."""
        return StoreKey(self.operator_id, self.store)

    @property
    def title(self) -> str:
        """Operator and name, for messages."""
        return f"operator {self.operator_id} ({self.name})"

    @property
    def has_variables(self) -> bool:
        """True for a `transformWithState`."""
        return self.name in TRANSFORM_WITH_STATE

    @property
    def runs_alone(self) -> bool:
        """True if the operator runs as one task: a limit, and an aggregation without a grouping key."""
        return self.name == GLOBAL_LIMIT or (not self.has_variables and not self.families[0].key.types)

    def family(self, name: str) -> FamilySchema | None:
        """One of its column families; None if it has no such family."""
        return next((family for family in self.families if family.name == name), None)

    def state(self, chains: Sequence[Chain], settings: Mapping[str, str]) -> StoreState:
        """Its state in a checkpoint.

        Args:
            chains: the chain of each subtask.
            settings: settings of the query.
        """
        version = int(settings.get(JOIN_FORMAT, "2")) if self.name == JOIN else None
        rows, ids = tuple(chain.rows for chain in chains), tuple(chain.state_id for chain in chains)
        return StoreState(self.operator_id, self.store, self.name, version, rows, ids, SegmentTable.of(chains))

    def as_store(self) -> Store:
        """The store without rows, for rules that depend on its schema."""
        state = StoreState(self.operator_id, self.store, self.name, None, (), (), SegmentTable.of([]))
        return Store(state, (), self.families, dict(self.variables), self.is_avro)


def schemas_of(catalog: StateCatalog) -> list[StoreSchema]:
    """Stores of a checkpoint.

    Raises:
        StateSchemaError: operator metadata is damaged.
        StorageError: it cannot be read.
    """
    found = []
    for store in catalog.stores:
        state = store.state
        metadata = read_operator_metadata(catalog.storage, state.operator_id, catalog.batch.batch_id)
        with_ttl = frozenset() if metadata is None else metadata.variables_with_ttl
        parts = (state.operator_id, state.store, state.name, store.families, store.variables, with_ttl)
        found.append(StoreSchema(*parts, sum(state.rows), store.values_are_avro))
    return found


def planned_schemas(scratch: Storage, meaning: QueryMeaning, settings: Mapping[str, str]) -> list[StoreSchema]:
    """Stores of a query that Spark has planned for an empty location.

    Args:
        scratch: storage of that location.
        meaning: the operators of the query.
        settings: settings of the plan.

    Raises:
        StateSchemaError: Spark has written no metadata of an operator.
        StorageError: its files cannot be read.
    """
    log = SparkLog(scratch)
    found = []
    for operator in meaning.operators:
        metadata = log.operator_metadata(operator.operator_id, 0)
        if metadata is None:
            raise StateSchemaError(scratch.describe(f"state/{operator.operator_id}"), "the plan has no metadata")
        is_avro = bool(metadata.variables) and settings.get(ENCODING) == _AVRO
        for store in metadata.partitions:
            families = read_schema(scratch, StoreKey(operator.operator_id, store), metadata.schema_files.get(store))
            parts = (operator.operator_id, store, operator.name, families, metadata.variables)
            found.append(StoreSchema(*parts, metadata.variables_with_ttl, 0, is_avro))
    return found


def of_operator(stores: Iterable[StoreSchema], operator_id: int) -> list[StoreSchema]:
    """Stores of an operator."""
    return [store for store in stores if store.operator_id == operator_id]
