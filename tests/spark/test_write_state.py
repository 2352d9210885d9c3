"""A new query begins with written state, and continues like one query that has seen everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from spark_ckpt import read_state, write_state
from spark_ckpt.bootstrap import BootstrapRefusedError, WrittenState
from spark_ckpt.config import PROVIDER_KEY
from spark_ckpt.edit.errors import EditRowError
from spark_ckpt.operations.errors import TargetNotEmptyError
from spark_ckpt.operations.verify import verify
from spark_ckpt.storage import LocalStorage
from tests.support.changed_query import ALL, SCHEMA, START, ChangedQuery, rows
from tests.support.kills import KilledError
from tests.support.spark_version import needs_rows

pytestmark = pytest.mark.usefixtures("ours_only")
HISTORY = 3
"""Files before the query begins."""

HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


class Begun:
    """A query whose state is written from history, beside one that has seen everything."""

    def __init__(self, changed: ChangedQuery) -> None:
        self.changed = changed
        self.location = changed.location
        self.history = changed.spark.read.schema(SCHEMA).json([str(changed.folder / f"in0/{n}.json") for n in range(3)])
        changed.more()
        self.live = changed.folder / "live"
        self.live.mkdir()
        for file in (3, 4):
            (self.live / f"{file}.json").symlink_to(changed.folder / f"in0/{file}.json")

    def stream(self) -> DataFrame:
        reader = self.changed.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.live))

    def write(self, frame: DataFrame, rows: Any, mode: str = "update", **options: Any) -> WrittenState:
        done = write_state(frame, self.location, rows, output_mode=mode, **options)
        self.changed.judge.check(Path(self.location))
        assert verify(LocalStorage(Path(self.location)), everything=True).is_whole
        return done

    def everything(self, query: Callable[[DataFrame], DataFrame], mode: str) -> str:
        """Location of the query over everything, after its run."""
        location = str(self.changed.folder / "everything")
        self.changed.run(query(self.changed.source()), mode, location)
        return location

    def check(self, query: Callable[[DataFrame], DataFrame], mode: str = "update", **which: Any) -> None:
        """Runs the query and one over everything, and compares their states."""
        self.changed.run(query(self.stream()), mode)
        everything = self.everything(query, mode)
        assert state(self.location, **which) == state(everything, **which)
        self.changed.judge.check(Path(self.location))


def plain(value: Any) -> Any:
    """A value that can be compared: lists without their order, numbers as Spark's sums of doubles may differ."""
    if isinstance(value, Mapping):
        return tuple(plain(each) for each in value.values())
    if isinstance(value, list):
        return tuple(sorted(plain(each) for each in value))
    return round(value, 6) if isinstance(value, float) else value


def state(location: str, **which: Any) -> set[Any]:
    rows = read_state(location, **which).to_arrow().drop_columns(["partition_id"]).to_pylist()
    found = {plain(row) for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.fixture
def begun(changed: ChangedQuery) -> Begun:
    return Begun(changed)


# ---- aggregations ----------------------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.usefixtures("checkpoint_format")
def test_an_aggregation_takes_the_buffers_of_the_same_one_over_history(begun: Begun) -> None:
    def totals(orders: DataFrame) -> DataFrame:
        return orders.groupBy("k", "j").agg(
            sf.count("*"), sf.sum("v"), sf.avg("w"), sf.max("v"), sf.min("ts"), sf.sum("p"), sf.stddev("v"), sf.max("k")
        )

    done = begun.write(totals(begun.stream()), totals(begun.history))
    (written,) = done.states
    assert (written.name, written.rows) == ("default", begun.history.select("k", "j").distinct().count())
    begun.check(totals)


def test_windows_with_a_watermark(begun: Begun) -> None:
    def counts(orders: DataFrame) -> DataFrame:
        return orders.withWatermark("ts", "40 days").groupBy(sf.window("ts", "15 minutes"), "k").agg(sf.count("*"))

    watermark = datetime(2023, 11, 1, tzinfo=timezone.utc)
    begun.write(counts(begun.stream()), counts(begun.history), watermark_ms=int(watermark.timestamp() * 1000))
    begun.check(counts)


@pytest.mark.parametrize("function", [sf.collect_set, sf.approx_count_distinct, sf.first])
def test_functions_with_buffers_of_any_kind(begun: Begun, function: Callable[[str], Any]) -> None:
    """Objects, sketches and flags."""

    def totals(orders: DataFrame) -> DataFrame:
        return orders.groupBy("k").agg(function("j"), sf.count("w"))

    begun.write(totals(begun.stream()), totals(begun.history))
    begun.changed.run(totals(begun.stream()))
    found = read_state(begun.location).to_arrow().to_pylist()
    counted = {row["key"]["k"]: list(row["value"].values())[-1] for row in found}
    assert counted == {k: sum(row["k"] == k for file in ALL for row in rows(file)) for k in counted}
    assert len(counted) == len({row["k"] for file in ALL for row in rows(file)})


def test_an_aggregation_without_a_key(begun: Begun) -> None:
    def total(orders: DataFrame) -> DataFrame:
        return orders.agg(sf.sum("v"), sf.count("*"))

    begun.write(total(begun.stream()), total(begun.history), "complete")
    begun.check(total, "complete")


def test_an_aggregation_takes_rows_of_its_buffers(begun: Begun) -> None:
    """As `read_state` returns them, from anywhere."""

    def totals(orders: DataFrame) -> DataFrame:
        return orders.groupBy("k").agg(sf.count("*"), sf.max("v"))

    begun.write(
        totals(begun.stream()), pa.table({"k": ["k1", "never", None], "count": [7, 8, 9], "max": [1000, None, 5]})
    )
    assert state(begun.location) == {(("k1",), (7, 1000)), (("never",), (8, None)), ((None,), (9, 5))}
    begun.changed.run(totals(begun.stream()))
    found = {row["key"]["k"]: tuple(row["value"].values()) for row in read_state(begun.location).to_arrow().to_pylist()}
    number = sum(row["k"] == "k1" for file in (3, 4) for row in rows(file))
    assert (found["k1"], found["never"]) == ((7 + number, 1000), (8, None))


def test_another_aggregation_is_refused(begun: Begun) -> None:
    frame = begun.stream().groupBy("k").agg(sf.count("*"), sf.max("v"))
    for other in (
        begun.history.groupBy("k").agg(sf.max("v"), sf.count("*")),
        begun.history.groupBy("k", "j").agg(sf.count("*"), sf.max("v")),
        begun.history.groupBy("k").agg(sf.count("*")),
    ):
        with pytest.raises(BootstrapRefusedError, match="those of another aggregation"):
            write_state(frame, begun.location, other, output_mode="update")
    with pytest.raises(BootstrapRefusedError, match="give a batch DataFrame"):
        write_state(frame, begun.location, frame, output_mode="update")
    assert not Path(begun.location).exists()


# ---- other operators -------------------------------------------------------------------------------------------------


@pytest.mark.core
@pytest.mark.usefixtures("checkpoint_format")
def test_keys_of_a_deduplication(begun: Begun) -> None:
    frame = begun.stream().dropDuplicates(["id"])
    begun.write(frame, begun.history.select("id").distinct(), "append")
    out = begun.changed.run(frame, "append")
    seen = {row["id"] for file in range(HISTORY) for row in rows(file)}
    assert {row[5] for row in out} == {row["id"] for file in (3, 4) for row in rows(file)} - seen
    begun.changed.judge.check(Path(begun.location))


def test_keys_of_a_deduplication_within_a_watermark(begun: Begun) -> None:
    frame = begun.stream().withWatermark("ts", "1 hour").dropDuplicatesWithinWatermark(["id"])
    expires = int((START + timedelta(days=1)).timestamp() * 1_000_000)
    seen = pa.table({"id": pa.array([1, 2], pa.int32()), "expiresAtMicros": [expires, expires]})
    begun.write(frame, seen, "append")
    out = begun.changed.run(frame, "append")
    ids = {row["id"] for file in (3, 4) for row in rows(file)}
    assert {row[5] for row in out} == ids - {1, 2}


OUTPUT = "k string, n long, items string, fired long"


class Everything(StatefulProcessor):
    """A value, a list, a map and timers."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.n = handle.getValueState("n", "n long")
        self.items = handle.getListState("items", "id int")
        self.by = handle.getMapState("by", "j int", "v long")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timers: TimerValues) -> Iterator[Any]:  # noqa: N802
        n = (self.n.get() or (0,))[0]
        for row in rows:
            n += 1
            self.items.appendValue((row.id,))
            self.by.updateValue((row.j,), ((self.by.getValue((row.j,)) or (0,))[0] + row.v,))
        self.n.update((n,))
        yield Row(k=key[0], n=n, items=str(len(list(self.items.get()))), fired=None)

    def handleExpiredTimer(self, key: Any, timerValues: TimerValues, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
        yield Row(k=key[0], n=0, items="", fired=expiredTimerInfo.getExpiryTimeInMs())

    def close(self) -> None:
        return


@needs_rows
def test_variables_and_timers(begun: Begun) -> None:
    def query(orders: DataFrame) -> DataFrame:
        rows = orders.withWatermark("ts", "1 minute").groupBy("k")
        return rows.transformWithState(Everything(), OUTPUT, "append", "eventTime")

    history = begun.history
    alarm = int((START + timedelta(minutes=35)).timestamp() * 1000)
    due = pa.table({"k": ["k0", "k5"], "expiration_timestamp_ms": [alarm, alarm + 5]})
    maps = history.groupBy("k", "j").agg(sf.sum("v").alias("v"))
    states = {
        "n": history.groupBy("k").agg(sf.count("*").alias("n")).select("k", "n"),
        "items": history.select("k", "id"),
        "by": maps.select(
            sf.struct("k").alias("key"), sf.struct("j").alias("user_map_key"), sf.struct("v").alias("user_map_value")
        ),
        "eventTimers": due,
    }
    done = begun.write(query(begun.stream()), states, "append")
    assert {each.name: each.rows for each in done.states}["items"] == history.count()
    out = begun.changed.run(query(begun.stream()), "append")
    assert sorted((row[1], row[4]) for row in out if row[4] is not None) == [("k0", alarm), ("k5", alarm + 5)]
    everything = begun.everything(query, "append")
    for name in ("n", "by"):
        assert state(begun.location, variable=name) == state(everything, variable=name)
    lists = [lists_of(location) for location in (begun.location, everything)]
    assert lists[0] == lists[1]


def lists_of(location: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in read_state(location, variable="items").to_arrow().to_pylist():
        found.setdefault(row["key"]["k"], []).append(row["list_element"]["id"])
    return {key: sorted(ids) for key, ids in found.items()}


def test_state_of_groups(begun: Begun) -> None:
    def query(orders: DataFrame) -> DataFrame:
        def count(key: Any, frames: Iterator[Any], group: Any) -> Iterator[Any]:
            import pandas as pd

            number = (group.get[0] if group.exists else 0) + sum(len(frame) for frame in frames)
            group.update((number,))
            yield pd.DataFrame([{"k": key[0], "n": number}])

        return orders.groupBy("k").applyInPandasWithState(count, "k string, n long", "n long", "update", "NoTimeout")

    counted = begun.history.groupBy("k").agg(sf.count("*").alias("n")).select("k", sf.struct("n").alias("groupState"))
    begun.write(query(begun.stream()), counted)
    begun.check(query)


# ---- interruption ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "refusal"),
    [
        ("add_offsets", "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY|an import into this location was interrupted"),
        ("add_commit", "an import into this location was interrupted"),
    ],
)
def test_no_query_starts_from_state_that_is_not_whole(
    begun: Begun, monkeypatch: pytest.MonkeyPatch, step: str, refusal: str
) -> None:
    """As after a kill: a start fails, even of a first batch, until the state is written again."""
    frame = begun.stream().dropDuplicates(["id"])
    ids = begun.history.select("id").distinct()

    def killed(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(f"spark_ckpt.spark_files.logs.SparkLog.{step}", killed)
        patch.setattr("spark_ckpt.bootstrap.new_location._clear", lambda storage: None)
        with pytest.raises(KilledError):
            write_state(frame, begun.location, ids)
    with pytest.raises(StreamingQueryException, match=refusal):
        begun.changed.run(frame, "append")
    assert not list((Path(begun.location) / "commits").glob("[0-9]*"))
    begun.write(frame, ids, "append")
    out = begun.changed.run(frame, "append")
    seen = {row["id"] for file in range(HISTORY) for row in rows(file)}
    assert {row[5] for row in out} == {row["id"] for file in (3, 4) for row in rows(file)} - seen


# ---- refusals --------------------------------------------------------------------------------------------------------


def test_what_cannot_be_written_is_refused_with_all_reasons(begun: Begun) -> None:
    spark = begun.changed.spark
    left = begun.stream().withWatermark("ts", "1 minute")
    joined = left.alias("a").join(begun.stream().alias("b"), sf.expr("a.id = b.id"))
    ids = begun.history.select("id").distinct()
    with pytest.raises(BootstrapRefusedError, match="The states that can be written are: none"):
        write_state(joined, begun.location, ids)
    frame = begun.stream().dropDuplicates(["id"])
    with pytest.raises(BootstrapRefusedError) as refused:
        write_state(frame, begun.location, {"n": ids}, sources={4: None, 0: '{"logOffset":3}'})
    assert [problem.split(".")[0] for problem in refused.value.problems] == [
        "the query has no source 4; it has 1",
        "source 0 reads files, and a new query has no log of those that it has read: it begins with all that are there",
        "the query has no state n that can be written",
    ]
    ours = spark.conf.get(PROVIDER_KEY)
    assert ours is not None
    spark.conf.set(PROVIDER_KEY, HDFS)
    try:
        with pytest.raises(BootstrapRefusedError, match="another state-store provider"):
            write_state(frame, begun.location, ids)
    finally:
        spark.conf.set(PROVIDER_KEY, ours)
    with pytest.raises(EditRowError, match=r"0/default, id: there is no such column; the columns are number"):
        write_state(frame, begun.location, pa.table({"number": [1]}))
    assert not list(Path(begun.location).glob("*"))
    begun.write(frame, ids, "append")
    with pytest.raises(TargetNotEmptyError):
        write_state(frame, begun.location, ids)
