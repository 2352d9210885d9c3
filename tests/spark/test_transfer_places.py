"""Imports and exports on HDFS, on S3 and on a real cluster."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.migrate.queries import ALL, BEFORE, PROVIDERS, offer, run
from tests.spark.jobs.transfer import MIDDLE
from tests.support.hdfs import Hdfs
from tests.support.processes import DriverJob
from tests.support.provider import CKPT_PREFIX
from tests.support.s3 import S3
from tests.support.standalone_cluster import StandaloneCluster

QUERY = "outer-join"
JOB = "transfer.py"


def check(
    spark: SparkSession,
    folder: Path,
    location: str,
    provider: str,
    master: str = "local[2]",
    conf: tuple[str, ...] = (),
) -> None:
    """Compares a query that moves in and out with one that keeps its provider, batch by batch."""
    arguments = ["--query", QUERY, "--provider", provider, "--location", location, "--exported", f"{location}-exported"]
    job = DriverJob(
        JOB, folder, [*arguments, "--master", master, *(part for pair in conf for part in ("--conf", pair))]
    )
    assert job.wait() == 0, job.output()[-6000:]
    found = {int(batch): rows for batch, rows in json.loads((folder / "rows.json").read_text()).items()}
    expected: dict[int, list[str]] = {}
    kept = folder / "kept"
    for files in (BEFORE, MIDDLE, ALL):
        offer(kept, files)
        expected |= run(spark, QUERY, kept, kept / "location", PROVIDERS[provider])
    assert found == expected
    assert sum(map(len, expected.values())) > 0


@pytest.mark.long
def test_on_hdfs(spark: SparkSession, tmp_path: Path, hdfs: Hdfs) -> None:
    check(spark, tmp_path, hdfs.new_location(), "changelog")


@pytest.mark.long
@pytest.mark.parametrize("began_with", ["hdfs", "changelog"])
def test_on_s3(began_with: str, spark: SparkSession, tmp_path: Path, s3: S3, s3a: str) -> None:
    secret = uuid.uuid4().hex
    conf = (
        f"spark.driver.extraClassPath={s3a}",
        f"spark.hadoop.fs.s3a.endpoint={s3.endpoint}",
        "spark.hadoop.fs.s3a.endpoint.region=us-east-1",
        "spark.hadoop.fs.s3a.path.style.access=true",
        "spark.hadoop.fs.s3a.access.key=test",
        f"spark.hadoop.fs.s3a.secret.key={secret}",
        f"{CKPT_PREFIX}ackThreshold=0",
        # Moto's server says "100 Continue" twice, and the client that uploads RocksDB's files takes the second for the
        # final status. Another client of S3A does not.
        "spark.hadoop.fs.s3a.optimized.copy.from.local.enabled=false",
    )
    check(spark, tmp_path, f"{s3.url}/query".replace("s3:", "s3a:"), began_with, conf=conf)


@pytest.mark.long
def test_on_a_standalone_cluster(spark: SparkSession, tmp_path: Path) -> None:
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        check(spark, tmp_path, str(tmp_path / "location"), "hdfs", cluster.url)
