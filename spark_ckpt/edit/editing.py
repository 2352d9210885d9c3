"""Edit of state: rows set and keys deleted, one delta per touched subtask."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_ckpt.clock import Clock
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.edit.chains import ChangedChains, Changes, merged_in, places_of
from spark_ckpt.edit.errors import EditRefusedError, EditRowError
from spark_ckpt.edit.opening import begin_edit
from spark_ckpt.edit.row_input import RowSource, table_of
from spark_ckpt.edit.rows import structs_of
from spark_ckpt.operations.change import Change
from spark_ckpt.spark_files.operator_metadata import VariableKind, read_operator_metadata
from spark_ckpt.spark_files.operators import GLOBAL_LIMIT, JOIN, SESSION_WINDOW
from spark_ckpt.spark_files.types import Struct
from spark_ckpt.state.catalog import StateCatalog
from spark_ckpt.state.partition_hash import grouping_hashes
from spark_ckpt.state.rows import Rows
from spark_ckpt.state.unsafe_row import binary_array, struct_array
from spark_ckpt.state.unsafe_row_encoder import encode_rows
from spark_ckpt.state.views import View, choose_view

OPERATION = "edit"
"""Name of the command."""

_WHY_NOT = {
    JOIN: "rows of a join depend on each other; 'spark-ckpt erase' removes all of a key",
    SESSION_WINDOW: "session windows of a key depend on each other; 'spark-ckpt erase' removes all of a key",
    GLOBAL_LIMIT: "a limit has no keys",
}


@dataclass(frozen=True, slots=True)
class StateEdit:
    """Result of an edit, or of its dry run.

    Args:
        location: the checkpoint location.
        operator_id: Spark's number of the operator.
        store: name of its store.
        variable: name of the column family.
        inserted: rows set whose keys are new.
        updated: rows set whose keys had a row.
        deleted: deleted rows.
        missing: keys to delete that have no row.
        subtasks: number of touched subtasks, each with one delta.
        batch_id: batch of the edit in Spark's logs.
        from_checkpoint: the checkpoint that it started from.
        checkpoint_id: the new checkpoint; None after a dry run.
        new_bytes: bytes written for the new checkpoint; 0 after a dry run.
    """

    location: str
    operator_id: int
    store: str
    variable: str
    inserted: int
    updated: int
    deleted: int
    missing: int
    subtasks: int
    batch_id: int
    from_checkpoint: int
    checkpoint_id: int | None
    new_bytes: int


def edit_state(
    location: str | os.PathLike[str],
    set: RowSource | None = None,  # noqa: A002  (the word of the command)
    delete: RowSource | None = None,
    *,
    operator: int | str | None = None,
    store: str | None = None,
    variable: str | None = None,
    settings: Mapping[str, str] | None = None,
    force: bool = False,
    dry_run: bool = False,
    clock: Clock | None = None,
) -> StateEdit:
    """Set rows in the state of a stopped query, and delete keys from it.

    The cost depends on the changes: each touched subtask gets one delta, and only key groups of these keys are read, to
    count rows. The query continues from the new checkpoint when it is started as before.

    Rows are those of aggregations, of de-duplications, of `flatMapGroupsWithState`, and of state variables of kind
    value and map. Rows of lists, timers, joins and session windows depend on each other.

    Args:
        location: checkpoint location of the query, as a path or URL.
        set: rows, or a function that returns them for the schema of the state. They have the columns that `read_state`
            returns: `key` and `value`, or `key`, `user_map_key` and `user_map_value` for a map. Other columns, such as
            `partition_id`, are ignored.
        delete: keys, or such a function, with the columns `key`, and `user_map_key` for a map.
        operator: Spark's operator number; required if several are stateful.
        store: name of the store; required if the operator has several.
        variable: state variable; required if the store has several.
        settings: settings of the query that begin with `spark.sql.streaming.stateStore.ckpt.`; required if its
            completed checkpoints are in ZooKeeper.
        force: True to proceed although a driver is running, or may be running elsewhere.
        dry_run: True to check everything and write nothing.
        clock: source of time.

    Raises:
        EditRefusedError: the state is of a kind that has no independent rows, or a batch is not committed.
        EditRowError: a row does not fit, or a key is given twice.
        StateNotFoundError, UnsupportedStateError, StateSchemaError: as `read_state` raises.
        LocationInUseError: see `force`.
        SparkCkptError: as `begin_change` and `Change.write` raise.
    """
    with begin_edit(location, OPERATION, settings=settings, force=force, dry_run=dry_run, clock=clock) as (
        change,
        catalog,
    ):
        view = _editable(catalog, operator, store, variable)
        rows = _Rows.of(view, set, delete)
        chains = ChangedChains(catalog, change.version_after())
        counts = _apply(catalog, view, rows, chains)
        record = None if dry_run or not len(chains) else change.write(chains.table())
        return _result(catalog.location, change, view, counts, len(chains), record)


def _result(
    location: str,
    change: Change,
    view: View,
    counts: NDArray[np.int64],
    subtasks: int,
    record: CheckpointRecord | None,
) -> StateEdit:
    state = view.store.state
    inserted, updated, deleted, missing = counts.tolist()
    return StateEdit(
        location,
        state.operator_id,
        state.store,
        view.family.name,
        inserted,
        updated,
        deleted,
        missing,
        subtasks,
        change.logs.committed + 1,
        change.record.id,
        None if record is None else record.id,
        0 if record is None else record.new_bytes,
    )


def _editable(catalog: StateCatalog, operator: int | str | None, store: str | None, variable: str | None) -> View:
    """The view with the rows to edit."""
    view = choose_view(catalog, operator, store, variable)
    state, name = view.store.state, view.family.name
    reason = _WHY_NOT.get(state.name)
    kind = view.store.variables.get(name, VariableKind.VALUE)
    if name.startswith("$") or kind not in (VariableKind.VALUE, VariableKind.MAP):
        reason = f"rows of {name} depend on others; 'spark-ckpt erase' removes all of a key"
    metadata = read_operator_metadata(catalog.storage, state.operator_id, catalog.batch.batch_id)
    if metadata is not None and name in metadata.variables_with_ttl:
        reason = f"{name} has a time to live, whose index depends on its rows"
    if reason is not None:
        raise EditRefusedError(catalog.location, reason)
    return view


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Rows to set, then keys to delete, encoded.

    Args:
        keys: each key once.
        values: value of each key; None to delete it.
        hashes: int32, Spark's hash of the grouping key of each.
    """

    keys: list[bytes]
    values: list[bytes | None]
    hashes: NDArray[np.int32]

    @classmethod
    def of(cls, view: View, to_set: RowSource | None, to_delete: RowSource | None) -> _Rows:
        keys: list[bytes] = []
        values: list[bytes | None] = []
        hashes: list[NDArray[np.int32]] = []
        is_map = view.store.variables.get(view.family.name) is VariableKind.MAP
        for source in (to_set, to_delete):
            table = None if source is None else table_of(source, view.schema)
            if table is None or not len(table):
                continue
            encoded, codes = _keys(view, table, is_map=is_map)
            keys += encoded
            hashes.append(codes)
            if source is to_delete:
                values += [None] * len(encoded)
                continue
            column = "user_map_value" if is_map else "value"
            given = structs_of(table, column, view.family.value, required=view.family.required)
            values += _bytes(encode_rows(view.family.value, given))
        if len(set(keys)) != len(keys):
            first = {key: i for i, key in reversed(list(enumerate(keys)))}
            twice = next(i for i, key in enumerate(keys) if first[key] != i)
            raise EditRowError("key", twice, "the key is given twice")
        return cls(keys, values, np.concatenate([np.empty(0, np.int32), *hashes]))


def _keys(view: View, table: pa.Table, *, is_map: bool) -> tuple[list[bytes], NDArray[np.int32]]:
    """The keys of the column family, and the hashes of their grouping keys."""
    kind = view.family.key
    if not is_map:
        keys = encode_rows(kind, structs_of(table, "key", kind, is_key=True))
        return _bytes(keys), grouping_hashes(kind, keys)
    grouping, user = kind.types[0], kind.types[1]
    assert isinstance(grouping, Struct)
    assert isinstance(user, Struct)
    parts = [structs_of(table, "key", grouping, is_key=True), structs_of(table, "user_map_key", user, is_key=True)]
    keys = encode_rows(kind, struct_array(parts, list(kind.arrow), len(table)))
    return _bytes(keys), grouping_hashes(grouping, encode_rows(grouping, parts[0]))


def _bytes(rows: Rows) -> list[bytes]:
    encoded: list[bytes] = binary_array(rows).to_pylist()
    return encoded


def _apply(catalog: StateCatalog, view: View, rows: _Rows, chains: ChangedChains) -> NDArray[np.int64]:
    """Add the deltas; returns the numbers of inserted, updated, deleted and missing rows."""
    counts = np.zeros(4, np.int64)
    for partition, groups in places_of(catalog, view.store, rows.hashes).items():
        present: set[bytes] = set()
        for merged in merged_in(catalog, view, partition, groups.keys()):
            present.update(_bytes(merged.keys))
        changes: Changes = {}
        before = counts.copy()
        for group, which in groups.items():
            of_group = {rows.keys[i]: rows.values[i] for i in which.tolist()}
            for key, value in of_group.items():
                counts[2 * (value is None) + (key in present if value is not None else key not in present)] += 1
            changed = {key: value for key, value in of_group.items() if value is not None or key in present}
            if changed:
                changes[group] = {view.segment_family: changed}
        if changes:
            inserted, _, deleted, _ = (counts - before).tolist()
            chains.add_delta(view.store, partition, changes, inserted - deleted, frozenset())
    return counts
