"""The state of queries that began with a provider of Spark comes over exactly, and can return."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from spark_ckpt.config import PROVIDER_CLASS, PROVIDER_KEY
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.location.import_marker import MARKER, ImportMarker
from spark_ckpt.migrate import earlier_state, import_location, undo_import_of_location
from spark_ckpt.migrate.errors import QueryMayRunError, StateTransferError, TransferRefusedError
from spark_ckpt.migrate.importing import import_state
from spark_ckpt.migrate.session_jobs import SessionStateJobs
from spark_ckpt.migrate.state_jobs import ImportedPartition, SourceState
from spark_ckpt.migrate.stopped_query import HDFS_PROVIDER, read_stopped_query
from spark_ckpt.operations.gc import collect_garbage
from spark_ckpt.operations.restore import as_hadoop_writes
from spark_ckpt.progress import Progress
from spark_ckpt.storage import resolve
from tests.docs.pages import DOCS, blocks
from tests.migrate.queries import ALL, BEFORE, PROVIDERS, QUERIES, drop_commit, offer, ours_like, run, stop_query
from tests.migrate.steps import files_of
from tests.support.invariants import assert_invariants
from tests.support.spark_version import MINOR, order

OURS = {PROVIDER_KEY: PROVIDER_CLASS}


@pytest.mark.parametrize(
    ("name", "began_with", "in_place", "has_begun"),
    [
        pytest.param("windows", "hdfs", True, False, marks=pytest.mark.long),
        pytest.param("outer-join", "hdfs", False, True, marks=pytest.mark.long),
        pytest.param("limit", "hdfs", False, False, marks=pytest.mark.long),
        pytest.param("within-watermark", "rocksdb", True, False, marks=pytest.mark.long),
        pytest.param("sessions", "changelog", True, True, marks=pytest.mark.long),
        pytest.param("chain", "changelog", False, False, marks=pytest.mark.long),
        pytest.param("windows", "ids", False, True, marks=pytest.mark.long),
        pytest.param("outer-join", "ids", True, False, marks=pytest.mark.long),
        pytest.param("outer-join-4", "changelog", True, False, marks=pytest.mark.core),
        ("processor", "changelog", True, False),
    ],
)
def test_later_batches_are_equal(
    name: str, began_with: str, in_place: bool, has_begun: bool, spark: SparkSession, tmp_path: Path
) -> None:
    if order(MINOR) < order(QUERIES[name].since):
        pytest.skip(f"Spark runs this query since {QUERIES[name].since}, this is {MINOR}")
    location, kept = stop_query(spark, tmp_path, name, began_with), tmp_path / "kept"
    if has_begun:
        drop_commit(location)
    shutil.copytree(location, kept)
    new = None if in_place else tmp_path / "new"
    batch = read_stopped_query(resolve(str(location))).batch_id
    committed = (location / "commits" / str(batch)).read_text()

    imported = import_location(spark, str(location), None if new is None else str(new), force=True)

    assert imported.checkpoint_id is not None
    assert sum(store.rows or 0 for store in imported.stores) > 0
    assert (imported.checkpoint_format == 2) == (began_with == "ids")
    assert (imported.batch_id, imported.has_begun) == (batch, has_begun)
    assert ((new or location) / "commits" / str(batch)).read_text() == committed
    assert (location / MARKER).exists() == in_place
    offer(tmp_path, ALL)
    expected = run(spark, name, tmp_path, kept, PROVIDERS[began_with])
    assert run(spark, name, tmp_path, new or location, ours_like(began_with)) == expected
    assert min(expected) == batch + 1
    assert sum(map(len, expected.values())) > 0 or not QUERIES[name].has_rows_later
    assert read_stopped_query(resolve(str(new or location))).provider == PROVIDER_CLASS
    assert_invariants(new or location)


class WithoutRows(SessionStateJobs):
    """Jobs that lose all rows."""

    def import_state(
        self, source: SourceState, target: str, key_group_factors: Sequence[int], progress: Progress
    ) -> Mapping[StoreKey, Sequence[ImportedPartition]]:
        imported = super().import_state(source, target, key_group_factors, progress)
        groups, offsets = np.empty(0, np.uint32), np.empty(0, np.int64)
        return {
            key: [replace(part, rows=0, path=None, size=0, key_groups=groups, offsets=offsets) for part in parts]
            for key, parts in imported.items()
        }


@pytest.mark.parametrize(
    ("name", "began_with"),
    [
        ("count", "hdfs"),
        pytest.param("outer-join", "hdfs", marks=pytest.mark.long),
        pytest.param("sessions", "hdfs", marks=pytest.mark.long),
        pytest.param("pandas-state", "hdfs", marks=pytest.mark.long),
        pytest.param("scala-processor", "changelog", marks=pytest.mark.long),
        pytest.param("scala-processor-ttl", "changelog", marks=pytest.mark.long),
        pytest.param("flat-map-groups", "hdfs", marks=pytest.mark.long),
        pytest.param("map-groups", "hdfs", marks=pytest.mark.long),
    ],
)
def test_the_comparison_sees_lost_rows(
    name: str, began_with: str, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if QUERIES[name].is_scala:
        request.getfixturevalue("transfer_queries")
    location, kept = stop_query(spark, tmp_path, name, began_with), tmp_path / "kept"
    shutil.copytree(location, kept)
    import_state(resolve(str(location)), WithoutRows(spark, as_hadoop_writes(str(location))), force=True)
    offer(tmp_path, ALL)
    assert run(spark, name, tmp_path, location, OURS) != run(spark, name, tmp_path, kept, PROVIDERS[began_with])


@pytest.fixture
def stopped(spark: SparkSession, tmp_path: Path) -> Path:
    """The location of a query with Spark's default provider."""
    return stop_query(spark, tmp_path, "windows", "hdfs")


def test_a_dry_run_writes_nothing(stopped: Path, spark: SparkSession) -> None:
    before = sorted(stopped.rglob("*"))
    planned = import_location(spark, str(stopped), dry_run=True, force=True)
    assert planned.checkpoint_id is None
    assert [(store.name, store.partitions, store.rows) for store in planned.stores] == [("stateStoreSave", 3, None)]
    assert sorted(stopped.rglob("*")) == before


def test_a_query_that_has_just_written_is_refused(stopped: Path, spark: SparkSession) -> None:
    with pytest.raises(QueryMayRunError, match="may be running"):
        import_location(spark, str(stopped))
    assert not (stopped / "ckpt").exists()


def test_an_imported_location_is_refused(stopped: Path, spark: SparkSession) -> None:
    import_location(spark, str(stopped), force=True)
    with pytest.raises(TransferRefusedError, match="belongs to spark-ckpt already"):
        import_location(spark, str(stopped), force=True)


def flipped(data: bytes) -> bytes:
    """The content with one bit of its middle flipped."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]


@pytest.mark.parametrize(
    ("began_with", "pattern", "damage", "kind"),
    [
        pytest.param("hdfs", "state/0/1/*.delta", lambda data: data[:40], "SourceStateError", marks=pytest.mark.long),
        ("hdfs", "state/0/1/*.delta", flipped, "SourceStateError"),
        pytest.param("hdfs", "state/0/1/*.delta", None, "SourceStateError", marks=pytest.mark.long),
        ("rocksdb", "state/0/1/SSTs/*.sst", None, "SourceStateError"),
        pytest.param(
            "changelog", "state/0/1/*.changelog", lambda data: data[:30], "SourceStateError", marks=pytest.mark.long
        ),
        pytest.param(
            "hdfs", "state/0/0/_metadata/schema", lambda data: b"a schema", "StateSchemaError", marks=pytest.mark.long
        ),
        ("hdfs", "state/0/_metadata/metadata", lambda data: data[:9], "StateSchemaError"),
    ],
    ids=["truncated", "flipped", "missing", "missing-sst", "truncated-changelog", "schema", "metadata"],
)
def test_damage_leaves_the_query_as_it_was(
    began_with: str,
    pattern: str,
    damage: Callable[[bytes], bytes] | None,
    kind: str,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    location = stop_query(spark, tmp_path, "windows", began_with)
    damaged = [path for path in location.glob(pattern) if path.is_file()] or list(
        location.glob("state/0/0/_metadata/*")
    )
    for path in damaged:
        data = path.read_bytes()
        path.unlink()
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
        if damage is not None:
            path.write_bytes(damage(data))
    assert damaged
    before = files_of(location, without_ckpt=True)
    with pytest.raises(StateTransferError) as failed:
        import_location(spark, str(location), force=True)
    assert failed.value.kind == kind
    assert str(location) in str(failed.value)
    assert files_of(location, without_ckpt=True) == before


def test_a_start_during_an_import_names_it(stopped: Path, spark: SparkSession, tmp_path: Path) -> None:
    new = tmp_path / "new"
    import_location(spark, str(stopped), str(new), force=True)
    shutil.rmtree(new / "ckpt" / "completed")
    for commit in (new / "commits").iterdir():
        commit.unlink()
    marker = ImportMarker(read_stopped_query(resolve(str(stopped))).batch_id, HDFS_PROVIDER, None, {})
    resolve(str(new)).write_atomic(MARKER, marker.encode())
    with pytest.raises(StreamingQueryException, match="an import into this location was interrupted"):
        run(spark, "windows", tmp_path, new, OURS)


@pytest.mark.long
@pytest.mark.parametrize("has_begun", [False, True], ids=["committed", "begun"])
def test_an_undone_import_continues_with_the_earlier_provider(
    has_begun: bool, spark: SparkSession, tmp_path: Path
) -> None:
    location, kept = stop_query(spark, tmp_path, "outer-join", "ids"), tmp_path / "kept"
    if has_begun:
        drop_commit(location)
    shutil.copytree(location, kept)
    before = files_of(location)
    import_location(spark, str(location), force=True)

    undone = undo_import_of_location(spark, str(location))

    assert (undone.provider, undone.has_begun) == ("RocksDB", has_begun)
    assert files_of(location, without_ckpt=True) == before
    assert not (location / MARKER).exists()
    assert_invariants(location)
    offer(tmp_path, ALL)
    expected = run(spark, "outer-join", tmp_path, kept, PROVIDERS["ids"])
    assert run(spark, "outer-join", tmp_path, location, PROVIDERS["ids"]) == expected
    import_location(spark, str(location), force=True)
    assert read_stopped_query(resolve(str(location))).provider == PROVIDER_CLASS


@pytest.mark.long
def test_a_batch_that_ours_has_begun_is_repeated_after_an_undo(spark: SparkSession, tmp_path: Path) -> None:
    location, kept = stop_query(spark, tmp_path, "count", "hdfs"), tmp_path / "kept"
    shutil.copytree(location, kept)
    import_location(spark, str(location), force=True)
    offer(tmp_path, BEFORE + 1)
    run(spark, "count", tmp_path, location, {**OURS, "spark.sql.streaming.noDataMicroBatches.enabled": "false"})
    drop_commit(location)

    assert undo_import_of_location(spark, str(location)).has_begun

    offer(tmp_path, ALL)
    expected = run(spark, "count", tmp_path, kept, PROVIDERS["hdfs"])
    assert run(spark, "count", tmp_path, location, PROVIDERS["hdfs"]) == expected


def test_a_later_batch_ends_the_undo_and_frees_the_earlier_state(spark: SparkSession, tmp_path: Path) -> None:
    location = stop_query(spark, tmp_path, "sessions", "changelog")
    import_location(spark, str(location), force=True)
    assert collect_garbage(resolve(str(location)), earlier_states=earlier_state).earlier is None
    offer(tmp_path, BEFORE + 1)
    run(spark, "sessions", tmp_path, location, OURS)
    with pytest.raises(TransferRefusedError, match=r"has committed batch \d+ since.*spark-ckpt export"):
        undo_import_of_location(spark, str(location))
    theirs = [path for path in (location / "state/0/1").rglob("*") if path.is_file()]
    assert theirs
    planned = collect_garbage(resolve(str(location)), dry_run=True, earlier_states=earlier_state).earlier
    assert planned is not None and planned.provider == "RocksDB" and len(planned.files) >= len(theirs)
    assert collect_garbage(resolve(str(location)), earlier_states=earlier_state).earlier == planned
    assert [path for path in (location / "state/0/1").rglob("*") if path.is_file()] == []
    assert not (location / MARKER).exists()
    assert collect_garbage(resolve(str(location)), earlier_states=earlier_state).earlier is None
    offer(tmp_path, ALL)
    assert run(spark, "sessions", tmp_path, location, OURS)
    store = spark.read.format("statestore").load(str(location))
    assert store.count() > 0


def test_as_the_page_says(stopped: Path, spark: SparkSession) -> None:
    for path in stopped.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    (block,) = blocks(DOCS / "moving.md", "python")
    names: dict[str, Any] = {"spark": spark}
    exec(block.replace("/checkpoints/orders", str(stopped)), names)
    assert names["planned"].checkpoint_id is None
    assert names["imported"].checkpoint_id is not None
