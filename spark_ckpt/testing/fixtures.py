"""Fixtures of pytest: add `pytest_plugins = ["spark_ckpt.testing.fixtures"]` to the outermost `conftest.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_ckpt.session import configure
from spark_ckpt.testing.query_test import QueryTest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@pytest.fixture(scope="session")
def streaming_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small local session with our state store: two cores, two partitions, times in UTC, no UI. Override it to have
    other settings."""
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    )
    spark = configure(builder).getOrCreate()
    yield spark
    spark.stop()


@pytest.fixture
def query_test(streaming_spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., QueryTest]]:
    """Makes the `QueryTest` of a query: `query_test(query, inputs, output_mode="update")`. It is closed after the
    test."""
    with ExitStack() as stack:

        def make(query: Callable[..., DataFrame], inputs: Mapping[str, StructType | str], **options: Any) -> QueryTest:  # noqa: ANN401
            options.setdefault("directory", tmp_path / "query")
            return stack.enter_context(QueryTest(streaming_spark, query, inputs, **options))

        yield make
