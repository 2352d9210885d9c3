"""Proof that grouping keys are in no block of any file below a location."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_ckpt.checkpoint.layout import CKPT
from spark_ckpt.completed import LOG, CheckpointRecord, RecordFiles
from spark_ckpt.edit.errors import EditRefusedError
from spark_ckpt.edit.grouping_keys import GroupingKeys, grouping_keys
from spark_ckpt.edit.row_input import RowSource
from spark_ckpt.format.errors import SegmentError
from spark_ckpt.format.segments import MAGIC, RawSection, read_block
from spark_ckpt.metadata import METADATA_FILE_NAME
from spark_ckpt.progress import Progress
from spark_ckpt.recovery.rollback import ROLLBACK_DIR
from spark_ckpt.spark_files.evolved import evolutions
from spark_ckpt.state.catalog import StateCatalog, Store, open_state
from spark_ckpt.state.errors import StateRowError
from spark_ckpt.state.grouping import grouping_key
from spark_ckpt.state.unsafe_row import decode_rows
from spark_ckpt.state.unsafe_row_encoder import rows_of
from spark_ckpt.state.views import view_of
from spark_ckpt.storage import Storage, files_below

_MAGIC = re.compile(re.escape(MAGIC.to_bytes(4, "big")))


@dataclass(frozen=True, slots=True)
class Trace:
    """A block with one of the keys.

    Args:
        name: its file, relative to the location.
        offset: position of the block in the file, in bytes.
        key_group: its key group.
        store: the store, as text.
        variable: name of the column family.
        keys: number of entries with one of the keys, removals included.
    """

    name: str
    offset: int
    key_group: int
    store: str
    variable: str
    keys: int


@dataclass(frozen=True, slots=True)
class Absence:
    """Result of the search for keys.

    Args:
        location: the location.
        keys: number of given grouping keys.
        files: number of files that were read.
        blocks: number of blocks of state in them.
        traces: blocks with one of the keys.
    """

    location: str
    keys: int
    files: int
    blocks: int
    traces: tuple[Trace, ...]


def verify_absent(
    location: str | os.PathLike[str],
    keys: RowSource,
    *,
    operator: int | str | None = None,
    progress: Progress = lambda done, of: None,
) -> Absence:
    """Search every block of state below a location for grouping keys: in state files, needed or not, in `_metadata`,
    and in what rollbacks have moved away.

    It does not see other savepoints, the query's sources and sinks, nor keys within values.

    Args:
        location: checkpoint location of a query, or a savepoint, as a path or URL.
        keys: as in `erase_state`.
        operator: Spark's operator number; required if several are stateful.
        progress: called with the number of files done and the total.

    Raises:
        EditRefusedError: files from the other side of an evolution are retained, or moved away by a rollback.
        EditRowError: a column is no part of the grouping key, or a value does not fit.
        SparkCkptError: the newest checkpoint cannot be read, or the storage does not answer.
    """
    path = os.fspath(location)
    catalog = open_state(path)
    if evolutions(catalog.storage) or _has_rolled_back_over_one(catalog.storage):
        raise EditRefusedError(
            path,
            "files from the other side of an evolution have rows of other types, in which keys cannot be searched. "
            "Erase the keys with --purge, which deletes these files",
        )
    stores = catalog.of_operator(operator)
    selected = grouping_keys(keys, stores)
    found = search(catalog, stores, selected, progress)
    return Absence(path, len(selected), found.files, found.blocks, tuple(found.traces))


def search(
    catalog: StateCatalog,
    stores: Sequence[Store],
    selected: GroupingKeys,
    progress: Progress = lambda done, of: None,
) -> Search:
    """Search all files below a location for grouping keys.

    Args:
        catalog: state of the location.
        stores: stores of the operator.
        selected: the keys.
        progress: called with the number of files done and the total.
    """
    result = Search(catalog.storage, stores, selected)
    names = list(_files(catalog.storage))
    for done, name in enumerate(names, 1):
        result.read(name)
        progress(done, len(names))
    return result


class Search:
    """Search for keys.

    Args:
        storage: storage of the location.
        stores: stores of the operator.
        selected: the keys.

    Attributes:
        files: number of files that were searched.
        blocks: number of blocks in them.
        traces: blocks with one of the keys.
    """

    def __init__(self, storage: Storage, stores: Sequence[Store], selected: GroupingKeys) -> None:
        self._storage = storage
        self._selected = selected
        families = [(store, family) for store in stores for family in store.families]
        self._families = [(view_of(*each), grouping_key(*each)) for each in families]
        self.files = self.blocks = 0
        self.traces: list[Trace] = []

    def read(self, name: str) -> None:
        """Search a file. A file that is deleted meanwhile has nothing."""
        self.files += 1
        try:
            data = self._storage.read(name)
        except FileNotFoundError:
            return
        path = self._storage.describe(name)
        for match in _MAGIC.finditer(data):
            try:
                header, sections = read_block(data, match.start(), path)
            except SegmentError:
                continue  # other bytes, or a block that no reader accepts
            self.blocks += 1
            for section in sections:
                self._look(name, match.start(), header.key_group, section)

    def _look(self, name: str, offset: int, key_group: int, section: RawSection) -> None:
        """Segments name no store, so a section may be of any store with a family of its name."""
        rows = rows_of(np.frombuffer(section.keys, np.uint8), section.key_lengths, "")
        for view, grouping in self._families:
            if view.segment_family != section.column_family or grouping is None or not len(rows):
                continue
            try:
                found = int(self._selected.matching(grouping, decode_rows(view.family.key, rows)).sum())
            except (StateRowError, ValueError, pa.ArrowException):
                continue  # rows of another store
            if found:
                store = str(view.store.state.key)
                self.traces.append(Trace(name, offset, key_group, store, view.family.name, found))


def _has_rolled_back_over_one(storage: Storage) -> bool:
    """True if a rollback may have moved files from after an evolution away."""
    for rollback in storage.list(ROLLBACK_DIR):
        records = RecordFiles(storage, f"{ROLLBACK_DIR}/{rollback.name}/{LOG}")
        found = map(records.read, records.ids())
        if any(isinstance(record, CheckpointRecord) and record.evolved is not None for record in found):
            return True
    return False


def _files(storage: Storage) -> Iterator[str]:
    """All files with state, relative to the location; the `_metadata` of a savepoint is beside its directories."""
    if storage.exists(METADATA_FILE_NAME):
        yield METADATA_FILE_NAME
    for directory in (CKPT, ROLLBACK_DIR):
        yield from files_below(storage, directory, hidden=True)
