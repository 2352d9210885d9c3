"""History of grouping keys: what the files of the retained checkpoints, and of those with tags, say about their rows,
batch by batch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.edit.chains import key_groups_to_read, ranges_in
from spark_ckpt.edit.grouping_keys import GroupingKeys, grouping_keys
from spark_ckpt.edit.row_input import RowSource
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.format.key_groups import key_group_of
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.metadata import KeyGroupRange
from spark_ckpt.operations.tagging import with_tags
from spark_ckpt.progress import Progress
from spark_ckpt.state.blocks import Entries
from spark_ckpt.state.catalog import StateCatalog, state_in
from spark_ckpt.state.errors import StateNotFoundError
from spark_ckpt.state.grouping import GroupingKey, grouping_key
from spark_ckpt.state.merge import merge
from spark_ckpt.state.read import read_view, values_by_key
from spark_ckpt.state.unsafe_row import binary_array, decode_rows
from spark_ckpt.state.views import View, view_of

PRESENT, INSERT, UPDATE, DELETE = "present", "insert", "update", "delete"
"""Kinds of changes. `present` is a row of the oldest base, which does not say since when."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """A change of a row.

    Args:
        first_batch: first batch that may have made it.
        last_batch: last batch that may have made it: the same one, unless deltas were merged or a base replaced them.
        change: its kind.
        key: the key, an array of one struct.
        value: the value after it: an array of one struct, or of one list of structs if the family has lists; null after
            a deletion.
    """

    first_batch: int
    last_batch: int
    change: str
    key: pa.Array
    value: pa.Array


@dataclass(frozen=True, slots=True, eq=False)
class FamilyHistory:
    """History of the rows of a column family.

    Args:
        view: the column family in the newest checkpoint.
        changes: changes in the order of batches.
    """

    view: View
    changes: tuple[RowChange, ...]

    @property
    def schema(self) -> pa.Schema:
        """`first_batch`, `last_batch`, `change`, `key`, and the `value` after it, a list if the family has lists."""
        numbers = [("first_batch", pa.int64()), ("last_batch", pa.int64()), ("change", pa.string())]
        return pa.schema([*numbers, ("key", self.view.family.key.arrow), ("value", self.view.value_type)])

    def to_arrow(self) -> pa.Table:
        """The changes as a table."""
        made = self.changes
        columns = [
            pa.array([change.first_batch for change in made], pa.int64()),
            pa.array([change.last_batch for change in made], pa.int64()),
            pa.array([change.change for change in made], pa.string()),
            pa.chunked_array([change.key for change in made], self.schema.field("key").type),
            pa.chunked_array([change.value for change in made], self.schema.field("value").type),
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)


@dataclass(frozen=True, slots=True, eq=False)
class KeyHistory:
    """History of grouping keys.

    Args:
        location: the location.
        keys: number of given grouping keys.
        checkpoints: ids of the checkpoints that were read, ascending.
        segments: number of segments that were read.
        families: the column families that have had rows of the keys.
    """

    location: str
    keys: int
    checkpoints: tuple[int, ...]
    segments: int
    families: tuple[FamilyHistory, ...]


def history_of(
    location: str | os.PathLike[str],
    keys: RowSource,
    *,
    operator: int | str | None = None,
    progress: Progress = lambda done, of: None,
) -> KeyHistory:
    """What the retained checkpoints, and those with tags, say about grouping keys, batch by batch.

    A chain has the changes of each batch since its base, so two checkpoints tell of many batches. Merged deltas and
    bases tell only what several batches have led to. Of each segment, only blocks of the keys' key groups are read, or
    all if some columns of the grouping key are left out. A query may be running.

    Args:
        location: checkpoint location of a query, or a savepoint, as a path or URL.
        keys: as in `erase_state`.
        operator: Spark's operator number; required if several are stateful.
        progress: called with the number of checkpoints done and the total.

    Raises:
        EditRowError: a column is no part of the grouping key, or a value does not fit.
        StateNotFoundError: no such operator, or one must be selected.
        SparkCkptError: the newest checkpoint cannot be read, or the storage does not answer.
    """
    path = os.fspath(location)
    place = CheckpointLocation.open(path)
    records = _lineage(with_tags(place)[0])
    newest = state_in(place, records[-1].id if records else None)
    stores = newest.of_operator(operator)
    selected = grouping_keys(keys, stores)
    families = [(store, family) for store in stores for family in store.families]
    histories = [
        _History(view_of(*each), grouping) for each in families if (grouping := grouping_key(*each)) is not None
    ]
    read: list[int] = []
    before = segments = 0
    for done, record in enumerate(records, 1):
        found = _found_in(place, record, histories, selected, before)
        progress(done, len(records))
        if found is None:
            continue
        read.append(record.id)
        for history, steps in zip(histories, found, strict=True):
            for step in steps:
                history.add(step)
        segments += len({id(segment) for steps in found for step in steps for segment in step.segments})
        before = record.version
    known = tuple(FamilyHistory(each.view, tuple(each.changes)) for each in histories if each.changes)
    return KeyHistory(path, len(selected), tuple(read), segments, known)


def _lineage(records: Sequence[CheckpointRecord]) -> list[CheckpointRecord]:
    """The checkpoints that led to the newest one, ascending: without those of batches that a later run repeated."""
    chosen: list[CheckpointRecord] = []
    for record in reversed(records):
        if not chosen or record.version < chosen[-1].version:
            chosen.append(record)
    return chosen[::-1]


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """A row of one of the keys in a segment.

    Args:
        encoded: its key as stored.
        code: Spark's hash of its grouping key.
        key: array of its decoded key.
        value: array of its value; None if it is removed.
        appends: True if the value is what a list got in addition.
    """

    encoded: bytes
    code: int
    key: pa.Array
    value: pa.Array | None
    appends: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """What segments of a subtask tell about some versions.

    Args:
        first: first of the versions.
        version: last of them.
        segments: the segments that were read.
        is_whole: True if the rows are all that there are after the last version, and not only changes.
        place: where the rows are.
        rows: the rows of the keys.
    """

    first: int
    version: int
    segments: tuple[SegmentRef, ...]
    is_whole: bool
    place: _Place
    rows: list[_Row]


@dataclass(frozen=True, slots=True)
class _Place:
    """A range of key groups of a subtask."""

    partition: int
    parallelism: int
    key_groups: KeyGroupRange
    factors: tuple[int, ...]

    def __contains__(self, code: int) -> bool:
        group = int(key_group_of(code, self.factors))
        return code % self.parallelism == self.partition and self.key_groups.start <= group <= self.key_groups.end


class _History:
    """State of the keys' rows in a column family as far as it is known, and how it came to be."""

    def __init__(self, view: View, grouping: GroupingKey) -> None:
        self.view = view
        self.grouping = grouping
        self.changes: list[RowChange] = []
        self._known: dict[bytes, _Row] = {}

    def add(self, step: _Step) -> None:
        """Apply what segments tell; the versions ascend."""
        if step.is_whole:
            there = {row.encoded for row in step.rows}
            gone = [row for row in self._known.values() if row.code in step.place and row.encoded not in there]
            for row in gone:
                self._change(step, replace(row, value=None))
        for row in step.rows:
            self._change(step, row)

    def _change(self, step: _Step, row: _Row) -> None:
        old = self._known.get(row.encoded)
        if row.value is None:
            if self._known.pop(row.encoded, None) is not None:
                self._note(step, DELETE, row.key, pa.nulls(1, self.view.value_type))
            return
        value = row.value
        if row.appends and old is not None and old.value is not None:
            items = pa.concat_arrays([old.value.flatten(), value.flatten()])
            value = pa.ListArray.from_arrays([0, len(items)], items)
        if old is not None and old.value is not None and old.value.equals(value):
            return
        self._known[row.encoded] = replace(row, value=value, appends=False)
        is_first = step.is_whole and step.first == 1
        self._note(step, PRESENT if is_first else INSERT if old is None else UPDATE, row.key, value)

    def _note(self, step: _Step, change: str, key: pa.Array, value: pa.Array) -> None:
        self.changes.append(RowChange(step.first - 1, step.version - 1, change, key, value))


# ---- reading ---------------------------------------------------------------------------------------------------------


def _found_in(
    place: CheckpointLocation,
    record: CheckpointRecord,
    histories: Sequence[_History],
    selected: GroupingKeys,
    before: int,
) -> list[list[_Step]] | None:
    """What a checkpoint tells about versions after `before`, by history; None if a running query has dropped it."""
    try:
        catalog = state_in(place, record.id)
        return [sorted(_steps_of(catalog, each, selected, before), key=lambda step: step.version) for each in histories]
    except SparkCkptError:
        if record.id in {each.id for each in with_tags(place)[0]}:
            raise
        return None


def _steps_of(catalog: StateCatalog, history: _History, selected: GroupingKeys, before: int) -> Iterator[_Step]:
    state, family = history.view.store.state, history.view.family
    try:
        store = catalog.store(state.operator_id, state.store)
    except StateNotFoundError:
        return  # the query has had it only since it was changed
    found = next((each for each in store.families if each.name == family.name), None)
    if found is None or (found.key, found.value) != (family.key, family.value):
        return
    view, parallelism = view_of(store, found), store.state.parallelism
    for partition, key_groups in key_groups_to_read(catalog, store, selected.hashes).items():
        for part in ranges_in(catalog, store, partition, key_groups):
            at = _Place(partition, parallelism, part, catalog.batch.key_group_factors)
            for first, version, segments, is_whole in _told_by(store.chains[partition], before, catalog.batch.version):
                rows: list[_Row] = []
                if segments:
                    entries = read_view(catalog.storage, view, Chain("", 0, segments), part)
                    rows += _rows_of(view, history.grouping, selected, entries, is_whole=is_whole)
                yield _Step(first, version, segments, is_whole, at, rows)


def _told_by(chain: Chain, before: int, newest: int) -> Iterator[tuple[int, int, tuple[SegmentRef, ...], bool]]:
    """Versions from `before` + 1 to `newest`, first and last; the segments that tell about them; and whether those have
    all rows."""
    entries = chain.entries
    bases = sum(entry.is_base for entry in entries)
    begins = entries[0].first_version if entries else newest + 1
    if not bases and begins > before + 1:
        yield before + 1, begins - 1, (), True  # a chain begins without a base where there are no rows
        before = begins - 1
    elif bases and (version := max(entry.version for entry in entries[:bases])) > before:
        yield before + 1, version, entries[:bases], True
        before = version
    for index in range(bases, len(entries)):
        entry = entries[index]
        if entry.version <= before:
            continue
        if entry.first_version > before:
            yield entry.first_version, entry.version, (entry,), False
        else:  # merged with changes that are known already
            yield before + 1, entry.version, entries[: index + 1], True
        before = entry.version


def _rows_of(
    view: View, grouping: GroupingKey, selected: GroupingKeys, entries: Entries, *, is_whole: bool
) -> Iterator[_Row]:
    """Rows of the keys, in the order of the segments."""
    decoded = decode_rows(view.family.key, entries.keys)
    which = np.flatnonzero(selected.matching(grouping, decoded))
    if not which.size:
        return
    keys = decoded.take(pa.array(which))
    encoded = binary_array(entries.keys).take(pa.array(which)).to_pylist()
    codes = selected.hashes_of(grouping, keys).tolist()
    places: dict[bytes, list[int]] = {}
    for index, key in enumerate(encoded):
        places.setdefault(key, []).append(index)
    for index, (key, code) in enumerate(zip(encoded, codes, strict=True)):
        if is_whole and places[key][-1] != index:
            continue
        some = entries.take(which[places[key]] if is_whole else which[[index]])
        values = values_by_key(view, merge(some))
        value = values if len(values) else None
        yield _Row(key, code, keys.slice(index, 1), value, not is_whole and bool(some.appends.all()))
