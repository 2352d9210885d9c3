"""The state of queries that began with a provider of Spark comes over exactly."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_ckpt.config import PROVIDER_CLASS, PROVIDER_KEY
from spark_ckpt.operations.errors import ImportRefusedError, QueryMayRunError, StateTransferError
from spark_ckpt.operations.import_marker import MARKER, ImportMarker
from spark_ckpt.operations.import_plan import HDFS_PROVIDER, ROCKSDB_PROVIDER, read_stopped_query
from spark_ckpt.storage import resolve
from spark_ckpt.transfer import import_location
from tests.docs.pages import DOCS, blocks

pytestmark = pytest.mark.core

Rows = Mapping[int, list[str]]
BEFORE, ALL = 4, 7
"""Files of input before the import, and in all."""

SPARKS = {
    "hdfs": {PROVIDER_KEY: HDFS_PROVIDER},
    "rocksdb": {PROVIDER_KEY: ROCKSDB_PROVIDER},
    "changelog": {
        PROVIDER_KEY: ROCKSDB_PROVIDER,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    },
    "ids": {
        PROVIDER_KEY: ROCKSDB_PROVIDER,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    },
}
"""Settings of Spark's providers."""


class Query:
    """A query over files, run until it has read all of them."""

    def __init__(self, spark: SparkSession, folder: Path, make: Callable[[DataFrame, DataFrame], DataFrame]) -> None:
        self.spark = spark
        self.folder = folder
        self.make = make
        self.rng = random.Random(42)
        self.files = 0

    def offer(self, files: int) -> None:
        """Makes input files appear, up to a number."""
        for number in range(self.files, files):
            for side in ("left", "right"):
                lines = []
                for _ in range(40):
                    second = 600 * number + self.rng.randrange(900)
                    stamp = f"2024-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000Z"
                    lines.append(json.dumps({"id": self.rng.randrange(90), "ts": stamp, "v": self.rng.randrange(99)}))
                (self.folder / side).mkdir(exist_ok=True)
                (self.folder / side / f"{number:03}.json").write_text("\n".join(lines))
        self.files = max(self.files, files)

    def run(self, location: Path, conf: Mapping[str, str]) -> Rows:
        """Reads the files that are there; returns the output rows of each batch."""
        rows: dict[int, list[str]] = {}

        def collect(batch: DataFrame, batch_id: int) -> None:
            rows[batch_id] = sorted(str(row) for row in batch.collect())

        session = self.spark.newSession()
        for key, value in conf.items():
            session.conf.set(key, value)
        sides = [
            session.readStream.schema("id long, ts timestamp, v long")
            .option("maxFilesPerTrigger", 1)
            .json(str(self.folder / side))
            .withWatermark("ts", "5 minutes")
            for side in ("left", "right")
        ]
        query = (
            self.make(*sides)
            .writeStream.outputMode("append")
            .foreachBatch(collect)
            .option("checkpointLocation", str(location))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(300)
        return rows


def windows(left: DataFrame, _: DataFrame) -> DataFrame:
    return left.groupBy(f.window("ts", "7 minutes"), "id").agg(f.sum("v").alias("s"))


def sessions(left: DataFrame, _: DataFrame) -> DataFrame:
    return left.groupBy(f.session_window("ts", "2 minutes"), "id").agg(f.count("*").alias("n"))


def within_watermark(left: DataFrame, _: DataFrame) -> DataFrame:
    return left.dropDuplicatesWithinWatermark(["id"]).select("id", "ts")


def full_outer(left: DataFrame, right: DataFrame) -> DataFrame:
    condition = "l.id = r.id and r.ts between l.ts - interval 6 minutes and l.ts + interval 6 minutes"
    return left.alias("l").join(right.alias("r"), f.expr(condition), "full_outer").select("l.*", "r.*")


def limit(left: DataFrame, _: DataFrame) -> DataFrame:
    return left.select("id").limit(200)


def counts_of_counts(left: DataFrame, _: DataFrame) -> DataFrame:
    per_id = left.groupBy(f.window("ts", "3 minutes"), "id").agg(f.count("*").alias("n"))
    return per_id.groupBy(f.window(f.window_time("window"), "12 minutes")).agg(f.sum("n").alias("n"))


@pytest.mark.parametrize(
    ("make", "began_with", "in_place"),
    [
        (windows, "hdfs", True),
        (full_outer, "hdfs", False),
        (limit, "hdfs", False),
        (within_watermark, "rocksdb", True),
        (sessions, "changelog", True),
        (counts_of_counts, "changelog", False),
        (windows, "ids", False),
        (full_outer, "ids", True),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_later_batches_are_equal(
    make: Callable[[DataFrame, DataFrame], DataFrame],
    began_with: str,
    in_place: bool,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    query = Query(spark, tmp_path, make)
    theirs, ours, kept = SPARKS[began_with], {PROVIDER_KEY: PROVIDER_CLASS}, tmp_path / "kept"
    location = tmp_path / "location"
    query.offer(BEFORE)
    query.run(location, theirs)
    shutil.copytree(location, kept)
    new = None if in_place else tmp_path / "new"
    commit = max((location / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    committed = commit.read_text()

    imported = import_location(spark, str(location), None if new is None else str(new), force=True)

    assert imported.checkpoint_id is not None
    assert sum(store.rows or 0 for store in imported.stores) > 0
    assert (imported.checkpoint_format == 2) == (began_with == "ids")
    assert ((new or location) / "commits" / commit.name).read_text() == committed
    assert (location / MARKER).exists() == in_place
    query.offer(ALL)
    expected = query.run(kept, theirs)
    version = {key: value for key, value in theirs.items() if key.endswith("checkpointFormatVersion")}
    assert query.run(new or location, {**ours, **version}) == expected
    assert sum(map(len, expected.values())) > 0 or make is limit
    assert read_stopped_query(resolve(str(new or location))).provider == PROVIDER_CLASS


@pytest.fixture
def stopped(spark: SparkSession, tmp_path: Path) -> Path:
    """The location of a query with Spark's default provider."""
    query = Query(spark, tmp_path, windows)
    query.offer(2)
    query.run(tmp_path / "location", SPARKS["hdfs"])
    return tmp_path / "location"


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
    with pytest.raises(ImportRefusedError, match="belongs to spark-ckpt already"):
        import_location(spark, str(stopped), force=True)


def test_a_truncated_file_leaves_the_query_as_it_was(stopped: Path, spark: SparkSession) -> None:
    (delta, *_) = sorted(path for path in (stopped / "state/0").rglob("*.delta") if path.stat().st_size > 60)
    delta.write_bytes(delta.read_bytes()[:40])
    (delta.parent / f".{delta.name}.crc").unlink()
    offsets = {path.name: path.read_bytes() for path in (stopped / "offsets").iterdir()}
    with pytest.raises(StateTransferError, match=r"partition \d: the state of batch \d+ cannot be read") as failed:
        import_location(spark, str(stopped), force=True)
    assert failed.value.kind == "SourceStateError"
    assert {path.name: path.read_bytes() for path in (stopped / "offsets").iterdir()} == offsets


def test_a_start_during_an_import_names_it(stopped: Path, spark: SparkSession, tmp_path: Path) -> None:
    new = tmp_path / "new"
    import_location(spark, str(stopped), str(new), force=True)
    shutil.rmtree(new / "ckpt" / "completed")
    for commit in (new / "commits").iterdir():
        commit.unlink()
    marker = ImportMarker(read_stopped_query(resolve(str(stopped))).batch_id, HDFS_PROVIDER, None, {})
    resolve(str(new)).write_atomic(MARKER, marker.encode())
    with pytest.raises(StreamingQueryException, match="an import into this location was interrupted"):
        Query(spark, tmp_path, windows).run(new, {PROVIDER_KEY: PROVIDER_CLASS})


def test_as_the_page_says(stopped: Path, spark: SparkSession) -> None:
    for path in stopped.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    (block,) = blocks(DOCS / "moving.md", "python")
    names: dict[str, Any] = {"spark": spark}
    exec(block.replace("/checkpoints/orders", str(stopped)), names)
    assert names["planned"].checkpoint_id is None
    assert names["imported"].checkpoint_id is not None
