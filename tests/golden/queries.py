"""The queries behind the golden locations: small, but together they cover every part of our formats."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_ckpt.operations.rescale import rescale
from spark_ckpt.operations.savepoint import take_savepoint
from spark_ckpt.storage import LocalStorage
from tests.spark.join_query import LEFT, RIGHT, joined, side
from tests.spark.processors import COUNTS, RememberingRows, remembered
from tests.support.events import SCHEMA, events
from tests.support.feeds import Feed
from tests.support.runner import Batches
from tests.support.sinks import Rows

Feeds: TypeAlias = Mapping[str, Feed]

CKPT = "spark.sql.streaming.stateStore.ckpt."
CHECKPOINT, SAVEPOINT = "checkpoint", "savepoint"


@dataclass(frozen=True)
class GoldenQuery:
    """A query whose location is stored.

    Args:
        name: folder of its golden location.
        schemas: DDL schema of each feed, by the feed's name.
        batches: input of each feed; the last batch is for the release that continues the query.
        plan: the query over its feeds.
        answer: the batch answer over all input.
        mode: output mode.
        reads: arguments of `read_state`, one set for each table whose rows are stored.
        conf: settings.
        finish: changes the location after the last batch.
        root: stored part of the query's folder, as a path below it.
        since: oldest Spark minor version that runs the query.
    """

    name: str
    schemas: Mapping[str, str]
    batches: Callable[[random.Random], Mapping[str, Batches]]
    plan: Callable[[SparkSession, Feeds], DataFrame]
    answer: Callable[[SparkSession, Feeds], Rows]
    mode: str = "update"
    reads: Sequence[Mapping[str, str]] = ({},)
    conf: Mapping[str, str] = field(default_factory=dict)
    finish: Callable[[Path], None] | None = None
    root: str = CHECKPOINT
    since: str = "4.0"

    def settings(self) -> dict[str, str]:
        """Settings of the session that runs the query."""
        common = {
            "spark.sql.shuffle.partitions": "2",
            CKPT + "maxParallelism": "8",
            CKPT + "retained": "3",
            CKPT + "inlineThreshold": "0",
        }
        return {**common, **self.conf}


def _events(rng: random.Random) -> Mapping[str, Batches]:
    return {"events": events(rng, 5, per_batch=20, keys=8)}


def _sides(rng: random.Random) -> Mapping[str, Batches]:
    return {"left": side(rng, "left"), "right": side(rng, "right")}


def _count(frame: DataFrame) -> DataFrame:
    return frame.groupBy("key").agg(sf.count("*").alias("n"), sf.sum("value").alias("total"))


def _counting(name: str, **options: object) -> GoldenQuery:
    return GoldenQuery(
        name=name,
        schemas={"events": SCHEMA},
        plan=lambda spark, feeds: _count(feeds["events"].stream(spark)),
        answer=lambda spark, feeds: [tuple(row) for row in _count(feeds["events"].table(spark)).collect()],
        **{"batches": _events, **options},  # type: ignore[arg-type]
    )


def _joining(name: str, version: str, since: str) -> GoldenQuery:
    return GoldenQuery(
        name,
        {"left": LEFT, "right": RIGHT},
        _sides,
        lambda spark, feeds: joined(feeds["left"].stream(spark), feeds["right"].stream(spark), "full_outer"),
        lambda spark, feeds: [
            tuple(row)
            for row in joined(feeds["left"].table(spark), feeds["right"].table(spark), "full_outer").collect()
        ],
        mode="append",
        reads=({"side": "left"}, {"side": "right"}),
        conf={"spark.sql.streaming.join.stateFormatVersion": version},
        since=since,
    )


def _known(feeds: Feeds) -> Rows:
    known = remembered([[tuple(row) for row in batch] for batch in feeds["events"].batches])
    return [(key, n, str(sorted(listed)), str(sorted(mapped.items()))) for key, (n, listed, mapped) in known.items()]


def _to_three_partitions(location: Path) -> None:
    rescale(LocalStorage(location), 3, force=True)


def _to_savepoint(location: Path) -> None:
    take_savepoint(LocalStorage(location), LocalStorage(location.parent / SAVEPOINT))


QUERIES = (
    _counting("files"),
    _counting("first-batch", batches=lambda rng: {"events": events(rng, 2, per_batch=20, keys=8)}),
    _counting(
        "inline-with-state-ids",
        conf={CKPT + "inlineThreshold": "20480", "spark.sql.streaming.stateStore.checkpointFormatVersion": "2"},
    ),
    _counting("rescaled", finish=_to_three_partitions),
    _counting("savepoint", finish=_to_savepoint, root=SAVEPOINT),
    _counting("standalone", conf={CKPT + "store": "standalone"}),
    _counting("every-write", conf={CKPT + "changeFeed": "writes"}),
    _counting("compressed", conf={CKPT + "compression": "zstd", CKPT + "maxParallelism": "4"}),
    _joining("join", "2", since="4.0"),
    _joining("join-in-column-families", "3", since="4.1"),
    GoldenQuery(
        "transform-with-state",
        {"events": SCHEMA},
        _events,
        lambda spark, feeds: (
            feeds["events"].stream(spark).groupBy("key").transformWithState(RememberingRows(), COUNTS, "update", "none")
        ),
        lambda spark, feeds: _known(feeds),
        reads=({"variable": "count"}, {"variable": "listed"}, {"variable": "mapped"}),
        since="4.1",
    ),
)
