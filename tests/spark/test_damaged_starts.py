"""Single damages to Spark's own files: `verify`, `doctor` and `savepoint` say what a real start of the query says.

Both ways: a location that they call whole starts, and its output is right; one that they call damaged does not.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_ckpt.errors import SparkCkptError
from spark_ckpt.operations.doctor import Verdict, examine
from spark_ckpt.operations.restore import restore
from spark_ckpt.operations.savepoint import take_savepoint
from spark_ckpt.operations.verify import verify
from spark_ckpt.storage import LocalStorage
from tests.spark.join_query import LEFT, RIGHT, joined, side
from tests.spark.processors import COUNTS, RememberingFrames
from tests.spark.real_starts import STARTS_AND_IS_RIGHT, Restarts
from tests.support.damaged_files import FileDamage, single_damages
from tests.support.events import SCHEMA, events
from tests.support.feeds import Feed
from tests.support.kafka import KafkaBroker
from tests.support.provider import ProviderUnderTest
from tests.support.topics import Topic, unique_name

BATCHES = 5
"""Batches before the damage; a file source compacts its log every third entry."""


@pytest.fixture(autouse=True)
def ours_only(provider: ProviderUnderTest, spark: SparkSession) -> None:
    """Two partitions, and a short log of file sources."""
    if not provider.is_ours:
        pytest.skip("about our checkpoints")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    spark.conf.set("spark.sql.streaming.fileSource.log.compactInterval", "3")


class Queries:
    """Queries of all kinds over input of this test.

    Args:
        spark: session of the query.
        folder: folder of this test.
        rng: source of the input.
        broker: returns a Kafka broker.
    """

    def __init__(
        self, spark: SparkSession, folder: Path, rng: random.Random, broker: Callable[[], KafkaBroker]
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._rng = rng
        self._broker = broker

    def stopped(self, kind: str) -> Restarts:
        """A stopped query; `aggregation, uncommitted` is one that stopped before it committed its last batch."""
        name, _, ending = kind.partition(", ")
        plan, add_input, mode = getattr(self, name)()
        restarts = Restarts(self._spark, self._folder, plan, mode)
        restarts.keep(add_input, BATCHES, is_committed=not ending)
        return restarts

    def aggregation(self) -> tuple[Callable[[], DataFrame], Callable[[int], None], str]:
        feed, drop = self._feed()
        return lambda: _counted(feed.stream(self._spark)), drop, "update"

    def transform_with_state(self) -> tuple[Callable[[], DataFrame], Callable[[int], None], str]:
        feed, drop = self._feed()

        def plan() -> DataFrame:
            grouped = feed.stream(self._spark).groupBy("key")
            return grouped.transformWithStateInPandas(RememberingFrames(), COUNTS, "update", "none")

        return plan, drop, "update"

    def join(self) -> tuple[Callable[[], DataFrame], Callable[[int], None], str]:
        left, right = Feed(self._folder / "left", LEFT), Feed(self._folder / "right", RIGHT)
        rows = [zip(side(self._rng, "left", 8), side(self._rng, "right", 8), strict=True)]

        def drop(batches: int) -> None:
            for _ in range(batches):
                of_left, of_right = next(rows[0])
                # Of each batch, some rows are sure to meet: input that is not read shows.
                time = of_left[0][0]
                left.drop([*of_left, (time, 7, "left")])
                right.drop([*of_right, (time, 7, "right")])

        files = [1]

        def plan() -> DataFrame:
            # Later starts read all new files in one batch, and no row is late: input that is read twice or not shows.
            limit, files[0] = files[0], 8
            return joined(left.stream(self._spark, limit), right.stream(self._spark, limit), "inner", "1 day")

        return plan, drop, "append"

    def kafka(self) -> tuple[Callable[[], DataFrame], Callable[[int], None], str]:
        rows = iter(events(self._rng, BATCHES + 1))
        topic = Topic(self._broker().bootstrap_servers, SCHEMA, unique_name("damage")).create(2)

        def send(batches: int) -> None:
            for _ in range(batches):
                topic.send(next(rows))

        return lambda: _counted(topic.stream(self._spark, maxOffsetsPerTrigger=40)), send, "update"

    def _feed(self) -> tuple[Feed, Callable[[int], None]]:
        feed, rows = Feed(self._folder / "feed", SCHEMA), iter(events(self._rng, BATCHES + 1))

        def drop(batches: int) -> None:
            for _ in range(batches):
                feed.drop(next(rows))

        return feed, drop


def _counted(frame: DataFrame) -> DataFrame:
    return frame.groupBy("key").agg(sf.count("*"), sf.sum("value"))


@pytest.fixture
def queries(spark: SparkSession, tmp_path: Path, rng: random.Random, request: pytest.FixtureRequest) -> Queries:
    return Queries(spark, tmp_path, rng, lambda: request.getfixturevalue("kafka"))


def mismatches(restarts: Restarts, damages: Iterable[FileDamage], folder: Path) -> list[str]:
    """What the commands say wrongly about damages to a location."""
    wrong = []
    for damage in damages:
        location = restarts.put_back()
        damage.apply(location)
        storage = LocalStorage(location)
        is_whole = verify(storage).is_whole
        is_healthy = examine(storage).verdict is not Verdict.DAMAGED
        savepoint, restored = folder / "savepoint", folder / "restored"
        is_saved = _saved(storage, savepoint)
        outcome = restarts.outcome()
        starts, said = outcome == STARTS_AND_IS_RIGHT, f"{damage}: {outcome}"
        if is_whole != starts:
            wrong.append(f"{said}, verify says {is_whole}: {restarts.error}")
        if is_healthy != starts:
            wrong.append(f"{said}, doctor says {is_healthy}: {restarts.error}")
        if starts and not is_saved and damage.name != restarts.before_committed:
            wrong.append(f"{said}, but no savepoint is taken")
        if is_saved and not starts:
            # It is one of an earlier checkpoint, or without the damaged file.
            restore(LocalStorage(savepoint), LocalStorage(restored), keep_query_id=True)
            if (after := restarts.outcome(restored)) != STARTS_AND_IS_RIGHT:
                wrong.append(f"{said}, and its savepoint {after}: {restarts.error}")
        for copy in (savepoint, restored):
            shutil.rmtree(copy, ignore_errors=True)
    return wrong


def _saved(storage: LocalStorage, target: Path) -> bool:
    try:
        take_savepoint(storage, LocalStorage(target))
    except SparkCkptError:
        return False
    return True


SOME = {
    "aggregation": [
        *("offsets/3 deleted", "offsets/3 emptied", "offsets/4 emptied", "offsets/4 changed"),
        *("commits/4 cut", "metadata deleted", "metadata changed"),
        *("sources/0/1 deleted", "sources/0/2.compact deleted", "sources/0/2.compact changed"),
        *("sources/0/4 deleted", "sources/0/4 emptied"),
        *("state/0/_metadata/metadata deleted", "state/0/_metadata/metadata changed"),
        *("state/0/0/_metadata/schema deleted", "state/0/0/_metadata/schema cut"),
        "state/0/0/_metadata/schema changed",
    ],
    "aggregation, uncommitted": ["offsets/4 emptied", "offsets/3 changed", "commits/3 cut", "sources/0/4 deleted"],
    "join": ["sources/1/4 emptied", "state/0/0/right-keyToNumValues/_metadata/schema changed"],
    "transform_with_state": [
        *("state/0/_metadata/v2/0 deleted", "state/0/_metadata/v2/0 cut", "state/0/_metadata/v2/0 changed"),
        *("state/0/_stateSchema/default/* deleted", "state/0/_stateSchema/default/* changed"),
    ],
    "kafka": ["offsets/3 emptied", "offsets/4 cut", "sources/0/0 deleted", "sources/0/0 emptied"],
}
"""Damages by kind of query: at least one of each rule of Spark's."""

OF_OTHERS = ("join", "kafka")
"""Kinds whose rules are those of other kinds, in other files."""


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.long if kind in OF_OTHERS else ()) for kind in SOME]
)
def test_the_commands_say_what_a_start_says(queries: Queries, kind: str, tmp_path: Path) -> None:
    """Some damages to a query of each kind."""
    restarts = queries.stopped(kind)
    of = [damage for damage in single_damages(restarts.location) if any(_fits(damage, name) for name in SOME[kind])]
    assert len(of) == len(SOME[kind]), "a file has another name"
    assert not (wrong := mismatches(restarts, of, tmp_path)), "\n".join(wrong)


def _fits(damage: FileDamage, name: str) -> bool:
    return Path(str(damage)).match(name)


EIGHTHS = (0, 2, 6, 8)
"""Places of further changed bytes in a file, in eighths of its size."""


@pytest.mark.long
@pytest.mark.parametrize("eighths", [None, *EIGHTHS])
@pytest.mark.parametrize("kind", SOME)
def test_all_damages(queries: Queries, kind: str, eighths: int | None, tmp_path: Path) -> None:
    """Every damage to every file, or a change of a byte at another place of each."""
    restarts = queries.stopped(kind)
    of = list(single_damages(restarts.location))
    if eighths is not None:
        of = [
            FileDamage(name, "changed", size * eighths // 8)
            for name in dict.fromkeys(damage.name for damage in of)
            for size in [(restarts.location / name).stat().st_size - 1]
        ]
    assert of
    assert not (wrong := mismatches(restarts, of, tmp_path)), "\n".join(wrong)
