"""Erasure of grouping keys from the state, and from every file of the location."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.clock import Clock
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.edit.absence import search, verify_absent
from spark_ckpt.edit.chains import ChangedChains, Changes, key_groups_to_read, merged_in
from spark_ckpt.edit.errors import EditRefusedError
from spark_ckpt.edit.grouping_keys import GroupingKeys, grouping_keys
from spark_ckpt.edit.opening import begin_edit
from spark_ckpt.edit.purging import delete_savepoint, purge
from spark_ckpt.edit.row_input import RowSource
from spark_ckpt.format.key_groups import key_group_of
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.location.tags import Tags
from spark_ckpt.operations.change import Change
from spark_ckpt.progress import Progress
from spark_ckpt.spark_files.operators import HASHED
from spark_ckpt.state.catalog import StateCatalog, Store
from spark_ckpt.state.grouping import grouping_key
from spark_ckpt.state.unsafe_row import binary_array, decode_rows
from spark_ckpt.state.views import View, view_of
from spark_ckpt.storage import Storage

OPERATION = "erase"
"""Name of the command."""


@dataclass(frozen=True, slots=True)
class ErasedFamily:
    """Erased rows of a column family.

    Args:
        operator_id: Spark's number of the operator.
        store: name of the store.
        variable: name of the column family.
        rows: number of its keys that were removed.
    """

    operator_id: int
    store: str
    variable: str
    rows: int


@dataclass(frozen=True, slots=True)
class Erasure:
    """Result of an erasure, or of its dry run.

    Args:
        location: the checkpoint location.
        keys: number of given grouping keys.
        families: column families of the operators, with their removed rows.
        rewritten: number of subtasks that got a new base, so that no file has the keys; 0 unless purged.
        dropped: ids of the checkpoints that were dropped, because they had the keys.
        deleted: names of the files that were deleted, relative to the location.
        savepoints: savepoints that were deleted, because they had the keys; after a dry run, those that have them.
        batch_id: batch of the erasure in Spark's logs; None if no state was changed.
        from_checkpoint: the checkpoint that it started from.
        checkpoint_id: the new checkpoint; None after a dry run, or if no state was changed.
        new_bytes: bytes written for the new checkpoint.
    """

    location: str
    keys: int
    families: tuple[ErasedFamily, ...]
    rewritten: int
    dropped: tuple[int, ...]
    deleted: tuple[str, ...]
    savepoints: tuple[str, ...]
    batch_id: int | None
    from_checkpoint: int
    checkpoint_id: int | None
    new_bytes: int


def erase_state(
    location: str | os.PathLike[str],
    keys: RowSource,
    *,
    operator: int | str | None = None,
    purge_files: bool = False,
    savepoints: Sequence[str | os.PathLike[str]] = (),
    settings: Mapping[str, str] | None = None,
    force: bool = False,
    dry_run: bool = False,
    clock: Clock | None = None,
    progress: Progress = lambda done, of: None,
) -> Erasure:
    """Remove all state of some grouping keys from a stopped query: every store, column family, list and timer of the
    operator.

    Rows of a whole grouping key are in one key group, so only that is read. If some columns of the grouping key are
    not given, such as the window of an aggregation, all state of the operator is read.

    Without `purge_files`, earlier checkpoints still have the keys, and so do files until the next base snapshots. With
    it, subtasks get new bases without the keys, earlier checkpoints and what rollbacks have moved away are deleted, and
    no file of the location has the keys any more. Other savepoints than those given, and the query's sources and sinks,
    are not touched.

    Args:
        location: checkpoint location of the query, as a path or URL.
        keys: a column for each given column of the grouping key, or a column `key` as `read_state` returns it. Columns
            of a join have the names `field0`, `field1`, and so on.
        operator: Spark's operator number; required if several are stateful.
        purge_files: True to leave no trace in any file.
        savepoints: savepoints of the query to delete if they have the keys; requires `purge_files`.
        settings: settings of the query that begin with `spark.sql.streaming.stateStore.ckpt.`; required if its
            completed checkpoints are in ZooKeeper.
        force: True to proceed although a driver is running, or may be running elsewhere.
        dry_run: True to count the rows and write nothing.
        clock: source of time.
        progress: called with the number of subtasks done and the total.

    Raises:
        EditRefusedError: the operator has no grouping key, a batch is not committed, `savepoints` without
            `purge_files`, or a tag with it.
        EditRowError: a column is no part of the grouping key, or a value does not fit.
        StateNotFoundError, UnsupportedStateError, StateSchemaError: as `read_state` raises.
        LocationInUseError: see `force`.
        SparkCkptError: as `begin_change` and `Change.write` raise.
    """
    if savepoints and not purge_files:
        raise EditRefusedError(os.fspath(location), "only a purge deletes savepoints. Set purge_files=True")
    with begin_edit(location, OPERATION, settings=settings, force=force, dry_run=dry_run, clock=clock) as (
        change,
        catalog,
    ):
        if purge_files:
            _check_no_tags(change.storage)
        stores = catalog.of_operator(operator)
        if stores[0].state.name not in HASHED:
            key, name = stores[0].state.key, stores[0].state.name
            raise EditRefusedError(catalog.location, f"{key} ({name}) has no grouping key")
        selected = grouping_keys(keys, stores)
        copies = _with_keys(savepoints, keys, operator)
        chains = ChangedChains(catalog, change.version_after())
        families = tuple(_removed(catalog, stores, selected, chains, progress))
        if not purge_files or dry_run:
            record = None if dry_run or not len(chains) else change.write(chains.table())
            result = _result(catalog.location, selected, families, change, record)
        else:
            result = _purged(catalog, stores, selected, chains, families, change)
            for storage in copies.values():
                delete_savepoint(storage)
        return replace(result, savepoints=tuple(copies))


def _check_no_tags(storage: Storage) -> None:
    """Tagged checkpoints may have the keys, and no purge deletes what a user has named."""
    if tags := Tags(storage).list():
        names = ", ".join(f"{tag.name} (checkpoint {tag.checkpoint_id})" for tag in tags)
        reason = f"its tags keep earlier checkpoints, which may have the keys: {names}. Remove them: spark-ckpt untag"
        raise EditRefusedError(storage.location, reason)


def _with_keys(
    savepoints: Sequence[str | os.PathLike[str]], keys: RowSource, operator: int | str | None
) -> dict[str, Storage]:
    """Savepoints that have some of the keys, by location."""
    found = {}
    for each in savepoints:
        path = os.fspath(each)
        location = CheckpointLocation.open(path)
        if not location.is_savepoint:
            raise EditRefusedError(
                path, "it is no complete savepoint. If an erasure of it was interrupted, delete its directory"
            )
        if verify_absent(path, keys, operator=operator).traces:
            found[path] = location.storage
    return found


def _result(
    location: str,
    selected: GroupingKeys,
    families: tuple[ErasedFamily, ...],
    change: Change,
    record: CheckpointRecord | None,
    rewritten: int = 0,
    dropped: tuple[int, ...] = (),
    deleted: tuple[str, ...] = (),
) -> Erasure:
    return Erasure(
        location,
        len(selected),
        families,
        rewritten,
        dropped,
        deleted,
        (),
        None if record is None else record.batch_id,
        change.record.id,
        None if record is None else record.id,
        0 if record is None else record.new_bytes,
    )


def _purged(
    catalog: StateCatalog,
    stores: list[Store],
    selected: GroupingKeys,
    chains: ChangedChains,
    families: tuple[ErasedFamily, ...],
    change: Change,
) -> Erasure:
    """Erase, with new bases for all subtasks that need a file with a trace, and delete everything else."""
    traces = search(catalog, stores, selected).traces
    traced = {trace.name for trace in traces}
    rewritten = 0
    for store in catalog.stores:
        for partition, chain in enumerate(store.chains):
            # Files are shared: one with a trace may be needed by subtasks without any.
            is_traced = any(entry.path is None or in_location(entry.path) in traced for entry in chain.entries)
            if is_traced or chains.has(store, partition):
                chains.replace_by_base(store, partition)
                rewritten += 1
    record = change.write(chains.table()) if len(chains) else change.record
    done = purge(change, record)
    return _result(catalog.location, selected, families, change, record, rewritten, done.dropped, done.deleted)


def _removed(
    catalog: StateCatalog, stores: list[Store], selected: GroupingKeys, chains: ChangedChains, progress: Progress
) -> list[ErasedFamily]:
    """Add a delta with the removals to each subtask that has some of the keys."""
    families: list[ErasedFamily] = []
    of = sum(store.state.parallelism for store in stores)
    done = 0
    for store in stores:
        views = [view_of(store, family) for family in store.families]
        lists = frozenset(view.segment_family for view in views if view.lists)
        counts = dict.fromkeys((view.family.name for view in views), 0)
        places = key_groups_to_read(catalog, store, selected.hashes)
        for partition in range(store.state.parallelism):
            progress(done := done + 1, of)
            if partition not in places:
                continue
            changes: Changes = {}
            for view in views:
                for group, keys in _keys_of(catalog, view, partition, places[partition], selected).items():
                    changes.setdefault(group, {})[view.segment_family] = dict.fromkeys(keys)
                    counts[view.family.name] += len(keys)
            if changes:
                removed = sum(len(keys) for of_group in changes.values() for keys in of_group.values())
                chains.add_delta(store, partition, changes, -removed, lists)
        key = store.state.key
        families += [ErasedFamily(key.operator_id, key.store, name, rows) for name, rows in counts.items()]
    return families


def _keys_of(
    catalog: StateCatalog, view: View, partition: int, key_groups: Set[int] | None, selected: GroupingKeys
) -> dict[int, list[bytes]]:
    """Keys of a view in a subtask that belong to the grouping keys, by key group."""
    grouping = grouping_key(view.store, view.family)
    assert grouping is not None
    found: dict[int, list[bytes]] = {}
    for merged in merged_in(catalog, view, partition, key_groups):
        decoded = decode_rows(view.family.key, merged.keys)
        mask = selected.matching(grouping, decoded)
        if not mask.any():
            continue
        which = pa.array(np.flatnonzero(mask))
        groups = key_group_of(selected.hashes_of(grouping, decoded.take(which)), catalog.batch.key_group_factors)
        keys = binary_array(merged.keys).take(which).to_pylist()
        for group, key in zip(groups.tolist(), keys, strict=True):
            found.setdefault(group, []).append(key)
    return found
