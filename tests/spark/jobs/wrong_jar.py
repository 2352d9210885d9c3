"""Driver program: an aggregation with a given jar on the class path; prints the first line of the error."""

from __future__ import annotations

import sys
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_ckpt.config import EXTENSIONS_CLASS, EXTENSIONS_KEY
from tests.support.provider import CKPT
from tests.support.session import SMALL_CONF


def main(jar: str, extensions: str, folder: Path) -> int:
    """Starts Spark and one batch."""
    conf = {**SMALL_CONF, **CKPT.conf(), "spark.jars": jar, "spark.sql.warehouse.dir": str(folder / "warehouse")}
    if extensions == "yes":
        conf[EXTENSIONS_KEY] = EXTENSIONS_CLASS
    try:
        builder = SparkSession.builder.master("local[1]")
        for key, value in conf.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        counted = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load().groupBy("value").count()
        writer = counted.writeStream.format("noop").outputMode("update").trigger(availableNow=True)
        writer.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
    except Py4JJavaError as error:
        print("FIRST LINE:", str(error.java_exception).splitlines()[0])
    except PySparkException as error:
        print("FIRST LINE:", str(error).splitlines()[0])
    else:
        print("NO ERROR")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
