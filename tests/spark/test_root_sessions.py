"""Root sessions of one driver: each has a shared state of its own, and with it a list of active queries of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from spark_ckpt.operations.verify import verify
from spark_ckpt.storage import LocalStorage
from tests.support.waiting import eventually

MORE_BATCHES = 3


@pytest.fixture
def other_root(shared_spark: SparkSession) -> Iterator[SparkSession]:
    """A session that shares the context only, as a server may give one to each of its users."""
    sessions: Any = shared_spark._jvm.org.apache.spark.sql.classic.SparkSession  # type: ignore[union-attr]
    sessions.clearActiveSession()
    sessions.clearDefaultSession()
    try:
        other = SparkSession(shared_spark.sparkContext, sessions.builder().getOrCreate())
    finally:
        sessions.setDefaultSession(shared_spark._jsparkSession)
        sessions.setActiveSession(shared_spark._jsparkSession)
    assert not shared_spark._jsparkSession.sharedState().equals(other._jsparkSession.sharedState())
    yield other
    for query in other.streams.active:
        query.stop()


def start(spark: SparkSession, location: Path | str) -> StreamingQuery:
    numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
    counts = numbers.groupBy((sf.col("value") % 5).alias("key")).count()
    return counts.writeStream.outputMode("update").format("noop").option("checkpointLocation", str(location)).start()


def batches(query: StreamingQuery) -> int:
    """Number of batches so far; raises the exception of a query that has failed."""
    if (failure := query.exception()) is not None:
        raise failure
    return 0 if query.lastProgress is None else int(query.lastProgress["batchId"]) + 1


def test_queries_of_two_root_sessions_run_side_by_side(
    spark: SparkSession, other_root: SparkSession, tmp_path: Path
) -> None:
    """Each is found by its run, whichever session has planned a batch last."""
    first = start(spark, tmp_path / "first")
    eventually(lambda: batches(first) > 0)
    second = start(other_root, tmp_path / "second")
    eventually(lambda: batches(second) > 0)
    for query in (first, second, first):
        wanted = batches(query) + MORE_BATCHES
        eventually(lambda query=query, wanted=wanted: batches(query) >= wanted)  # type: ignore[misc]
    assert first.isActive
    assert second.isActive


def test_each_location_is_reached_by_the_settings_of_its_session(
    spark: SparkSession, other_root: SparkSession, tmp_path: Path
) -> None:
    """Each session alone knows where its file system is."""
    queries = []
    for name, session in (("first", spark), ("second", other_root)):
        session.conf.set(f"fs.viewfs.mounttable.{name}.link./files", tmp_path.as_uri())
        queries.append(start(session, f"viewfs://{name}/files/{name}"))
    for query in queries:
        eventually(lambda query=query: batches(query) > MORE_BATCHES)  # type: ignore[misc]
    for name, query in zip(("first", "second"), queries, strict=True):
        query.stop()
        assert verify(LocalStorage(tmp_path / name)).is_whole


def test_a_query_of_another_root_session_has_not_ended(
    spark: SparkSession, other_root: SparkSession, tmp_path: Path
) -> None:
    """Commands in a session take a location for free if the query of its claim has ended in the same process."""
    query = start(other_root, tmp_path / "query")
    eventually(lambda: batches(query) > 0)
    jvm: Any = spark._jvm
    pid = jvm.java.lang.ProcessHandle.current().pid()
    transfer = jvm.org.apache.spark.sql.ckpt.transfer.StateTransfer
    run = str(query.runId)
    assert not transfer.hasEnded(spark._jsparkSession, pid, run)
    query.stop()
    assert transfer.hasEnded(spark._jsparkSession, pid, run)
