"""The page about history: both of its ways lead to the state of one query that has seen everything."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.docs.pages import DOCS, command_lines
from tests.support.kafka import KafkaBroker
from tests.support.provider import ProviderUnderTest
from tests.support.query_page import QueryPage, use_session
from tests.support.topics import Topic, unique_name

PAGE = DOCS / "start-from-history.md"
HISTORY = [("ann", 5), ("bob", 7), ("ann", 1)]
LIVE = [("ann", 2), ("cyd", 3), ("cyd", 4)]


@pytest.fixture(autouse=True)
def session(spark: SparkSession, provider: ProviderUnderTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not provider.is_ours:
        pytest.skip("only our provider has state that can be written")

    use_session(monkeypatch, spark)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def topic(kafka: KafkaBroker) -> Topic:
    return Topic(kafka.bootstrap_servers, "user string, amount int", unique_name("orders")).create(2)


@pytest.fixture
def page(spark: SparkSession, tmp_path: Path, topic: Topic) -> QueryPage:
    (tmp_path / "data" / "history").mkdir(parents=True)
    table = pa.table({"user": [user for user, _ in HISTORY], "amount": pa.array([n for _, n in HISTORY], pa.int32())})
    pq.write_table(table, tmp_path / "data" / "history" / "1.parquet")
    changes = {"broker:9092": topic.servers, '"subscribe", "orders"': f'"subscribe", "{topic.name}"'}
    return QueryPage(spark, tmp_path, PAGE, changes)


def totals(rows: Sequence[tuple[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for user, amount in rows:
        found[user] += amount
    return found


def test_the_query_runs_over_history(page: QueryPage, topic: Topic) -> None:
    """Parquet files, then a real Kafka broker: equal to all rows in plain Python."""
    page.drain("history", "totals")
    (command,) = [line for line in command_lines(PAGE) if "job.py:live" in line]
    page.enter(command)
    topic.send(LIVE)
    page.drain("live", "totals")
    assert page.state("totals") == {user: (total,) for user, total in totals([*HISTORY, *LIVE]).items()}


def test_the_state_is_written(page: QueryPage, topic: Topic) -> None:
    """From Parquet files, and the topic from an offset on."""
    topic.send([("ann", 1000)])  # also in the files
    offset = {topic.name: {str(partition): end for partition, end in topic.end_offsets().items()}}
    page.names["begin"](page.spark, json.dumps(offset))
    topic.send(LIVE)
    query = page.names["averages"](page.names["orders"](page.spark))
    page.names["averages of orders"] = lambda _: query.writeStream.outputMode("update")
    page.drain("averages of orders", "averages")
    counts = Counter(user for user, _ in [*HISTORY, *LIVE])
    expected = {user: (counts[user], total, counts[user]) for user, total in totals([*HISTORY, *LIVE]).items()}
    assert page.state("averages") == expected
