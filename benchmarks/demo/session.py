"""Spark sessions of the demo: two cores, Delta if it is installed, and the selected state-store provider."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.demo.tables import HAS_DELTA
from spark_ckpt import configure
from spark_ckpt.config import PROVIDER_KEY

REPOSITORY = Path(__file__).resolve().parents[2]
DELTA_JARS = REPOSITORY / "jvm-shim" / "delta-jars" / "target" / "jars"
KAFKA_JARS = REPOSITORY / "jvm-shim" / "kafka-jars" / "target" / "jars"

BUILT_IN = "org.apache.spark.sql.execution.streaming.state."
PROVIDERS = {
    "ckpt": None,
    "rocksdb": BUILT_IN + "RocksDBStateStoreProvider",
    "hdfs": BUILT_IN + "HDFSBackedStateStoreProvider",
}

LOCAL = "local[2]"

SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.executor.memory": "512m",
    # Drivers that live for a minute gain more from a quick start than from optimal machine code.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    # Checkpointed rows are useless after the merge.
    "spark.cleaner.referenceTracking.cleanCheckpoints": "true",
}

DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Rows to be merged are already computed and stored.
    "spark.databricks.delta.merge.materializeSource": "none",
}


def jars_in(folder: Path) -> list[Path]:
    """Jars copied into the source tree by Maven.

    Raises:
        SystemExit: there are none.
    """
    jars = sorted(folder.glob("*.jar"))
    if not jars:
        raise SystemExit(f"no jars in {folder}: run 'make prepare'")
    return jars


def open_session(
    work: Path,
    provider: str | None,
    master: str = LOCAL,
    conf: Mapping[str, str] | None = None,
    *,
    has_kafka: bool = False,
    has_ui: bool = False,
) -> SparkSession:
    """Start Spark with its own settings; `provider` is None for batch work, which keeps no state.

    With `has_kafka`, Spark's Kafka connector is on the class path. With `has_ui`, Spark serves its UI, to this machine
    only.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if has_ui:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName("spark-ckpt demo")
    builder = builder.config("spark.ui.enabled", str(has_ui).lower())
    builder = builder.config(map={**SETTINGS, **(conf or {}), "spark.sql.warehouse.dir": str(work / "warehouse")})
    jars = [*(jars_in(DELTA_JARS) if HAS_DELTA else ()), *(jars_in(KAFKA_JARS) if has_kafka else ())]
    if HAS_DELTA:
        builder = builder.config(map={**DELTA_SETTINGS})
    if jars:
        builder = builder.config("spark.jars", ",".join(map(str, jars)))
    if provider == "ckpt":
        builder = configure(builder, retained=5)
    elif provider is not None:
        builder = builder.config(PROVIDER_KEY, str(PROVIDERS[provider]))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return spark
