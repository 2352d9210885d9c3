"""The command that evolves a query, and queries that Spark cannot plan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from spark_ckpt import evolve
from spark_ckpt.evolution import QueryPlanError
from tests.support.changed_query import ALL, RECENT, SCHEMA, ChangedQuery, last, rows, touched
from tests.support.cli import run

pytestmark = pytest.mark.usefixtures("ours_only")


def test_the_command_evolves(changed: ChangedQuery, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a session of its own in production; here in the test's."""
    changed.run(changed.source().groupBy("k").agg(sf.count("*")))
    job = changed.folder / "job.py"
    job.write_text(
        "from pyspark.sql import functions as sf\n"
        "def build(spark):\n"
        f"    rows = spark.readStream.schema({SCHEMA!r}).json({str(changed.folder / 'in0')!r})\n"
        "    return rows.groupBy('k').agg(sf.count('*'), sf.max('v')).writeStream.outputMode('update')\n"
    )

    @contextmanager
    def session(*_: object) -> Iterator[SparkSession]:
        yield changed.spark

    monkeypatch.setattr("spark_ckpt.cli.commands.evolve.spark_session", session)
    result = run("evolve", changed.location, "--query", f"{job}:build", "--dry-run", "--json")
    assert result.status == 0, result.stderr
    assert [store["rewritten"] for store in result.json["stores"]] == [True]
    assert run("evolve", changed.location, "--query", f"{job}:build").status == 0
    changed.more()
    got = last(changed.run(changed.source().groupBy("k").agg(sf.count("*"), sf.max("v"))), 1)
    for key in touched(RECENT, lambda row: row["k"]):
        recent = max(row["v"] for file in RECENT for row in rows(file) if row["k"] == key)
        assert got[key,] == (sum(row["k"] == key for file in ALL for row in rows(file)), recent)


def test_what_spark_cannot_plan_is_one_error(changed: ChangedQuery) -> None:
    changed.run(changed.source().groupBy("k").count())
    with pytest.raises(QueryPlanError, match="no streaming query"):
        evolve(changed.spark.range(3), changed.location)
    with pytest.raises(QueryPlanError, match="append"):
        evolve(changed.source().groupBy("k").count(), changed.location, output_mode="append", dry_run=True)
    with pytest.raises(QueryPlanError, match="output mode is 'other'"):
        evolve(changed.source().groupBy("k").count(), changed.location, output_mode="other")
