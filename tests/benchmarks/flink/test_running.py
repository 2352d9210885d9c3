"""Flink runs the queries, and answers as Spark's batch queries do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.flink.answers import expected, session
from benchmarks.flink.inputs import Files, Topic, flattened
from benchmarks.flink.releases import DEFAULT, MODULE, RELEASES
from benchmarks.flink.running import BACKENDS, Answer, Setup, run
from benchmarks.flink.sql import QUERIES
from benchmarks.nexmark.feeds import PARTITIONS, Topics
from benchmarks.nexmark.generator import Stream, prepare
from benchmarks.stores.runner import RunFailedError
from tests.support.kafka import KafkaBroker, connector_jars
from tests.support.maven import build
from tests.support.topics import Topic as KafkaTopic

FILES = 6


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("input"), Stream(5000, FILES, 500, seed=3))


def test_flat_files_have_a_column_per_field(feed: Path) -> None:
    flat = flattened(feed)
    nested, found = (pq.read_table(next(iter(sorted(folder.iterdir())))) for folder in (feed, flat))
    assert found.num_rows == nested.num_rows
    assert "bid_auction" in found.column_names
    assert found["bid_auction"].to_pylist() == [bid and bid["auction"] for bid in nested["bid"].to_pylist()]
    assert flattened(feed) == flat


@pytest.fixture(scope="module")
def job() -> None:
    for release in RELEASES.values():
        build(MODULE, f"{release.line}/classpath.txt", *release.options)


@pytest.fixture(scope="module")
def answers(feed: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Answer]:
    # The first session of the process decides about the jars of later ones.
    with session(tmp_path_factory.mktemp("spark"), connector_jars()) as spark:
        return {query: expected(spark, query, sorted(feed.iterdir())[:FILES]) for query in QUERIES}


@pytest.mark.flink
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.usefixtures("job")
def test_flink_answers_as_spark_does(
    query: str, backend: str, feed: Path, answers: Mapping[str, Answer], tmp_path: Path
) -> None:
    events, setup = Files(flattened(feed), FILES), Setup(DEFAULT, "1g")
    answer, rounds = run(query, backend, events, 1, setup, tmp_path / "work", tmp_path / "log")
    assert answer == answers[query]
    assert answer.rows > 0
    assert rounds[0].seconds > 0
    assert rounds[0].cpu_seconds > 0
    assert not (tmp_path / "work").exists()


@pytest.mark.flink
@pytest.mark.parametrize("is_session", [False, True], ids=["client", "session"])
@pytest.mark.parametrize("line", RELEASES)
@pytest.mark.usefixtures("job")
def test_each_release_in_a_session_as_well(
    line: str, is_session: bool, feed: Path, answers: Mapping[str, Answer], tmp_path: Path
) -> None:
    events, setup = Files(flattened(feed), FILES), Setup(RELEASES[line], "1g", is_session)
    answer, rounds = run("q3", "flink-rocksdb", events, 2, setup, tmp_path / "work", tmp_path / "log")
    assert answer == answers["q3"]
    assert len(rounds) == 2
    assert all(one.cpu_seconds > 0 for one in rounds)


@pytest.mark.flink
@pytest.mark.usefixtures("job")
def test_a_topic_has_the_same_answers(feed: Path, answers: Mapping[str, Answer], tmp_path: Path) -> None:
    files = sorted(feed.iterdir())[:FILES]
    with KafkaBroker(tmp_path / "broker") as broker:
        servers = broker.bootstrap_servers
        KafkaTopic(servers, "", "events").create(PARTITIONS)
        with session(tmp_path / "spark", connector_jars()) as spark:
            Topics(servers, spark, feed).write("events", files)
        for query in QUERIES:
            topic, setup = Topic(servers, "events"), Setup(DEFAULT, "1g")
            answer, _ = run(query, "flink-hashmap", topic, 1, setup, tmp_path / "work", tmp_path / "log")
            assert answer == answers[query], query


@pytest.mark.flink
@pytest.mark.usefixtures("job")
def test_a_job_that_fails_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "feed").mkdir()
    (tmp_path / "feed" / "000000.parquet").write_bytes(b"no Parquet file")
    events = Files(tmp_path / "feed", 1)
    with pytest.raises(RunFailedError, match="q3 on flink-hashmap: Flink ended early"):
        run("q3", "flink-hashmap", events, 1, Setup(DEFAULT, "1g"), tmp_path / "work", tmp_path / "log")
