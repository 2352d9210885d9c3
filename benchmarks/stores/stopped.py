"""Checkpoint locations of stopped queries, as subjects of operations."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.stores import data
from benchmarks.stores.plan import Run
from benchmarks.stores.providers import PROVIDERS
from benchmarks.stores.queries import OUTPUT_MODES, build


def stopped_location(spark: SparkSession, work: Path, run: Run, partitions: int, seed: int) -> Path:
    """Location of a query that was stopped after processing all of its input; written once per provider and number of
    keys.

    Args:
        spark: the session that runs the query.
        work: folder for input and locations.
        run: workload and provider.
        partitions: partitions of the query.
        seed: seed of the input.
    """
    location = work / f"{run.provider}-{run.workload.keys}"
    if location.exists():
        return location
    feed = data.prepare(work / "input", run.workload, seed)
    partial = location.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    with _settings(spark, {**PROVIDERS[run.provider].conf(), "spark.sql.shuffle.partitions": str(partitions)}):
        writer = build(spark, run.workload.query, feed).writeStream.format("noop")
        writer = writer.outputMode(OUTPUT_MODES[run.workload.query]).option("checkpointLocation", partial.as_uri())
        writer.trigger(availableNow=True).start().awaitTermination()
    partial.rename(location)
    return location


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)
