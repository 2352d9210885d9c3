"""An error that a thread of ours throws and nobody catches fails the test, whichever JVM it happens in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import JVMView
from pyspark.sql import SparkSession

from tests.support.processes import DriverJob
from tests.support.provider import REPOSITORY
from tests.support.standalone_cluster import StandaloneCluster
from tests.support.uncaught import UncaughtErrors
from tests.support.waiting import eventually


def _jvm(spark: SparkSession) -> Any:
    jvm = spark.sparkContext._jvm
    assert isinstance(jvm, JVMView)
    return jvm


def test_an_error_that_reaches_the_jvm_of_a_driver(spark: SparkSession, uncaught_errors: UncaughtErrors) -> None:
    _jvm(spark).io.github.sparkckpt.uncaught.ThrowingThread("lost in the driver").call(None)
    (text,) = eventually(uncaught_errors.take)
    assert text.startswith("executor driver, process ")
    assert 'thread "spark-ckpt-throwing" java.lang.IllegalStateException: lost in the driver' in text
    assert "at io.github.sparkckpt.uncaught.ThrowingThread" in text


def test_an_error_that_ends_in_our_log(spark: SparkSession, uncaught_errors: UncaughtErrors) -> None:
    """Nothing of ours reaches the JVM, so what is logged in its place counts as much."""
    jvm = _jvm(spark)
    jvm.org.apache.spark.sql.ckpt.common.OwnThreads.failed("the test", jvm.java.lang.IllegalStateException("lost"))
    (text,) = eventually(uncaught_errors.take)
    assert "the test has failed" in text and "java.lang.IllegalStateException: lost" in text


def test_an_error_that_ends_an_executor(tmp_path: Path, uncaught_errors: UncaughtErrors) -> None:
    with StandaloneCluster(tmp_path / "cluster", workers=1) as cluster:
        job = DriverJob("throwing_thread.py", tmp_path / "job", ["--master", cluster.url])
        texts = eventually(uncaught_errors.take, what=job.output)
        job.kill()
    assert texts[0].startswith("executor 0, process ") and "IllegalStateException: lost in an executor" in texts[0]


@pytest.mark.parametrize("lost", [False, True])
def test_it_fails_the_run(tmp_path: Path, lost: bool) -> None:
    test = tmp_path / "test_losing.py"
    test.write_text(
        "def test_that_passes(uncaught_errors):\n"
        f"    if {lost}:\n"
        "        (uncaught_errors.folder / 'x.txt').write_text('executor 7 IllegalStateException at Thread.run')\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.support.uncaught", "-c", "/dev/null", str(test)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=1500)
    assert done.returncode == int(lost), done.stdout
    assert ("executor 7 IllegalStateException at Thread.run" in done.stdout) is lost
