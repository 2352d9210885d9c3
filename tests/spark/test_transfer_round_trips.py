"""Queries that begin with a provider of Spark, move in, and move out: each batch equals that of a query that stays."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from spark_ckpt.migrate import export_location, import_location
from tests.migrate.queries import (
    ALL,
    BEFORE,
    OURS,
    PROVIDER,
    PROVIDERS,
    QUERIES,
    drop_commit,
    offer,
    ours_like,
    run,
    state_format,
    stop_query,
)
from tests.support.spark_version import MINOR, order, since

MIDDLE = BEFORE + 1
"""Files of input before the export."""

CHECKSUMS = ("hdfs-checksums", "rocksdb-checksums", "checksums")
CODECS = [name for name in PROVIDERS if name.endswith(("-lzf", "-snappy", "-zstd", "-none"))]

LONG = pytest.mark.long


@pytest.mark.parametrize(
    ("name", "began_with", "has_begun"),
    [
        pytest.param("scala-processor", "changelog", False, marks=LONG),
        pytest.param("scala-processor", "ids", True, marks=LONG),
        pytest.param("scala-processor-ttl", "changelog", False, marks=LONG),
        pytest.param("scala-processor-ttl", "rocksdb", True, marks=LONG),
        pytest.param("flat-map-groups", "hdfs", False, marks=LONG),
        pytest.param("flat-map-groups", "changelog", True, marks=LONG),
        pytest.param("flat-map-groups", "ids", False, marks=LONG),
        pytest.param("map-groups", "hdfs", True, marks=LONG),
        pytest.param("map-groups", "rocksdb", False, marks=LONG),
        pytest.param("several", "hdfs", True, marks=LONG),
        pytest.param("several", "changelog", False, marks=LONG),
        pytest.param("several", "ids", True, marks=LONG),
        pytest.param("chain", "rocksdb", True, marks=LONG),
        *(pytest.param("outer-join", provider, True, marks=LONG) for provider in CHECKSUMS),
        pytest.param("processor", "checksums", False, marks=LONG),
        pytest.param("last-collated", "changelog", False, marks=LONG),
        *(pytest.param("distinct", provider, False, marks=LONG) for provider in CODECS),
    ],
)
def test_each_batch_is_equal(
    name: str, began_with: str, has_begun: bool, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if order(MINOR) < order(QUERIES[name].since):
        pytest.skip(f"Spark runs this query since {QUERIES[name].since}, this is {MINOR}")
    if QUERIES[name].is_scala:
        request.getfixturevalue("transfer_queries")
    location, kept = stop_query(spark, tmp_path, name, began_with), tmp_path / "kept"
    theirs, rows, expected = PROVIDERS[began_with], dict[int, list[str]](), dict[int, list[str]]()
    shutil.copytree(location, kept)
    if has_begun:
        drop_commit(location)

    imported = import_location(spark, str(location), force=True)
    offer(tmp_path, MIDDLE)
    expected |= run(spark, name, tmp_path, kept, theirs)
    rows |= run(spark, name, tmp_path, location, ours_like(began_with))
    if has_begun:
        drop_commit(location)
    exported = export_location(spark, str(location), str(tmp_path / "new"), state_format(began_with))
    offer(tmp_path, ALL)
    expected |= run(spark, name, tmp_path, kept, theirs)
    rows |= run(spark, name, tmp_path, tmp_path / "new", theirs)

    assert (imported.has_begun, exported.has_begun) == (has_begun, has_begun)
    assert sum(store.rows or 0 for store in (*imported.stores, *exported.stores)) > 0
    assert {batch: rows[batch] for batch in expected} == expected
    assert max(rows) == max(expected) and sum(map(len, expected.values())) > 0
    if QUERIES[name].is_scala:  # timers and timeouts
        assert any('"expired": true' in row for of_batch in expected.values() for row in of_batch)


@LONG
@since("4.0", "collations")
@pytest.mark.parametrize("name", ["count-by-collated", "distinct-collated"])
@pytest.mark.parametrize(
    "conf", [PROVIDERS["hdfs"], PROVIDERS["changelog"], {PROVIDER: OURS}], ids=["hdfs", "rocksdb", "ours"]
)
def test_spark_has_no_state_by_keys_that_are_equal_with_other_bytes(
    name: str, conf: dict[str, str], spark: SparkSession, tmp_path: Path
) -> None:
    offer(tmp_path, 1)
    with pytest.raises(StreamingQueryException, match="STATE_STORE_UNSUPPORTED_OPERATION_BINARY_INEQUALITY"):
        run(spark, name, tmp_path, tmp_path / "location", conf)
