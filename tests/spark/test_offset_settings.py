"""Settings that Spark takes from the newest entry of the offset log at a start."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_ckpt.spark_files.entries import DEFAULT_SETTINGS
from tests.support.spark_version import MINOR, order

PACKAGE = "org.apache.spark.sql.execution.streaming"


@pytest.mark.core
def test_defaults_of_settings_that_an_entry_lacks(shared_spark: SparkSession) -> None:
    """Each of Spark's is among ours, with its value; settings that came later are unknown to earlier versions."""
    jvm: Any = shared_spark._jvm
    package = f"{PACKAGE}.checkpointing" if order(MINOR) >= order("4.1") else PACKAGE
    companion = jvm.java.lang.Class.forName(f"{package}.OffsetSeqMetadata$")
    field = companion.getDeclaredField("relevantSQLConfDefaultValues")
    field.setAccessible(True)
    found, values = {}, field.get(companion.getField("MODULE$").get(None)).iterator()
    while values.hasNext():
        pair = values.next()
        found[pair._1()] = pair._2()
    assert found
    assert found.items() <= DEFAULT_SETTINGS.items()
    if MINOR == "4.3":
        assert found == DEFAULT_SETTINGS
