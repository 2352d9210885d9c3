"""Flink runs the queries, and answers as Spark's batch queries do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.flink.answers import expected, session
from benchmarks.flink.running import BACKENDS, MODULE, Answer, flattened, run
from benchmarks.flink.sql import QUERIES
from benchmarks.nexmark.generator import Stream, prepare
from benchmarks.stores.runner import RunFailedError
from tests.support.maven import build

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
    build(MODULE.parent, "classpath.txt")


@pytest.fixture(scope="module")
def answers(feed: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Answer]:
    with session(tmp_path_factory.mktemp("spark")) as spark:
        return {query: expected(spark, query, sorted(feed.iterdir())[:FILES]) for query in QUERIES}


@pytest.mark.flink
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.usefixtures("job")
def test_flink_answers_as_spark_does(
    query: str, backend: str, feed: Path, answers: Mapping[str, Answer], tmp_path: Path
) -> None:
    answer, rounds = run(query, backend, flattened(feed), FILES, 1, "1g", tmp_path / "work", tmp_path / "log")
    assert answer == answers[query]
    assert answer.rows > 0
    assert rounds[0].seconds > 0
    assert rounds[0].cpu_seconds > 0
    assert not (tmp_path / "work").exists()


@pytest.mark.flink
@pytest.mark.usefixtures("job")
def test_a_job_that_fails_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "feed").mkdir()
    (tmp_path / "feed" / "000000.parquet").write_bytes(b"no Parquet file")
    with pytest.raises(RunFailedError, match="q3 on flink-hashmap: Flink ended early"):
        run("q3", "flink-hashmap", tmp_path / "feed", 1, 1, "1g", tmp_path / "work", tmp_path / "log")
