"""Import of the keyed state of a Flink job: a query of Spark continues from it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.flink.importing.errors import FlinkImportRefusedError
from spark_ckpt.flink.importing.kafka import kafka_offsets, with_offsets
from spark_ckpt.flink.importing.location import open_import_location
from spark_ckpt.flink.importing.mapping import map_states
from spark_ckpt.flink.importing.plan import ImportPlan, encoders_of
from spark_ckpt.flink.importing.result import FlinkImport
from spark_ckpt.flink.importing.writing import ImportWriter
from spark_ckpt.flink.tables.find import find_flink_state
from spark_ckpt.location.driver_liveness import check_not_running
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.location.open_store import opened_store
from spark_ckpt.progress import Progress
from spark_ckpt.state_writing.targets import TargetKind, targets_of

_OTHERS = (TargetKind.SEEN, TargetKind.GROUP)
"""Kinds that no state of Flink goes to."""


def import_flink_savepoint(
    savepoint: str | os.PathLike[str],
    location: str | os.PathLike[str],
    *,
    id: int | None = None,  # noqa: A002  (the word of the command)
    states: Mapping[str, str] | None = None,
    ignore: Iterable[str] = (),
    key_order: Mapping[str, Sequence[str]] | None = None,
    value_order: Mapping[str, Sequence[str]] | None = None,
    keep_offsets: bool = False,
    moved: Sequence[tuple[str, str]] = (),
    allow_outside: bool = False,
    settings: Mapping[str, str] | None = None,
    force: bool = False,
    dry_run: bool = False,
    clock: Clock | None = None,
    progress: Progress = lambda done, of: None,
) -> FlinkImport:
    """Imports keyed state of a Flink job into the location of a query that has committed one batch without input.

    The state variables of the query, their types, the number of partitions and the positions of its sources are those
    of that batch. Spark's logs get one more batch, without input, with a checkpoint of the imported state. No Spark and
    no Flink is needed. The rows are read back and compared before the query can see them. If the last step is
    interrupted, no query starts there until the import is repeated.

    Args:
        savepoint: a checkpoint, savepoint or job directory of Flink, as a path or URL.
        location: checkpoint location of the query.
        id: the checkpoint of Flink; by default the newest.
        states: state variable of each state whose name differs, both with their operator where that is needed to tell
            them apart: `{"my-uid/counts": "0/n"}`.
        ignore: states that are not imported.
        key_order: for a state, fields of Flink's keys in the order of the query's.
        value_order: for a state, fields of Flink's values in the order of the query's.
        keep_offsets: True to let the query continue where it stands, not at the positions of Flink's Kafka sources.
        moved: pairs of old and new directories of files of a Flink checkpoint that was moved.
        allow_outside: True to open files outside the Flink checkpoint's own storage.
        settings: settings of the query that begin with `spark.sql.streaming.stateStore.ckpt.`; required if its
            completed checkpoints are in ZooKeeper.
        force: True to proceed although the driver's process is running.
        dry_run: True to check types and names, and write nothing.
        clock: source of time.
        progress: called with the number of steps done and the total.

    Raises:
        FlinkImportRefusedError: the location is not that of such a query, or the savepoint not one of Flink.
        FlinkStateNotMappedError: a state with rows has no state variable, or none can be found for it.
        FlinkTypeError: the types of a state and its variable do not fit.
        FlinkImportRowError: a value does not fit.
        FlinkImportCheckError: the written rows differ from Flink's.
        KeyGroupTooLargeError: a key group has more than 1 GiB.
        UnsupportedFlinkStateError: part of Flink's state cannot be read.
        LocationInUseError: the driver's process is running on this machine.
        SparkCkptError: a file is damaged, or cannot be read or written. Until the last step the location has no more
            than orphaned files.
    """
    clock = clock or SystemClock()
    source, target = os.fspath(savepoint), os.fspath(location)
    flink = find_flink_state(source, id, moved=moved, allow_outside=allow_outside)
    if flink is None:
        CheckpointLocation.open(source).of_query()
        raise FlinkImportRefusedError(source, "it belongs to a query of Spark. Import its state: spark-ckpt import")
    flink.require_whole()
    storage = CheckpointLocation.open(target).of_query()
    with opened_store(storage, settings, "import-flink", clock) as (store, owner):
        store.recover()
        if not force:
            check_not_running(storage.location, store)
        import_location = open_import_location(target, storage, store, dry_run=dry_run)
        targets = [target for target in targets_of(import_location.catalog) if target.kind not in _OTHERS]
        mapping = map_states(flink, targets, states or {}, set(ignore))
        encoders = encoders_of(flink, mapping, key_order or {}, value_order or {})
        found = kafka_offsets(flink)
        continues = found is not None and not keep_offsets
        offsets, continues = (
            with_offsets(import_location.offsets, found) if found and continues else (import_location.offsets, False)
        )
        plan = ImportPlan(source, flink, import_location, mapping, encoders, found, offsets, continues)
        return plan.result() if dry_run else ImportWriter(plan, store, owner, clock, progress).run()
