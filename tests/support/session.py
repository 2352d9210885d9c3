"""Spark sessions for tests: small, quick to start, with the provider under test."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.class_archive import start_drivers_quickly
from tests.support.delta import DELTA_CONF, delta_jars
from tests.support.kafka import connector_jars
from tests.support.provider import CKPT_PREFIX, REPOSITORY, ProviderUnderTest

KEEP_ALL = 10_000

SMALL_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-Dderby.system.durability=test",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.maintenanceInterval": "2s",
    "spark.sql.streaming.stopTimeout": "600s",
}


def use_this_python() -> None:
    """Makes Spark's Python workers, the side process and started drivers use this interpreter and this repository.

    Their JVMs start quickly.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    start_drivers_quickly()
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(REPOSITORY) not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), *filter(None, path)])


def open_session(
    provider: ProviderUnderTest,
    folder: Path,
    *,
    master: str = "local[2]",
    conf: Mapping[str, str] | None = None,
    delta: bool = False,
    kafka: bool = False,
) -> SparkSession:
    """Starts Spark with `provider`; with ours, all checkpoints are retained unless `conf` says otherwise."""
    use_this_python()
    settings = {**SMALL_CONF, "spark.sql.warehouse.dir": str(folder / "warehouse"), **provider.conf()}
    jars = [*(delta_jars() if delta else ()), *(connector_jars() if kafka else ())]
    settings |= DELTA_CONF if delta else {}
    settings |= {"spark.jars": ",".join(map(str, jars))} if jars else {}
    settings |= conf or {}
    builder = SparkSession.builder.master(master).appName("spark-ckpt tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    if provider.is_ours:
        from spark_ckpt import configure

        builder = configure(builder, retained=None if f"{CKPT_PREFIX}retained" in settings else KEEP_ALL)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(os.environ.get("SPARK_CKPT_TEST_LOG_LEVEL", "ERROR"))
    return spark


def write_ui_address(spark: SparkSession, folder: Path) -> None:
    """Writes the address of Spark's UI to the file `ui`, or an empty one without a UI. It appears whole."""
    address = folder / "ui.part"
    address.write_text(spark.sparkContext.uiWebUrl or "")
    address.rename(folder / "ui")
