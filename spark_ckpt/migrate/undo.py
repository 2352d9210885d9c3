"""Undo of an import in place: the query returns to the earlier provider, whose state files are untouched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed import CheckpointRecord, CompletedCheckpointStore
from spark_ckpt.location.driver_liveness import HasEnded, check_fenced, may_write, never_ended
from spark_ckpt.location.import_marker import MARKER, ImportMarker, read_marker
from spark_ckpt.location.open_store import opened_store
from spark_ckpt.location.orphans import list_state
from spark_ckpt.location.tags import Tags
from spark_ckpt.migrate.errors import TransferRefusedError
from spark_ckpt.migrate.importing import replace_offsets
from spark_ckpt.migrate.stopped_query import PROVIDERS, StoppedQuery, read_stopped_query
from spark_ckpt.recovery.fence import fenced_logs
from spark_ckpt.storage import Storage


@dataclass(frozen=True, slots=True)
class Undo:
    """Result of an undo, or of its dry run.

    Args:
        location: the checkpoint location.
        dry_run: True if nothing was changed.
        provider: short name of the provider that the query returns to: `HDFS` or `RocksDB`.
        batch_id: last committed batch.
        has_begun: True if the next batch has begun; it is repeated with the same offsets.
        size: bytes of the deleted checkpoint, or to be deleted.
    """

    location: str
    dry_run: bool
    provider: str
    batch_id: int
    has_begun: bool
    size: int


def undo_import(
    storage: Storage,
    *,
    settings: Mapping[str, str] | None = None,
    force: bool = False,
    dry_run: bool = False,
    has_ended: HasEnded = never_ended,
    clock: Clock | None = None,
) -> Undo:
    """Returns a query to the provider that its state was imported from, if it has not committed a batch since.

    The location is claimed and Spark's logs are fenced, as for a rollback. One step switches the query: the newest
    entry of the offset log gets its earlier provider. Then the imported checkpoint is deleted. After an interruption,
    the undo can be repeated; until then no query starts with spark-ckpt.

    Args:
        storage: storage of the checkpoint location.
        settings: settings of the query that begin with `spark.sql.streaming.stateStore.ckpt.`.
        force: True to proceed although a driver is running here, or may be running elsewhere without the fence of
            Spark's logs.
        dry_run: True to check everything and change nothing.
        has_ended: tells whether a run has ended although its driver's process is running.
        clock: source of time.

    Raises:
        TransferRefusedError: there is no import in place to undo, or the query has committed a batch since.
        LocationInUseError: see `force`.
        FencedError, SettingError, SparkLogFormatError, StorageError: see those classes.
    """
    clock = clock or SystemClock()
    query = read_stopped_query(storage)
    marker = _marker_of(storage, query)
    with opened_store(storage, settings, "undo", clock) as (store, _):
        store.recover()
        if not force:
            check_fenced(storage.location, store, has_ended)
        result = _result(storage, marker, query, dry_run)
        if dry_run:
            return result
        may_run = may_write(store.claims())
        store.claim()
        with fenced_logs(storage, store, marker.batch_id, clock, may_run=may_run):
            query = read_stopped_query(storage)
            _check_not_committed(query, marker)
            for batch, data in _entries(query, marker).items():
                replace_offsets(storage, batch, data)
            _drop_checkpoints(storage, store)
            storage.delete(MARKER)
        return result


def _marker_of(storage: Storage, query: StoppedQuery) -> ImportMarker:
    marker = read_marker(storage)
    if marker is None or not marker.can_be_undone:
        reason = "there is no import in place to undo"
        if marker is not None and marker.checkpoint_id is None:
            reason = "an import into this location was interrupted. Delete it: the earlier location is unchanged"
        elif marker is not None:
            reason = f"the earlier state was deleted. {_way_back(storage.location)}"
        raise TransferRefusedError(storage.location, reason)
    _check_not_committed(query, marker)
    return marker


def _check_not_committed(query: StoppedQuery, marker: ImportMarker) -> None:
    if query.batch_id != marker.batch_id:
        raise TransferRefusedError(
            query.location,
            f"the import was after batch {marker.batch_id}, and the query has committed batch {query.batch_id} since, "
            f"which the earlier state lacks. {_way_back(query.location)}",
        )


def _way_back(location: str) -> str:
    return f"The way back is: spark-ckpt export {location} NEW_LOCATION --format spark-hdfs or spark-rocksdb"


def _entries(query: StoppedQuery, marker: ImportMarker) -> dict[int, bytes]:
    """The entries of the earlier provider, the newest last: it is the switch. The batch that this query has begun since
    keeps its offsets."""
    theirs = query.with_provider(marker.provider)
    return {
        batch: marker.entries.get(batch, theirs[batch].encode())
        for batch in sorted(query.entries)
        if batch >= marker.batch_id
    }


def _drop_checkpoints(storage: Storage, store: CompletedCheckpointStore) -> None:
    """Deletes all checkpoints: those of the import, and of a batch that was not committed."""
    if store.all():
        store.keep_counting()
    for record in reversed(store.all()):
        _drop(storage, store, record)
    for tag in Tags(storage).list():
        store.check_owner()
        Tags(storage).delete(tag)
    for leftover in list_state(storage):
        store.check_owner()
        if not leftover.is_directory:
            storage.delete(in_location(leftover.path))


def _drop(storage: Storage, store: CompletedCheckpointStore, record: CheckpointRecord) -> None:
    store.check_owner()
    store.subsume(record)  # the record first: a checkpoint that is found must be whole
    path = in_location(record.metadata.path)
    storage.delete(path)
    storage.remove_empty(path.rpartition("/")[0])


def _result(storage: Storage, marker: ImportMarker, query: StoppedQuery, dry_run: bool) -> Undo:
    size = sum(leftover.size for leftover in list_state(storage))
    provider = PROVIDERS.get(marker.provider, marker.provider)
    return Undo(storage.location, dry_run, provider, query.batch_id, query.has_begun, size)
