"""Kills at every step of an import, an undo and an export: the old or the new state is whole, and a repeat finishes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from spark_ckpt.config import PROVIDER_CLASS, PROVIDER_KEY
from spark_ckpt.migrate.exporting import UNFINISHED, export_state
from spark_ckpt.migrate.importing import import_state
from spark_ckpt.migrate.session_jobs import SessionStateJobs
from spark_ckpt.migrate.stopped_query import ROCKSDB_PROVIDER, read_stopped_query
from spark_ckpt.migrate.undo import undo_import
from spark_ckpt.operations.restore import as_hadoop_writes
from spark_ckpt.spark_files.logs import BatchLog, SparkLog
from spark_ckpt.storage import LocalStorage
from tests.migrate.queries import BEFORE, PROVIDERS, drop_commit, offer, run
from tests.migrate.recorded import RecordedJobs
from tests.migrate.steps import Killed, Steps, files_of
from tests.support.invariants import assert_invariants

OURS = {PROVIDER_KEY: PROVIDER_CLASS}


def stopped(spark: SparkSession, folder: Path, conf: dict[str, str]) -> tuple[Path, RecordedJobs]:
    """The location of a query whose next batch has begun, and its jobs."""
    offer(folder, BEFORE)
    location = folder / "location"
    run(spark, "count", folder, location, conf)
    drop_commit(location)
    return location, RecordedJobs(SessionStateJobs(spark, as_hadoop_writes(str(location))), folder / "recorded")


def each_step(folder: Path, origin: Path, act: Callable[[Steps, Path], object]) -> Iterator[tuple[Path, bool]]:
    """A copy of a location after a kill before each change, and at last one without a kill.

    Args:
        folder: place of the copies.
        origin: the location.
        act: changes the copy, through storages of the steps.

    Yields:
        The copy, and whether the process was killed.
    """
    location, last, killed = folder / "copy", 0, True
    while killed:
        shutil.rmtree(location, ignore_errors=True)
        shutil.rmtree(folder / "new", ignore_errors=True)
        shutil.copytree(origin, location)
        try:
            act(Steps(last), location)
            killed = False
        except Killed:
            last += 1
        yield location, killed
    assert last > 5


def is_ours(location: Path) -> bool:
    """True if a start uses our provider; then the state must be whole, and otherwise the earlier one."""
    storage = LocalStorage(location)
    ours = read_stopped_query(storage).provider == PROVIDER_CLASS
    if ours:
        assert_invariants(location, orphans=True)
    return ours


def test_an_import_in_place_is_all_or_nothing(spark: SparkSession, tmp_path: Path) -> None:
    origin, jobs = stopped(spark, tmp_path, dict(PROVIDERS["ids"]))
    before = files_of(origin)
    newest = f"offsets/{read_stopped_query(LocalStorage(origin)).newest}"
    switched = []

    def act(steps: Steps, location: Path) -> None:
        import_state(steps.storage(location), jobs, force=True)

    for location, _ in each_step(tmp_path, origin, act):
        switched.append(is_ours(location))
        after = files_of(location, without_ckpt=True)
        changed = {name for name in before if after[name] != before[name]}
        assert set(after) == set(before)
        assert (newest in changed) == switched[-1]
        assert changed <= {newest, f"offsets/{read_stopped_query(LocalStorage(location)).batch_id}"}
        if not switched[-1]:
            import_state(LocalStorage(location), jobs, force=True)
        assert is_ours(location)
        undo_import(LocalStorage(location))
        assert files_of(location, without_ckpt=True) == before
    assert switched == sorted(switched) and switched[-1] and not switched[0]


def test_an_import_into_a_new_location_ends_with_its_commit(spark: SparkSession, tmp_path: Path) -> None:
    origin, jobs = stopped(spark, tmp_path, dict(PROVIDERS["changelog"]))
    before, new = files_of(origin), tmp_path / "new"
    batch = read_stopped_query(LocalStorage(origin)).batch_id
    complete = []

    def act(steps: Steps, location: Path) -> None:
        import_state(steps.storage(location), jobs, steps.storage(new), force=True)

    for location, _ in each_step(tmp_path, origin, act):
        assert files_of(location) == before
        complete.append(batch in SparkLog(LocalStorage(new)).batches(BatchLog.COMMITS))
        if complete[-1]:
            assert is_ours(new)
        elif new.exists():
            assert not (new / "offsets").exists() or read_stopped_offsets(new) == PROVIDER_CLASS
    assert complete == sorted(complete) and complete[-1] and not complete[0]


def read_stopped_offsets(location: Path) -> str | None:
    """The provider that a start of an incomplete location uses."""
    log = SparkLog(LocalStorage(location))
    batches = log.batches(BatchLog.OFFSETS)
    return log.offsets(batches[-1]).conf.get(PROVIDER_KEY) if batches else PROVIDER_CLASS


def test_an_undo_is_all_or_nothing(spark: SparkSession, tmp_path: Path) -> None:
    origin, jobs = stopped(spark, tmp_path, dict(PROVIDERS["ids"]))
    before = files_of(origin)
    import_state(LocalStorage(origin), jobs, force=True)
    ours = files_of(origin, without_ckpt=True)
    returned = []

    def act(steps: Steps, location: Path) -> None:
        undo_import(steps.storage(location))

    for location, killed in each_step(tmp_path, origin, act):
        returned.append(not is_ours(location))
        after = files_of(location, without_ckpt=True)
        if returned[-1]:
            assert after == before
        else:
            assert set(after) == set(ours)
        if killed and (location / "ckpt/import.json").exists():
            undo_import(LocalStorage(location))
        assert files_of(location, without_ckpt=True) == before
        assert read_stopped_query(LocalStorage(location)).provider == ROCKSDB_PROVIDER
        assert_invariants(location)
    assert returned == sorted(returned) and returned[-1] and not returned[0]


def test_an_export_ends_with_the_query_id(spark: SparkSession, tmp_path: Path) -> None:
    origin, jobs = stopped(spark, tmp_path, {**OURS, "spark.sql.streaming.stateStore.checkpointFormatVersion": "2"})
    before, new = files_of(origin), tmp_path / "new"
    complete = []

    def act(steps: Steps, location: Path) -> None:
        export_state(steps.storage(location), steps.storage(new), jobs, "spark-rocksdb", force=True)

    for location, _ in each_step(tmp_path, origin, act):
        assert files_of(location) == before
        written = (new / "metadata").read_bytes() if (new / "metadata").exists() else None
        complete.append(written == before["metadata"])
        if not complete[-1]:
            # Nothing, or a text that Spark fails to read: no query starts in a half-written location.
            assert written == UNFINISHED or not new.exists() or files_of(new) == {}
        else:
            assert read_stopped_query(LocalStorage(new)).provider == ROCKSDB_PROVIDER
    assert complete == sorted(complete) and complete[-1] and not complete[0]
