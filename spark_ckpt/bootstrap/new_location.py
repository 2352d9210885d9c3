"""Location of a new query whose first batch has no input, and state that was written."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from spark_ckpt.checkpoint.batch import SparkBatch, state_ids
from spark_ckpt.checkpoint.chains import Chain, ChainTable
from spark_ckpt.checkpoint.layout import CKPT
from spark_ckpt.checkpoint.publish import Publisher, checkpoint_of_operation
from spark_ckpt.clock import Clock
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.config import STORE, CheckpointConfig
from spark_ckpt.errors import StorageError
from spark_ckpt.evolution.planned_query import PlannedQuery
from spark_ckpt.evolution.schemas import StoreSchema
from spark_ckpt.format.key_groups import default_max_parallelism, factors
from spark_ckpt.location.import_marker import MARKER, ImportMarker, read_marker
from spark_ckpt.location.open_store import opened_store
from spark_ckpt.operations.errors import TargetNotEmptyError
from spark_ckpt.spark_files.entries import CommitEntry, OffsetEntry
from spark_ckpt.spark_files.logs import QUERY, SparkLog, make_partitions
from spark_ckpt.storage import Storage, delete_tree

OPERATION = "write-state"
"""Name of the operation."""

PROVIDER = "rows"
"""Provider in the marker of a bootstrap that has not finished."""

_BATCH = 0
_VERSION = _BATCH + 1


@dataclass(frozen=True, slots=True)
class NewQuery:
    """A query that has not been started.

    Args:
        planned: its plan.
        offsets: entry of the offset log for its first batch.
        checkpoint_format: format of Spark's state stores, 1 or 2.
        partitions: number of partitions of its stateful operators.
        settings: settings of spark-ckpt.
    """

    planned: PlannedQuery
    offsets: OffsetEntry
    checkpoint_format: int
    partitions: int
    settings: Mapping[str, str]

    @property
    def max_parallelism(self) -> int:
        """Number of key groups."""
        return CheckpointConfig.parse_strictly(self.settings).max_parallelism or default_max_parallelism(
            self.partitions
        )

    @property
    def key_group_factors(self) -> tuple[int, ...]:
        """Numbering of the key groups."""
        return tuple(factors(self.partitions, self.max_parallelism))

    def parallelism(self, store: StoreSchema) -> int:
        """Number of partitions of a store."""
        return 1 if store.runs_alone else self.partitions


@contextmanager
def filling(storage: Storage) -> Iterator[None]:
    """Fills an empty location. No query starts there until the end; after an error, the location is empty again.

    Raises:
        TargetNotEmptyError: the location is not empty, and no bootstrap was interrupted there.
        StorageError: it cannot be read or written.
    """
    marker = read_marker(storage)
    if marker is not None and marker.provider == PROVIDER:
        _clear(storage)
    if storage.list(""):
        raise TargetNotEmptyError(storage.location)
    storage.write_atomic(MARKER, ImportMarker(_BATCH, PROVIDER, None, {}).encode())
    try:
        yield
    except BaseException:
        with suppress(StorageError):
            _clear(storage)
        raise
    storage.delete(MARKER)


def _clear(storage: Storage) -> None:
    """Deletes all of a location, the marker last."""
    for entry in storage.list(""):
        if entry.name != CKPT:
            _delete(storage, entry.name, is_directory=entry.is_directory)
    for entry in storage.list(CKPT):
        if (name := f"{CKPT}/{entry.name}") != MARKER:
            _delete(storage, name, is_directory=entry.is_directory)
    storage.delete(MARKER)
    storage.remove_empty(CKPT)


def _delete(storage: Storage, name: str, *, is_directory: bool) -> None:
    if is_directory:
        delete_tree(storage, name)
    else:
        storage.delete(name)


def write_query(
    storage: Storage, query: NewQuery, chains: Callable[[StoreSchema], list[Chain]], clock: Clock
) -> tuple[CheckpointRecord, str]:
    """Writes all files of a query after its first batch; the entry of its commit is the last.

    Args:
        storage: storage of an empty location, as in `filling`.
        query: the query.
        chains: writes the rows of a store.
        clock: source of time.

    Returns:
        Record of its checkpoint, and its id.

    Raises:
        SparkCkptError: as `chains` raises, or a file cannot be written.
    """
    started_ms = clock.now_ms()
    planned, log, query_id = query.planned, SparkLog(storage), str(uuid.uuid4())
    storage.write_atomic(QUERY, json.dumps({"id": query_id}, separators=(",", ":")).encode())
    for name, data in planned.files_in(storage.location, _BATCH).items():
        storage.write_atomic(name, data)
    make_partitions(storage, {store.operator_id: query.parallelism(store) for store in planned.stores})
    table: ChainTable = {store.key: chains(store) for store in planned.stores}
    # A location without records would count as one that has lost its log.
    with opened_store(storage, {STORE.key: "filesystem", **query.settings}, OPERATION, clock) as (store, owner):
        store.recover()
        store.claim()
        batch = SparkBatch(
            batch_id=_BATCH,
            version=_VERSION,
            query_id=owner.query_id,
            run_id=owner.run_id,
            spark_version=planned.spark_version,
            checkpoint_format=query.checkpoint_format,
            max_parallelism=query.max_parallelism,
            key_group_factors=query.key_group_factors,
            sources=tuple(query.offsets.offsets),
            stores=tuple(each.state(table[each.key], query.offsets.conf) for each in planned.stores),
            meaning=planned.meaning.encode(),
        )
        now_ms = clock.now_ms()
        new = checkpoint_of_operation(batch, table, query.offsets, (), None, started_ms, now_ms)
        new.new_state_bytes = new.task_bytes = sum(chain.size for each in table.values() for chain in each)
        record = Publisher(storage, store, owner).publish(new, now_ms)
    log.add_offsets(_BATCH, query.offsets)
    log.add_commit(_BATCH, _commit(batch, query.offsets))
    return record, query_id


def _commit(batch: SparkBatch, offsets: OffsetEntry) -> CommitEntry:
    entry = CommitEntry(batch.checkpoint_format, {"nextBatchWatermarkMs": (offsets.metadata or {})["batchWatermarkMs"]})
    return entry.with_state_ids(state_ids(batch)) if batch.checkpoint_format > 1 else entry
