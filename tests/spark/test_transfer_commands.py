"""`spark-ckpt import` and `spark-ckpt export` as a user runs them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.docs.pages import DOCS, command_lines
from tests.migrate.queries import ALL, OURS, PROVIDER, PROVIDERS, offer, run, stop_query

pytestmark = pytest.mark.slow

ORDERS = "/checkpoints/orders"
"""The location on the page."""


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs the program in a process of its own, with its own Spark session."""
    program = [sys.executable, "-m", "spark_ckpt", *map(str, arguments), "--master", "local[2]"]
    return subprocess.run(program, capture_output=True, text=True, timeout=300, check=False)


def make_old(location: Path) -> None:
    """Makes the files look as if the query had stopped long ago."""
    for path in location.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))


def test_an_import_and_its_undo(spark: SparkSession, tmp_path: Path) -> None:
    location = stop_query(spark, tmp_path, "count", "hdfs")
    make_old(location)
    done = command("import", location, "--json")
    assert (done.returncode, json.loads(done.stdout)["provider"]) == (0, "HDFS"), done.stderr
    undone = command("import", "--undo", location)
    assert undone.returncode == 0 and "the query returns to HDFS" in undone.stdout, undone.stderr


@pytest.mark.long
def test_in_and_out_as_the_page_says(spark: SparkSession, tmp_path: Path) -> None:
    location = stop_query(spark, tmp_path, "windows", "hdfs")
    young = command("import", location, "--json")
    assert (young.returncode, json.loads(young.stderr)["error"]) == (4, "QueryMayRunError")
    make_old(location)
    lines = dict.fromkeys(line for line in command_lines(DOCS / "moving.md") if line.startswith("spark-ckpt "))
    typed = [shlex.split(line.replace(ORDERS, str(location)))[1:] for line in lines if ORDERS in line]
    planned, imported, undone, to_rocksdb, to_hdfs = typed

    dry = command(*planned, "--json")
    assert (dry.returncode, json.loads(dry.stdout)["dry_run"]) == (0, True), dry.stderr
    done = command(*imported)
    assert done.returncode == 0, done.stderr
    assert "imported from HDFS" in done.stdout and f"spark-ckpt import --undo {location}" in done.stdout
    again = command(*imported, "--json")
    assert (again.returncode, json.loads(again.stderr)["error"]) == (5, "TransferRefusedError")
    back = command(*undone, "--json")
    assert (back.returncode, json.loads(back.stdout)["provider"]) == (0, "HDFS"), back.stderr

    make_old(location)
    assert command(*imported).returncode == 0
    offer(tmp_path, ALL - 1)
    run(spark, "windows", tmp_path, location, {PROVIDER: OURS})
    offer(tmp_path, ALL)
    outputs = []
    # This process has run the query and is still alive.
    for arguments, provider in ((to_rocksdb, "changelog"), (to_hdfs, "hdfs")):
        exported = command(*arguments, "--json", "--force")
        assert exported.returncode == 0, exported.stderr
        outputs.append(run(spark, "windows", tmp_path, Path(arguments[2]), PROVIDERS[provider]))
    assert outputs[0] == outputs[1] == run(spark, "windows", tmp_path, location, {PROVIDER: OURS})
    assert sum(map(len, outputs[0].values())) > 0


def test_a_missing_location_and_a_wrong_setting(tmp_path: Path) -> None:
    missing = command("import", tmp_path / "nowhere", "--json")
    assert (missing.returncode, json.loads(missing.stderr)["error"]) == (1, "LocationNotFoundError")
    wrong = command("import", tmp_path, "--conf", "executor.memory=1g")
    assert wrong.returncode == 2 and "must start with 'spark.'" in wrong.stderr
    both = command("import", "--undo", tmp_path, tmp_path / "new")
    assert both.returncode == 2 and "--undo takes no NEW_LOCATION" in both.stderr
