"""Driver program of the tests of metrics: two queries, of which one is started a second time.

It then writes what JMX shows to the file `jmx`, and the address of Spark's UI to `ui`. It ends when a file `stop`
appears.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from tests.support.provider import CKPT
from tests.support.session import open_session, write_ui_address
from tests.support.waiting import eventually

RESTARTED = "orders"
OTHER = "orders 2"
"""Its metrics must not go with those of the first, whose name it begins with."""


def main(arguments: list[str]) -> int:
    """Runs the queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args(arguments)
    folder: Path = options.folder
    spark = open_session(CKPT, folder, conf=dict(pair.split("=", 1) for pair in options.conf))
    _start(spark, folder, OTHER)
    _start(spark, folder, RESTARTED).stop()
    again = _start(spark, folder, RESTARTED)
    (folder / "jmx").write_text(json.dumps(_beans(spark)))
    write_ui_address(spark, folder)
    eventually((folder / "stop").exists)
    again.stop()
    spark.stop()
    return 0


def _start(spark: SparkSession, folder: Path, name: str) -> StreamingQuery:
    """Starts a query; returns after its second batch."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    writer = rows.groupBy((sf.col("value") % 7).alias("key")).count().writeStream.format("noop").outputMode("update")
    writer = writer.queryName(name).option("checkpointLocation", str(folder / name))
    query = writer.trigger(processingTime="300 milliseconds").start()

    def has_progress() -> bool:
        if (failure := query.exception()) is not None:
            raise failure
        return len(query.recentProgress) > 1

    eventually(has_progress)
    return query


def _beans(spark: SparkSession) -> dict[str, float]:
    """Value of each of our beans, by the name of its metric."""
    values = {}
    everything = _java(spark).javax.management.ObjectName("metrics:*")
    for bean in _ask_server(spark, "queryNames", everything, None):
        name = bean.getKeyProperty("name")
        if "sparkCkpt" in name:
            attribute = "Count" if bean.getKeyProperty("type") == "counters" else "Value"
            values[name] = _ask_server(spark, "getAttribute", bean, attribute)
    return values


def _ask_server(spark: SparkSession, name: str, *arguments: Any) -> Any:
    """Calls a method of the server of beans. Its class is not public, but its interface is."""
    java, gateway = _java(spark), spark.sparkContext._gateway
    assert gateway is not None
    server = java.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    interface = java.java.lang.Class.forName("javax.management.MBeanServer")
    (method,) = [m for m in interface.getMethods() if m.getName() == name]
    passed = gateway.new_array(java.java.lang.Object, len(arguments))
    for i, argument in enumerate(arguments):
        passed[i] = argument
    return method.invoke(server, passed)


def _java(spark: SparkSession) -> Any:
    return spark._jvm


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
