"""Joins change in the middle of the input, and equal plain Python over all of it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.support.changed_query import ALL, RECENT, ChangedQuery, rows, seconds
from tests.support.spark_version import needs_join_format

pytestmark = pytest.mark.usefixtures("ours_only")


def joined(changed: ChangedQuery, left: Sequence[str], right: Sequence[str], how: str = "inner") -> DataFrame:
    a = changed.source().select("k", "id", "ts", *left).withWatermark("ts", "1 hour").alias("a")
    b = changed.source(1).select("k", "id", "ts", *right).withWatermark("ts", "1 hour").alias("b")
    hour = "interval 1 hour"
    on = sf.expr(f"a.k = b.k and a.id = b.id and a.ts >= b.ts - {hour} and a.ts <= b.ts + {hour}")
    times = (sf.col("a.ts").cast("long"), sf.col("b.ts").cast("long"))
    return a.join(b, on, how).select("a.k", "a.id", *times, *left, *right)


@pytest.mark.core
@pytest.mark.parametrize(
    "join_format",
    [
        "2",
        pytest.param("3", marks=[pytest.mark.long, needs_join_format(3)]),
        pytest.param("4", marks=needs_join_format(4)),
    ],
)
def test_the_payload_of_a_join(changed: ChangedQuery, spark: SparkSession, join_format: str) -> None:
    """A column more on the left, null in earlier rows; one less on the right."""
    spark.conf.set("spark.sql.streaming.join.stateFormatVersion", join_format)
    spark.conf.set("spark.sql.streaming.join.stateFormatV4.enabled", "true")  # Spark 4.2 restricts it to its own tests
    changed.run(joined(changed, ["v"], ["w", "j"]), "append")
    changed.more()
    frame = joined(changed, ["v", "p"], ["w"])
    changed.refused(joined(changed, ["v"], ["w"], "left_outer"), "a LEFT OUTER join was a INNER join", "append")
    changed.evolve(frame, "append")
    out = changed.run(frame, "append")
    got = [(*row[1:6], None if row[6] is None else float(row[6]), row[7]) for row in out]
    want = []
    for file in ALL:
        for other in ALL:
            if max(file, other) < 3:
                continue
            for a in rows(file):
                for b in rows(other, 1):
                    if (a["k"], a["id"]) == (b["k"], b["id"]) and abs(seconds(a) - seconds(b)) <= 3600:
                        price = a["p"] if file in RECENT else None
                        want.append((a["k"], a["id"], seconds(a), seconds(b), a["v"], price, b["w"]))
    assert sorted(got, key=str) == sorted(want, key=str)
