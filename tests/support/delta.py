"""Delta's jars, copied by Maven if missing, and the matching settings."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest

from tests.support.provider import REPOSITORY

HAS_DELTA = importlib.util.find_spec("delta") is not None
"""False in the environment of a Spark minor version that has no release of Delta."""

needs_delta = pytest.mark.skipif(not HAS_DELTA, reason="Delta has no release for this Spark")

SHIM = REPOSITORY / "jvm-shim"
JAR_FOLDER = SHIM / "delta-jars" / "target" / "jars"

DELTA_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
}


def delta_jars() -> list[Path]:
    """Jars required by Delta in addition to Spark's own."""
    if not list(JAR_FOLDER.glob("delta-spark_*.jar")):
        subprocess.run(["mvn", "-q", "-B", "-pl", "delta-jars", "package"], check=True, cwd=SHIM, timeout=1500)
    return sorted(JAR_FOLDER.glob("*.jar"))
