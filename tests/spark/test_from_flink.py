"""Real queries that continue from what real Flink wrote, to the batch answer over all rows of both."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from kafka import KafkaAdminClient, KafkaProducer
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from spark_ckpt import import_flink_savepoint, read_state
from spark_ckpt.operations.verify import verify
from spark_ckpt.spark_files.logs import SparkLog
from spark_ckpt.storage import LocalStorage
from tests.flink.streams.corpus import StateVector, job, lay_out
from tests.metadata.corpus import VECTORS
from tests.support.checkpoints import committed_batches
from tests.support.feeds import at
from tests.support.kafka import KafkaBroker
from tests.support.provider import ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, Rows, assert_same_rows
from tests.support.spark_version import needs_rows

SCHEMA = "ts timestamp, key long, value long"
COLUMNS = ["key", "what", "n", "listed", "mapped"]
RESULT = "key long, what string, n long, listed string, mapped string"
JOB = "f120-savepoint-canonical-heap-p2"
SQL_ROWS = 300
"""Rows of the jobs in `vectors/sql` (`SqlJob.ROWS`)."""


@pytest.fixture(autouse=True)
def ours(provider: ProviderUnderTest) -> None:
    """Skips Spark's providers, which have no import."""
    if not provider.is_ours:
        pytest.skip("an import writes state of our provider")


class Continuing(StatefulProcessor):
    """The state of the job in the vectors: a sum, a list of texts and a map of counts by text; and its timers."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.sum = handle.getValueState("sum", "value long")
        self.list = handle.getListState("list", "value string")
        self.map = handle.getMapState("map", "name string", "n long")

    def add(self, key: int, values: list[int]) -> tuple[int, str, int, str, str]:
        """Adds the values of a batch; returns the entire state of the key."""
        total = (self.sum.get() or (0,))[0] + sum(values)
        self.sum.update((total,))
        for value in values:
            self.list.appendValue((f"s{value}",))
            name = (f"k{value % 5}",)
            self.map.updateValue(name, ((self.map.getValue(name) or (0,))[0] + 1,))
        listed = [row[0] for row in self.list.get()]
        mapped = sorted((name[0], n[0]) for name, n in self.map.iterator())
        return key, "state", total, str(listed), str(mapped)

    def close(self) -> None:
        return


class ContinuingRows(Continuing):
    def handleInputRows(self, key: tuple[int], rows: Iterator[Row], timers: TimerValues) -> Iterator[Row]:  # noqa: N802
        yield Row(**dict(zip(COLUMNS, self.add(key[0], [row.value for row in rows]), strict=True)))

    def handleExpiredTimer(  # noqa: N802
        self,
        key: tuple[int],
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        values = (key[0], "timer", expiredTimerInfo.getExpiryTimeInMs(), "", "")
        yield Row(**dict(zip(COLUMNS, values, strict=True)))


class ContinuingFrames(Continuing):
    def handleInputRows(  # noqa: N802
        self, key: tuple[int], rows: Iterator[pd.DataFrame], timers: TimerValues
    ) -> Iterator[pd.DataFrame]:
        values = [int(value) for frame in rows for value in frame["value"]]
        yield pd.DataFrame([self.add(key[0], values)], columns=COLUMNS)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: tuple[int],
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        yield pd.DataFrame([(key[0], "timer", expiredTimerInfo.getExpiryTimeInMs(), "", "")], columns=COLUMNS)


def rows_of(source: str, state: str, *columns: str) -> list[tuple[Any, ...]]:
    """Rows of a state of Flink."""
    rows = read_state(source, variable=state).to_arrow().to_pylist()
    return [tuple(row[column] for column in columns) for row in rows]


@pytest.mark.parametrize(
    "kind", [pytest.param("rows", marks=needs_rows), pytest.param("pandas", marks=pytest.mark.long)]
)
def test_a_transform_with_state_continues(
    kind: str, runner: QueryRunner, spark: SparkSession, tmp_path: Path, checkpoint_ids: None
) -> None:
    """Sum, list, map and timers go on from Flink's, for keys that Flink knows and for new ones."""
    source = str(lay_out(job(JOB), tmp_path / "flink").parent)
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", "append")

    def plan() -> DataFrame:
        grouped = feed.stream(spark).withWatermark("ts", "0 seconds").groupBy("key")
        if kind == "rows":
            return grouped.transformWithState(ContinuingRows(), RESULT, "append", "eventtime")
        return grouped.transformWithStateInPandas(ContinuingFrames(), RESULT, "append", "eventtime")

    feed.drop([])
    runner.drain(plan(), sink)
    done = import_flink_savepoint(source, runner.location, ignore=["_timer_state/processing_user-timers"], force=True)
    assert {state.spark for state in done.states} == {"0/sum", "0/list", "0/map", "0/eventTimers"}
    assert verify(LocalStorage(runner.location), everything=True).is_whole

    sums = dict(rows_of(source, "sum", "key", "value"))
    lists: dict[int, list[str]] = {}
    for key, element in rows_of(source, "list", "key", "list_element"):
        lists.setdefault(key, []).append(element)
    maps: dict[int, Counter[str]] = {}
    for key, name, n in rows_of(source, "map", "key", "user_map_key", "user_map_value"):
        maps.setdefault(key, Counter())[name] = n
    timers = rows_of(source, "_timer_state/event_user-timers", "key", "expiration_timestamp_ms")
    assert sums
    assert timers

    added = [(key, value) for value in (7, 11) for key in [*sums, 1000, 1001]]
    feed.drop((at(1), key, value) for key, value in added)
    runner.drain(plan(), sink)
    for key, value in added:
        sums[key] = sums.get(key, 0) + value
        lists.setdefault(key, []).append(f"s{value}")
        maps.setdefault(key, Counter())[f"k{value % 5}"] += 1
    expected: Rows = [
        (key, "state", total, str(lists[key]), str(sorted(maps[key].items()))) for key, total in sums.items()
    ]
    expected += [(key, "timer", time, "", "") for key, time in timers]
    assert_same_rows(runner.finish(sink), expected)
    counter = read_state(str(runner.location), variable="$rowCounter_list").to_arrow().to_pylist()
    assert {row["key"]["key"]: row["value"]["count"] for row in counter} == {key: len(lists[key]) for key in lists}
    assert read_state(str(runner.location), variable="$eventTimers_keyToTimestamp").to_arrow().num_rows == 0
    shown = spark.read.format("statestore").option("stateVarName", "sum").load(str(runner.location))
    assert {row.key.key: row.value.value for row in shown.collect()} == sums


def sql_job(name: str, tmp_path: Path) -> str:
    """Directory of a savepoint in `vectors/sql`."""
    return str(lay_out(StateVector(VECTORS / "sql" / name), tmp_path / "flink").parent)


def sql_row(number: int) -> tuple[str | None, int, int | None]:
    """Row of the jobs in `vectors/sql` (`SqlJob.row`)."""
    word = None if number % 7 == 6 else f"word {number % 7}"
    return word, number % 3, None if number % 5 == 0 or number % 7 == 5 else number * 10


def aggregated(frame: DataFrame) -> DataFrame:
    """The query of the jobs in `vectors/sql`."""
    value = sf.col("v")
    return frame.groupBy("word", "day").agg(
        sf.count("*").alias("rows"),
        sf.count(value).alias("values"),
        sf.sum(value).alias("total"),
        sf.min(value).alias("least"),
        sf.max(value).alias("most"),
    )


SQL_SCHEMA = "word string, day int, v long"


def test_an_aggregation_continues(runner: QueryRunner, spark: SparkSession, tmp_path: Path) -> None:
    feed = runner.feed("events", SQL_SCHEMA)
    sink = BatchLog(tmp_path / "out", "update", keys=2)
    feed.drop([])
    runner.drain(aggregated(feed.stream(spark)), sink)
    done = import_flink_savepoint(sql_job("f120-sql-hashmap", tmp_path), runner.location, force=True)
    (state,) = done.states
    assert (state.spark, state.spark_kind, state.rows) == ("0/default", "aggregate", 21)
    new = [sql_row(number) for number in range(SQL_ROWS, SQL_ROWS + 50)] + [("new", 0, 5)]
    feed.drop(new)
    runner.drain(aggregated(feed.stream(spark)), sink)
    everything = spark.createDataFrame([*map(sql_row, range(SQL_ROWS)), *new], SQL_SCHEMA)
    answer: Rows = [tuple(row) for row in aggregated(everything).collect()]
    touched = {row[:2] for row in new}
    assert_same_rows(runner.finish(sink), [row for row in answer if row[:2] in touched])
    table = read_state(str(runner.location)).to_arrow().to_pylist()
    assert_same_rows([(*row["key"].values(), *row["value"].values()) for row in table], answer)


def test_no_query_starts_from_half_an_import(
    runner: QueryRunner, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would go on from empty state without a word."""
    feed = runner.feed("events", SQL_SCHEMA)
    sink = BatchLog(tmp_path / "out", "update", keys=2)
    feed.drop([])
    runner.drain(aggregated(feed.stream(spark)), sink)
    source = sql_job("f120-sql-hashmap", tmp_path)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SparkLog, "add_commit", interrupt)
        with pytest.raises(KeyboardInterrupt):
            import_flink_savepoint(source, runner.location, force=True)
    feed.drop([("new", 0, 5)])
    with pytest.raises(StreamingQueryException, match="an import into this location was interrupted"):
        runner.drain(aggregated(feed.stream(spark)), sink)
    import_flink_savepoint(source, runner.location, force=True)
    runner.drain(aggregated(feed.stream(spark)), sink)
    assert sink.rows() == [("new", 0, 1, 1, 5, 5, 5)]
    assert read_state(str(runner.location)).to_arrow().num_rows == 22


def test_an_aggregation_without_a_key_continues(runner: QueryRunner, spark: SparkSession, tmp_path: Path) -> None:
    feed = runner.feed("events", SQL_SCHEMA)
    sink = BatchLog(tmp_path / "out", "update", keys=0)

    def plan(frame: DataFrame) -> DataFrame:
        return frame.agg(sf.count("*").alias("rows"), sf.sum("v").alias("total"))

    feed.drop([])
    runner.drain(plan(feed.stream(spark)), sink)
    import_flink_savepoint(sql_job("f120-sql-global", tmp_path), runner.location, force=True)
    feed.drop([("a", 1, 5)])
    runner.drain(plan(feed.stream(spark)), sink)
    values = [sql_row(number)[2] for number in range(SQL_ROWS)]
    total = sum(value for value in values if value is not None)
    assert_same_rows(runner.finish(sink), [(SQL_ROWS + 1, total + 5)])


class OrdersOfFlink:
    """The topic of the job `f120-sql-kafka`: record i is row i of the jobs, in partition i % 3.

    Args:
        servers: address of the broker.
    """

    name = "orders-of-flink"
    partitions = 3

    def __init__(self, servers: str) -> None:
        self._servers = servers
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            admin.create_topics({self.name: {"num_partitions": self.partitions}}, wait_for_metadata=True)

    def delete(self) -> None:
        """Deletes the topic."""
        with KafkaAdminClient(bootstrap_servers=self._servers) as admin:
            admin.delete_topics([self.name])

    def send(self, numbers: range) -> None:
        """Appends records."""
        producer = KafkaProducer(bootstrap_servers=self._servers)
        for number in numbers:
            producer.send(self.name, str(number).encode(), partition=number % self.partitions)
        producer.flush()
        producer.close()

    def stream(self, spark: SparkSession) -> DataFrame:
        """The rows, from the newest record on."""
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", self._servers)
        number = sf.col("value").cast("string").cast("int")
        numbers = (
            reader.option("subscribe", self.name).option("startingOffsets", "latest").load().select(number.alias("i"))
        )
        i = sf.col("i")
        is_null = (i % 5 == 0) | (i % 7 == 5)
        return numbers.select(
            sf.when(i % 7 != 6, sf.concat(sf.lit("word "), (i % 7).cast("string"))).alias("word"),
            (i % 3).alias("day"),
            sf.when(~is_null, i.cast("long") * 10).alias("v"),
        )


@pytest.fixture
def orders(kafka: KafkaBroker) -> Iterator[OrdersOfFlink]:
    topic = OrdersOfFlink(kafka.bootstrap_servers)
    yield topic
    topic.delete()


def test_a_kafka_query_continues_at_the_offsets_of_flink(
    orders: OrdersOfFlink, runner: QueryRunner, spark: SparkSession, tmp_path: Path
) -> None:
    """Records that Flink has read are not read again, and none is left out."""
    sink = BatchLog(tmp_path / "out", "update", keys=2)
    runner.drain(aggregated(orders.stream(spark)), sink, lambda: committed_batches(runner.location) == [0])
    more = SQL_ROWS + 61
    orders.send(range(more))
    done = import_flink_savepoint(sql_job("f120-sql-kafka", tmp_path), runner.location, force=True)
    assert done.continues_there
    assert json.loads(done.starting_offsets or "") == {orders.name: {"0": 100, "1": 100, "2": 100}}
    runner.drain(aggregated(orders.stream(spark)), sink)
    answer: Rows = [
        tuple(row) for row in aggregated(spark.createDataFrame(map(sql_row, range(more)), SQL_SCHEMA)).collect()
    ]
    assert_same_rows(runner.finish(sink), answer)
