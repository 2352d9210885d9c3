"""The state of queries with spark-ckpt goes to a provider of Spark exactly."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from spark_ckpt.config import PROVIDER_CLASS, PROVIDER_KEY
from spark_ckpt.migrate import export_location, import_location
from spark_ckpt.migrate.errors import TransferRefusedError
from spark_ckpt.migrate.exporting import UNFINISHED
from spark_ckpt.migrate.stopped_query import read_stopped_query
from spark_ckpt.operations.errors import TargetNotEmptyError
from spark_ckpt.operations.rescale import rescale
from spark_ckpt.storage import resolve
from tests.migrate.queries import ALL, BEFORE, FORMAT, PROVIDERS, QUERIES, offer, run, state_format
from tests.migrate.steps import files_of
from tests.support.spark_version import MINOR, order

OURS = {PROVIDER_KEY: PROVIDER_CLASS}
IDS = {**OURS, FORMAT: "2"}


@pytest.mark.parametrize(
    ("name", "ours", "goes_to"),
    [
        pytest.param("windows", OURS, "hdfs", marks=pytest.mark.long),
        pytest.param("outer-join", OURS, "hdfs", marks=pytest.mark.long),
        pytest.param("sessions", OURS, "rocksdb", marks=pytest.mark.long),
        pytest.param("limit", OURS, "hdfs", marks=pytest.mark.long),
        pytest.param("chain", OURS, "changelog", marks=pytest.mark.long),
        pytest.param("count", IDS, "ids", marks=pytest.mark.long),
        pytest.param("outer-join", IDS, "ids", marks=pytest.mark.long),
        pytest.param("count", IDS, "hdfs", marks=pytest.mark.long),
        pytest.param("outer-join-4", OURS, "changelog", marks=pytest.mark.long),
        pytest.param("processor", OURS, "changelog", marks=pytest.mark.long),
        ("processor", IDS, "ids"),
    ],
    ids=lambda value: ("ids-on" if FORMAT in value else "ids-off") if isinstance(value, dict) else value,
)
def test_later_batches_are_equal(
    name: str, ours: dict[str, str], goes_to: str, spark: SparkSession, tmp_path: Path
) -> None:
    if order(MINOR) < order(QUERIES[name].since):
        pytest.skip(f"Spark runs this query since {QUERIES[name].since}, this is {MINOR}")
    location, new = tmp_path / "location", tmp_path / "new"
    offer(tmp_path, BEFORE)
    run(spark, name, tmp_path, location, ours)
    before = files_of(location)

    exported = export_location(spark, str(location), str(new), state_format(goes_to))

    assert files_of(location) == before
    assert exported.checkpoint_format == (2 if goes_to == "ids" else 1)
    assert sum(store.rows or 0 for store in exported.stores) > 0
    assert sum(rows or 0 for store in exported.stores for rows in store.families.values()) > 0
    offer(tmp_path, ALL)
    expected = run(spark, name, tmp_path, location, ours)
    assert run(spark, name, tmp_path, new, PROVIDERS[goes_to]) == expected
    assert sum(map(len, expected.values())) > 0 or not QUERIES[name].has_rows_later
    assert read_stopped_query(resolve(str(new))).provider == PROVIDERS[goes_to][PROVIDER_KEY]
    assert not (new / "ckpt").exists()


@pytest.mark.long
def test_there_and_back_again(spark: SparkSession, tmp_path: Path) -> None:
    location, kept = tmp_path / "location", tmp_path / "kept"
    offer(tmp_path, BEFORE)
    run(spark, "windows", tmp_path, location, PROVIDERS["hdfs"])
    shutil.copytree(location, kept)
    import_location(spark, str(location), force=True)
    export_location(spark, str(location), str(tmp_path / "new"), "spark-rocksdb")
    offer(tmp_path, ALL)
    expected = run(spark, "windows", tmp_path, kept, PROVIDERS["hdfs"])
    assert run(spark, "windows", tmp_path, tmp_path / "new", PROVIDERS["changelog"]) == expected


def test_a_rescaled_query_has_its_new_partitions(spark: SparkSession, tmp_path: Path) -> None:
    location, new = tmp_path / "location", tmp_path / "new"
    offer(tmp_path, BEFORE)
    run(spark, "count", tmp_path, location, OURS)
    rescale(resolve(str(location)), 2, force=True)
    exported = export_location(spark, str(location), str(new), "spark-hdfs")
    assert [store.partitions for store in exported.stores] == [2]
    offer(tmp_path, ALL)
    expected = run(spark, "count", tmp_path, location, OURS)
    assert run(spark, "count", tmp_path, new, PROVIDERS["hdfs"]) == expected
    assert spark.read.format("statestore").load(str(new)).count() > 0


@pytest.fixture
def stopped(spark: SparkSession, tmp_path: Path) -> Path:
    """The location of a query with spark-ckpt."""
    offer(tmp_path, BEFORE)
    run(spark, "count", tmp_path, tmp_path / "location", OURS)
    return tmp_path / "location"


def test_a_dry_run_writes_nothing(stopped: Path, spark: SparkSession, tmp_path: Path) -> None:
    planned = export_location(spark, str(stopped), str(tmp_path / "new"), "spark-hdfs", dry_run=True)
    assert planned.dry_run and planned.stores[0].rows
    assert not (tmp_path / "new").exists()


def test_a_used_location_is_refused(stopped: Path, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "file").touch()
    with pytest.raises(TargetNotEmptyError):
        export_location(spark, str(stopped), str(tmp_path / "new"), "spark-hdfs")


def test_state_of_spark_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    offer(tmp_path, BEFORE)
    run(spark, "count", tmp_path, tmp_path / "location", PROVIDERS["hdfs"])
    with pytest.raises(TransferRefusedError, match=r"belongs to .*HDFSBackedStateStoreProvider"):
        export_location(spark, str(tmp_path / "location"), str(tmp_path / "new"), "spark-hdfs")


def test_hdfs_has_no_column_families(spark: SparkSession, tmp_path: Path) -> None:
    offer(tmp_path, BEFORE)
    run(spark, "processor", tmp_path, tmp_path / "location", OURS)
    with pytest.raises(TransferRefusedError, match=r"column families.*--format spark-rocksdb"):
        export_location(spark, str(tmp_path / "location"), str(tmp_path / "new"), "spark-hdfs")


def test_no_query_starts_on_an_unfinished_export(stopped: Path, spark: SparkSession, tmp_path: Path) -> None:
    new = tmp_path / "new"
    export_location(spark, str(stopped), str(new), "spark-hdfs")
    (new / "metadata").write_bytes(UNFINISHED)
    (new / ".metadata.crc").unlink(missing_ok=True)
    for conf in (PROVIDERS["hdfs"], OURS):
        with pytest.raises(Exception, match=r"A spark-ckpt export|Unrecognized token 'A'") as failed:
            run(spark, "count", tmp_path, new, conf)
        assert not isinstance(failed.value, StreamingQueryException)  # before Spark reads anything else
