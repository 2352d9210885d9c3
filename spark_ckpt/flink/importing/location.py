"""The location of a query that has committed one batch without input, into which state can be imported."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from spark_ckpt.checkpoint.batch import state_ids
from spark_ckpt.checkpoint.errors import StateIdMismatchError
from spark_ckpt.checkpoint.load import version_not_found
from spark_ckpt.completed import CheckpointRecord, CompletedCheckpointStore
from spark_ckpt.flink.importing.errors import FlinkImportRefusedError
from spark_ckpt.location.import_marker import MARKER, ImportMarker, read_marker
from spark_ckpt.spark_files.entries import CommitEntry, OffsetEntry
from spark_ckpt.spark_files.logs import SparkBatches, SparkLog
from spark_ckpt.state.catalog import StateCatalog, Store, open_state
from spark_ckpt.state.read import decode_merged, merged_rows
from spark_ckpt.state.views import choose_view
from spark_ckpt.storage import Storage

PROVIDER = "Flink"
"""Provider in the marker of an import that has not finished."""

FIRST = 0
"""The only batch that the query has committed."""

_HOW = (
    "Start the query with a new checkpoint location and without input, such as Kafka's startingOffsets latest, let it "
    "commit one batch, stop it, and import into that location"
)


@dataclass(frozen=True, slots=True, eq=False)
class ImportLocation:
    """The location, and its only checkpoint.

    Args:
        storage: its storage.
        record: record of the checkpoint.
        catalog: state of the checkpoint, without rows.
        offsets: entry of its batch in the offset log.
        commit: entry of its batch in the commit log.
    """

    storage: Storage
    record: CheckpointRecord
    catalog: StateCatalog
    offsets: OffsetEntry
    commit: CommitEntry

    @property
    def batch_id(self) -> int:
        """Batch of the import."""
        return FIRST + 1

    @property
    def version(self) -> int:
        """Version of the imported state."""
        return self.batch_id + 1

    def mark(self) -> None:
        """Lets no query start here until `unmark`."""
        self.storage.write_atomic(MARKER, ImportMarker(FIRST, PROVIDER, None, {}).encode())

    def unmark(self) -> None:
        """Ends `mark`."""
        self.storage.delete(MARKER)


def open_import_location(
    location: str, storage: Storage, store: CompletedCheckpointStore, *, dry_run: bool = False
) -> ImportLocation:
    """Opens a location for an import.

    Args:
        location: the checkpoint location, as given by the user.
        storage: its storage.
        store: its completed checkpoints, recovered.
        dry_run: True to change nothing. Otherwise the marker of a complete import goes.

    Raises:
        FlinkImportRefusedError: the query has committed no batch or several, or its state has rows.
        VersionNotFoundError, StateIdMismatchError: Spark's logs and the checkpoints do not belong together.
        SparkLogFormatError, StateSchemaError, StorageError: a file is damaged, or cannot be read.
        CheckpointError: the marker of an import is damaged.
    """
    log = SparkLog(storage)
    marker = read_marker(storage)
    is_repeated = marker is not None and marker.provider == PROVIDER
    batches = SparkBatches.of(log)
    if is_repeated and batches.committed == batches.started == (FIRST, FIRST + 1):
        if not dry_run:
            storage.delete(MARKER)
        raise FlinkImportRefusedError(storage.location, "the import that was interrupted is complete. Start the query")
    _check_batches(storage, batches, is_repeated)
    record = store.latest_of_version(FIRST + 1)
    if record is None:
        raise version_not_found(storage, FIRST + 1, store.all())
    catalog = open_state(location, record.id)
    offsets, commit = log.offsets(FIRST), log.commit(FIRST)
    if offsets.metadata is None:
        raise FlinkImportRefusedError(storage.location, f"offsets/{FIRST} lacks the settings of the query. {_HOW}")
    if commit.state_ids and commit.state_ids != state_ids(catalog.batch):
        raise StateIdMismatchError(
            f"{storage.location}: Spark's commit of batch {FIRST} names other state ids than checkpoint {record.id}: "
            f"the two belong to different runs. {_HOW}"
        )
    for each in catalog.stores:
        rows = sum(each.state.rows)
        if rows and not _is_start_of_global_aggregation(catalog, each):
            raise FlinkImportRefusedError(
                storage.location, f"{each.state.key} has {rows} rows of the query's own, which would be lost. {_HOW}"
            )
    return ImportLocation(storage, record, catalog, offsets, commit)


def _check_batches(storage: Storage, batches: SparkBatches, is_repeated: bool) -> None:
    if not batches.committed:
        raise FlinkImportRefusedError(storage.location, f"the query has not committed any batch yet. {_HOW}")
    if batches.committed != (FIRST,):
        reason = f"the query has committed {len(batches.committed)} batches, up to batch {batches.last_committed}"
        raise FlinkImportRefusedError(storage.location, f"{reason}; an import follows the first one. {_HOW}")
    if batches.started != (FIRST,) and not (is_repeated and batches.started == (FIRST, FIRST + 1)):
        raise FlinkImportRefusedError(storage.location, f"batch {batches.started[-1]} has begun. {_HOW}")


def _is_start_of_global_aggregation(catalog: StateCatalog, store: Store) -> bool:
    """True for the row that an aggregation without a grouping key has before its first input: zeros and nulls."""
    (family, *others) = store.families
    if others or family.key.types or store.variables:
        return False
    view = choose_view(catalog, store.state.operator_id, store.state.store)
    for _, merged in merged_rows(catalog, view):
        _, values = decode_merged(view, merged)
        for column in values.flatten():
            if not pc.all(pc.fill_null(pc.equal(column.cast("string"), "0"), True), min_count=0).as_py():
                return False
    return True
