"""State of a checkpoint: stores, their column families, and the types of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_ckpt.checkpoint.batch import SPARK_OFFSETS, SparkBatch, StoreState
from spark_ckpt.checkpoint.chains import Chain, ChainTable
from spark_ckpt.checkpoint.compose import decompose
from spark_ckpt.checkpoint.load import check_files
from spark_ckpt.location.find import CheckpointLocation, FoundCheckpoint
from spark_ckpt.location.savepoint import is_savepoint, with_location_paths
from spark_ckpt.spark_files.evolved import files_at
from spark_ckpt.spark_files.operator_metadata import OperatorMetadata, VariableKind, read_operator_metadata
from spark_ckpt.spark_files.schemas import FamilySchema, read_schema
from spark_ckpt.state.errors import StateNotFoundError, UnsupportedStateError
from spark_ckpt.storage import Storage

_AVRO = '"spark.sql.streaming.stateStore.encodingFormat":"avro"'


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """A store of a checkpoint, with everything needed to read it.

    Args:
        state: its description in the checkpoint.
        chains: chains of its subtasks.
        families: its column families.
        variables: kinds of the state variables of a `transformWithState`, by name.
        values_are_avro: True if values are in Avro, not UnsafeRow.
    """

    state: StoreState
    chains: Sequence[Chain]
    families: tuple[FamilySchema, ...]
    variables: dict[str, VariableKind]
    values_are_avro: bool = False

    def family(self, location: str, name: str) -> FamilySchema:
        """One of its column families.

        Raises:
            StateNotFoundError: no such family.
            UnsupportedStateError: its values are in Avro.
        """
        if self.values_are_avro:
            raise UnsupportedStateError(str(self.state.key), "its values are in Avro (encodingFormat)")
        for family in self.families:
            if family.name == name:
                return family
        names = [family.name for family in self.families]
        raise StateNotFoundError(location, f"{self.state.key} has no state variable '{name}'", names)


@dataclass(frozen=True, slots=True, eq=False)
class StateCatalog:
    """The state of one checkpoint.

    Args:
        storage: storage of the checkpoint location.
        location: the checkpoint location, as given by the user.
        found: the checkpoint.
        batch: its micro-batch.
        stores: the stores, in the order of operators.
    """

    storage: Storage
    location: str
    found: FoundCheckpoint
    batch: SparkBatch
    stores: tuple[Store, ...]

    def of_operator(self, operator: int | str | None) -> list[Store]:
        """The stores of an operator. `operator` may be None if only one is stateful.

        Raises:
            StateNotFoundError: no such operator, or several and none is selected.
        """
        names = {store.state.operator_id: store.state.name for store in self.stores}
        if operator is None and len(names) == 1:
            operator = next(iter(names))
        if operator not in names:
            reason = "choose an operator" if operator is None else f"no stateful operator {operator}"
            raise StateNotFoundError(self.location, reason, [f"{number} ({name})" for number, name in names.items()])
        return [store for store in self.stores if store.state.operator_id == operator]

    def store(self, operator: int | str | None, name: str | None) -> Store:
        """A store of an operator. `name` may be None if the operator has only one.

        Raises:
            StateNotFoundError: no such store, or several and none is selected.
        """
        stores = self.of_operator(operator)
        if name is None and len(stores) == 1:
            return stores[0]
        for store in stores:
            if store.state.store == name:
                return store
        reason = "choose a store, or a side of a join" if name is None else f"no store '{name}'"
        raise StateNotFoundError(self.location, reason, [store.state.store for store in stores])


def open_state(location: str, checkpoint_id: int | None = None) -> StateCatalog:
    """The state of a checkpoint. Reads no row.

    Args:
        location: checkpoint location of a query, or a savepoint, as a path or URL.
        checkpoint_id: the checkpoint; by default the newest.

    Raises:
        SparkCkptError: no such checkpoint, or it cannot be read (see `CheckpointLocation.find`).
        DamagedCheckpointError: a state file is missing or has another size.
        StateSchemaError: one of Spark's schema files is missing or damaged.
        StorageError: the storage does not answer.
    """
    return state_in(CheckpointLocation.open(location), checkpoint_id)


def state_in(location: CheckpointLocation, checkpoint_id: int | None = None) -> StateCatalog:
    """The state of a checkpoint in an open location; see `open_state`."""
    storage, checkpoint_id = location.copy_source(checkpoint_id)
    found = location.find(checkpoint_id)
    batch, table = decompose(with_location_paths(found.metadata) if is_savepoint(storage) else found.metadata)
    if found.record is not None:
        check_files(storage, found.record, table)
        storage = files_at(storage, batch.batch_id)
    is_avro = any(
        state.name == SPARK_OFFSETS and _AVRO in state.payload.decode(errors="replace")
        for state in found.metadata.master_states
    )
    stores = _stores(storage, batch, table, is_avro)
    return StateCatalog(storage, location.path, found, batch, stores)


def _stores(storage: Storage, batch: SparkBatch, table: ChainTable, is_avro: bool) -> tuple[Store, ...]:
    stores = []
    metadata: dict[int, OperatorMetadata | None] = {}
    for state in batch.stores:
        operator = state.operator_id
        if operator not in metadata:
            metadata[operator] = read_operator_metadata(storage, operator, batch.batch_id)
        described = metadata[operator]
        variables = dict(described.variables) if described else {}
        families = read_schema(storage, state.key, described.schema_files.get(state.store) if described else None)
        # Spark encodes only the values of state variables in Avro.
        stores.append(Store(state, table[state.key], families, variables, is_avro and bool(variables)))
    return tuple(stores)
