"""`spark-ckpt import` and `spark-ckpt export` as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.imports.queries import ALL, OURS, PROVIDER, PROVIDERS, offer, run
from tests.spark.test_import import stop_query

pytestmark = pytest.mark.slow


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs the program in a process of its own, with its own Spark session."""
    program = [sys.executable, "-m", "spark_ckpt", *map(str, arguments), "--master", "local[2]"]
    return subprocess.run(program, capture_output=True, text=True, timeout=300, check=False)


def test_in_and_out(spark: SparkSession, tmp_path: Path) -> None:
    location, new = stop_query(spark, tmp_path, "windows", "hdfs"), tmp_path / "new"

    planned = command("import", location, "--dry-run", "--force", "--json")
    assert (planned.returncode, json.loads(planned.stdout)["dry_run"]) == (0, True), planned.stderr

    young = command("import", location, "--json")
    assert (young.returncode, json.loads(young.stderr)["error"]) == (4, "QueryMayRunError")

    imported = command("import", location, "--force")
    assert imported.returncode == 0, imported.stderr
    assert "state of batch" in imported.stdout and "imported from HDFS" in imported.stdout
    assert f"spark-ckpt import --undo {location}" in imported.stdout

    again = command("import", location, "--force", "--json")
    assert (again.returncode, json.loads(again.stderr)["error"]) == (5, "TransferRefusedError")

    undone = command("import", "--undo", location, "--json")
    assert undone.returncode == 0, undone.stderr
    assert json.loads(undone.stdout)["provider"] == "HDFS"

    assert command("import", location, "--force").returncode == 0
    offer(tmp_path, ALL - 1)
    run(spark, "windows", tmp_path, location, {PROVIDER: OURS})
    exported = command("export", location, new, "--format", "spark-rocksdb", "--json")
    assert exported.returncode == 0, exported.stderr
    assert json.loads(exported.stdout)["provider"] == "RocksDB"
    offer(tmp_path, ALL)
    assert run(spark, "windows", tmp_path, new, PROVIDERS["changelog"])


def test_a_missing_location_and_a_wrong_setting(tmp_path: Path) -> None:
    missing = command("import", tmp_path / "nowhere", "--json")
    assert (missing.returncode, json.loads(missing.stderr)["error"]) == (1, "LocationNotFoundError")
    wrong = command("import", tmp_path, "--conf", "executor.memory=1g")
    assert wrong.returncode == 2 and "must start with 'spark.'" in wrong.stderr
    both = command("import", "--undo", tmp_path, tmp_path / "new")
    assert both.returncode == 2 and "--undo takes no NEW_LOCATION" in both.stderr
