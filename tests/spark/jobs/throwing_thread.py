"""Driver of an application one of whose executors loses an error in a thread."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.session import SMALL_CONF


def main() -> None:
    """Throw in a thread of an executor, and wait to be killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--master")
    builder = SparkSession.builder.master(parser.parse_args().master)
    for key, value in {**SMALL_CONF, "spark.executor.memory": "512m"}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    throwing = jvm.io.github.sparkckpt.uncaught.ThrowingThread("lost in an executor")
    numbers = jvm.java.util.ArrayList()
    numbers.append(1)
    spark.sparkContext._jsc.parallelize(numbers, 1).foreach(throwing)
    input()


if __name__ == "__main__":
    main()
