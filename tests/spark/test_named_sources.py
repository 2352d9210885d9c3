"""Queries that name their sources, and since Spark 4.3 their sink: the logs that Spark keeps by name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import partial, reduce
from pathlib import Path

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_ckpt import evolve, read_state
from spark_ckpt.config import PROVIDER_CLASS, PROVIDER_KEY
from spark_ckpt.migrate import export_location, import_location
from spark_ckpt.migrate.stopped_query import HDFS_PROVIDER
from tests.support.cli import run
from tests.support.invariants import assert_invariants
from tests.support.provider import ProviderUnderTest
from tests.support.spark_version import MINOR, order, since

pytestmark = [pytest.mark.core, since("4.2", "names of sources")]

NAMES_SINKS = order(MINOR) >= order("4.3")
EVOLUTION = "spark.sql.streaming.queryEvolution."

SCHEMA = "user STRING, n LONG"
SOURCES = ("clicks", "views", "carts")


class NamedQuery:
    """A count by user over sources with names.

    Args:
        spark: the session.
        folder: folder of input and checkpoints.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self.location = folder / "checkpoint"
        self.answer: Counter[str] = Counter()
        self._files = 0
        for name in SOURCES:
            (folder / name).mkdir()

    def add(self, source: str, *users: str) -> None:
        """Adds a file to a source."""
        self._files += 1
        lines = "\n".join(json.dumps({"user": user, "n": self._files}) for user in users)
        (self._folder / source / f"{self._files}.json").write_text(lines)
        self.answer.update(users)

    def frame(self, order: tuple[str, ...] = SOURCES, also: Sequence[Column] = ()) -> DataFrame:
        """The query, with its sources in some order, and with other aggregates beside the count."""
        streams = [self._spark.readStream.name(name).schema(SCHEMA).json(str(self._folder / name)) for name in order]
        return reduce(DataFrame.unionByName, streams).groupBy("user").agg(F.count("*").alias("count"), *also)

    def drain(self, location: Path | None = None, frame: DataFrame | None = None) -> None:
        """Runs the query, or a changed one, over all of its input."""
        writer = (frame or self.frame()).writeStream.format("noop").outputMode("update")
        if NAMES_SINKS:
            writer._jwrite.name("counted")  # PySpark has no such method
        place = str(location or self.location)
        query = writer.trigger(availableNow=True).option("checkpointLocation", place).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()

    def state(self, location: Path | None = None) -> dict[str, int]:
        """Counts by user in the newest checkpoint."""
        rows = read_state(location or self.location).to_arrow().to_pylist()
        return {row["key"]["user"]: row["value"]["count"] for row in rows}


@pytest.fixture
def begun_with() -> str:
    """The provider of the query's first batches."""
    return PROVIDER_CLASS


@pytest.fixture
def query(spark: SparkSession, provider: ProviderUnderTest, tmp_path: Path, begun_with: str) -> NamedQuery:
    if not provider.is_ours:
        pytest.skip("no checkpoints of spark-ckpt")
    spark.conf.set(PROVIDER_KEY, begun_with)
    spark.conf.set(EVOLUTION + "enableSourceEvolution", "true")
    if NAMES_SINKS:
        spark.conf.set(EVOLUTION + "enableSinkEvolution", "true")
    spark.conf.set("spark.sql.streaming.offsetLog.formatVersion", "2")
    made = NamedQuery(spark, tmp_path)
    for source, users in (("clicks", "ab"), ("views", "ac"), ("carts", "a")):
        made.add(source, *users)
        made.drain()
    return made


def enter(*arguments: object) -> str:
    done = run(*arguments)
    assert done.status == 0, done.stderr
    return done.stdout


def test_commands_name_the_sources(query: NamedQuery) -> None:
    assert (query.location / "offsets" / "2").read_text().startswith("v2\n")
    assert (query.location / "commits" / "2").read_text().startswith("v3\n" if NAMES_SINKS else "v1\n")
    assert query.state() == query.answer
    listed = run("list", query.location, "--sources", "--json").json["checkpoints"]
    assert {source["name"] for source in listed[-1]["sources"]} == set(SOURCES)
    enter("verify", query.location, "--all")
    assert_invariants(query.location, orphans=True)


def test_sources_may_change_their_order(query: NamedQuery) -> None:
    """The first one stays: a union has the columns of its first branch, and with them the key changes."""
    query.add("views", "d")
    query.add("carts", "d", "a")
    query.drain(frame=query.frame(("clicks", "carts", "views")))
    assert query.state() == query.answer


def test_a_savepoint_and_a_restored_location(query: NamedQuery, tmp_path: Path) -> None:
    enter("savepoint", query.location, tmp_path / "savepoint")
    enter("restore", tmp_path / "savepoint", tmp_path / "new")
    query.add("views", "a", "d")
    query.drain(tmp_path / "new")
    assert query.state(tmp_path / "new") == query.answer


def test_a_rollback(query: NamedQuery) -> None:
    listed = run("list", query.location, "--json").json["checkpoints"]
    target = next(each["id"] for each in listed if each["batch_id"] == 0)
    enter("rollback", query.location, "--id", target, "--force")
    assert sum(query.state().values()) < sum(query.answer.values())
    query.add("clicks", "b")
    query.drain()
    assert query.state() == query.answer


@pytest.mark.parametrize("partitions", [6, 1])
def test_a_rescale(query: NamedQuery, partitions: int) -> None:
    enter("rescale", query.location, "--partitions", partitions, "--force")
    query.add("clicks", "b", "e")
    query.drain()
    assert query.state() == query.answer
    assert f"{partitions} partition" in enter("state", query.location)


def test_offsets_by_name(query: NamedQuery) -> None:
    shown = enter("offsets", query.location)
    assert all(name in shown for name in SOURCES)


def test_a_changed_query(query: NamedQuery, tmp_path: Path) -> None:
    changed = partial(query.frame, also=[F.max("n").alias("last")])
    done = evolve(changed(), query.location, new_location=tmp_path / "evolved", output_mode="update")
    assert done.checkpoint_id is not None
    query.add("views", "a")
    query.drain(tmp_path / "evolved", frame=changed())
    assert query.state(tmp_path / "evolved") == query.answer


@pytest.mark.parametrize("begun_with", [HDFS_PROVIDER])
def test_an_import(query: NamedQuery, spark: SparkSession) -> None:
    import_location(spark, str(query.location), force=True)
    assert query.state() == query.answer
    spark.conf.set(PROVIDER_KEY, PROVIDER_CLASS)
    query.add("views", "a", "e")
    query.drain()
    assert query.state() == query.answer
    assert_invariants(query.location)


def test_an_export(query: NamedQuery, spark: SparkSession, tmp_path: Path) -> None:
    exported = tmp_path / "exported"
    export_location(spark, str(query.location), str(exported), "spark-hdfs", force=True)
    spark.conf.set(PROVIDER_KEY, HDFS_PROVIDER)
    query.add("clicks", "a", "e")
    query.drain(exported)
    counts = spark.read.format("statestore").load(str(exported)).collect()
    assert {row["key"]["user"]: row["value"]["count"] for row in counts} == query.answer
