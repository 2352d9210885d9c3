"""Spark Connect: a server with this provider, and what its clients may set and see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import SparkSession as Classic

import spark_ckpt
from spark_ckpt.errors import SessionConfigError
from tests.support.checkpoints import CheckpointJudge, completed_checkpoints
from tests.support.events import SCHEMA
from tests.support.feeds import Feed, at
from tests.support.provider import CKPT_PREFIX, PROVIDER_KEY, ProviderUnderTest
from tests.support.sinks import Rows, assert_same_rows

if TYPE_CHECKING:
    from tests.support.connect import ConnectServer

RETAINED = f"{CKPT_PREFIX}retained"
ON_SERVER, BATCHES = 20, 5


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, provider: ProviderUnderTest) -> Iterator[ConnectServer]:
    if not provider.is_ours:
        pytest.skip("the server has the settings of this provider")
    pytest.importorskip("grpc", reason="a client of Spark Connect needs grpcio")
    from tests.support.connect import ConnectServer

    with ConnectServer(tmp_path_factory.mktemp("connect"), {RETAINED: str(ON_SERVER)}) as server:
        yield server


@pytest.fixture
def client(server: ConnectServer) -> Iterator[Any]:
    session = server.session()
    yield session
    session.stop()


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    feed = Feed(tmp_path / "feed", SCHEMA)
    for batch in range(BATCHES):
        feed.drop([(at(batch), f"k{number % 7}", number) for number in range(batch, batch + 20)])
    return feed


def run(client: Any, feed: Feed, folder: Path) -> Any:
    """Counts rows by key to the end of the input, and returns the query."""
    counts = feed.stream(client).groupBy("key").count()
    writer = counts.writeStream.outputMode("complete").format("memory").queryName("counts").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    query.awaitTermination()
    return query


def test_a_client_runs_a_query_with_state(client: Any, feed: Feed, tmp_path: Path, judge: CheckpointJudge) -> None:
    query = run(client, feed, tmp_path)
    keys = [str(row[1]) for row in feed.rows()]
    assert_same_rows(
        [tuple(row) for row in client.table("counts").collect()], [(key, keys.count(key)) for key in set(keys)]
    )
    judge.check(tmp_path / "checkpoint")
    assert len(completed_checkpoints(tmp_path / "checkpoint")) == BATCHES  # as the server retains more
    (operator,) = query.lastProgress["stateOperators"]
    assert operator["numRowsTotal"] == len(set(keys))
    assert operator["customMetrics"], "the metrics of the store do not reach the client"
    # Reading state takes a location and no session: it works wherever the location can be reached.
    state = spark_ckpt.read_state(str(tmp_path / "checkpoint")).to_arrow().to_pylist()
    assert {row["key"]["key"] for row in state} == set(keys)


def test_a_function_for_each_batch(client: Any, feed: Feed, tmp_path: Path) -> None:
    """It runs in a clone of the client's session, whose settings are not the query's."""
    counts = feed.stream(client).groupBy("key").count()
    out = str(tmp_path / "out")

    def write(batch: Any, batch_id: int) -> None:
        batch.sparkSession.conf.set("spark.sql.shuffle.partitions", "1")
        batch.write.mode("overwrite").parquet(f"{out}/{batch_id}")

    writer = counts.writeStream.outputMode("complete").foreachBatch(write).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    keys = [str(row[1]) for row in feed.rows()]
    answer: Rows = [(key, keys.count(key)) for key in set(keys)]
    assert_same_rows([tuple(row) for row in client.read.parquet(f"{out}/{BATCHES - 1}").collect()], answer)
    state = spark_ckpt.read_state(str(tmp_path / "checkpoint")).to_arrow().to_pylist()
    assert_same_rows([(row["key"]["key"], row["value"]["count"]) for row in state], answer)
    assert len(completed_checkpoints(tmp_path / "checkpoint")) == BATCHES


def test_a_setting_of_a_session_counts_for_its_queries_only(
    server: ConnectServer, client: Any, feed: Feed, tmp_path: Path
) -> None:
    client.conf.set(RETAINED, "3")
    run(client, feed, tmp_path / "own")
    assert len(completed_checkpoints(tmp_path / "own" / "checkpoint")) == 3
    other = server.session()
    assert other.conf.get(RETAINED) == str(ON_SERVER)
    other.stop()


def test_a_misspelt_setting_fails_the_query_and_says_so(client: Any, feed: Feed, tmp_path: Path) -> None:
    client.conf.set(f"{CKPT_PREFIX}retaned", "3")
    with pytest.raises(Exception, match=r"SettingError.*retaned"):
        run(client, feed, tmp_path)
    assert not completed_checkpoints(tmp_path / "checkpoint")


@pytest.mark.parametrize("key", ["spark.sql.extensions", "spark.jars"])
def test_a_client_cannot_change_what_the_server_was_started_with(client: Any, key: str) -> None:
    with pytest.raises(Exception, match="CANNOT_MODIFY"):
        client.conf.set(key, "other")


def test_a_client_may_choose_another_provider(client: Any, feed: Feed, tmp_path: Path) -> None:
    client.conf.set(PROVIDER_KEY, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    run(client, feed, tmp_path)
    assert not (tmp_path / "checkpoint" / "ckpt").exists()


def test_configure_refuses_a_client(client: Any) -> None:
    for builder in (type(client).builder.remote("sc://127.0.0.1"), Classic.builder.remote("sc://127.0.0.1")):
        with pytest.raises(SessionConfigError, match="Start the server with the jar"):
            spark_ckpt.configure(builder)
    with pytest.raises(SessionConfigError, match=r"takes a SparkSession\.Builder"):
        spark_ckpt.configure(client)
