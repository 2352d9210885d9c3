"""Real Flink goes on from the state of queries that ran in Spark: each key is counted once more, each timer fires."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from spark_ckpt import export_savepoint
from tests.support.events import SCHEMA, events
from tests.support.flink_restore import NEWEST, OLDEST, ask
from tests.support.provider import ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog
from tests.support.spark_version import needs_rows

KEY_GROUPS = {"rocksdb": 128, "hashmap": 1000}
"""Max parallelism by state backend. Above 128, key groups have two bytes."""

BEFORE_1970 = "1969-12-31 23:59:58.000123"

pytestmark = pytest.mark.slow

lines = pytest.mark.parametrize("line", [OLDEST, pytest.param(NEWEST, marks=pytest.mark.flink)])


@pytest.fixture(autouse=True)
def ours_only(provider: ProviderUnderTest) -> None:
    """Skips Spark's own providers: the export reads our checkpoints only."""
    if not provider.is_ours:
        pytest.skip("about our checkpoints")


class Summing(StatefulProcessor):
    """Keeps the states of the judge's jobs (`States` in jvm-shim/flink-check/restore), and timers."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.sum = handle.getValueState("sum", "n long")
        self.list = handle.getListState("list", "value long")
        self.map = handle.getMapState("map", "digit string", "n long")

    def handleInputRows(self, key: tuple[str], rows: Iterator[Row], timers: TimerValues) -> Iterator[Row]:  # noqa: N802
        for row in rows:
            self.sum.update(((self.sum.get() or (0,))[0] + row.value,))
            if key[0] != "k3":  # a key without a list
                self.list.appendValue((row.value,))
            digit = (f"ä{row.value % 5}",)
            self.map.updateValue(digit, ((self.map.getValue(digit) or (0,))[0] + 1,))
            self.handle.registerTimer(10**15 + row.value)
        yield Row(key=key[0])

    def close(self) -> None:
        return


@needs_rows
@lines
def test_transform_with_state(
    line: str, spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path
) -> None:
    """As a process function. The order of a list is that of Spark's."""
    feed = runner.feed("events", SCHEMA)
    for batch in events(rng, 4, keys=60):
        feed.drop(batch)
    sink = BatchLog(runner.folder / "out", "update")

    def plan() -> DataFrame:
        frame = feed.stream(spark).withWatermark("ts", "10 minutes").groupBy("key")
        return frame.transformWithState(Summing(), "key string", "update", "eventTime")

    runner.drain(plan(), sink, lambda: sum(map(bool, sink.batches().values())) == len(feed.batches))
    rows: dict[str, list[int]] = {}
    for _, key, value in feed.rows():
        rows.setdefault(str(key), []).append(int(str(value)))
    requests = []
    for backend, key_groups in KEY_GROUPS.items():
        savepoint = tmp_path / backend
        export_savepoint(runner.location, savepoint, key="string", uid="sums", max_parallelism=key_groups, force=True)
        request = {"do": "restore", "savepoint": str(savepoint), "uid": "sums", "key": "string", "backend": backend}
        requests.append({**request, "keys": [*rows, "new"], "parallelism": 3, "maxParallelism": key_groups})
    expected = Counter([_counted("new", 0, [], [])])
    for key, values in rows.items():
        expected[_counted(key, sum(values), [] if key == "k3" else sorted(values), values)] += 1
        expected.update(_text(["EVENT_TIME", key, 10**15 + value]) for value in set(values))
    for answer in ask(requests, line):
        found = [
            _text(["counted", row[1], row[2], sorted(row[3]), row[4]] if row[0] == "counted" else row)
            for row in answer.parsed
        ]
        assert Counter(found) == expected


def _counted(key: str, total: int, listed: list[int], mapped: list[int]) -> str:
    """Output for a key: its sum and list go on, and its map has an entry more."""
    entries = Counter(f"ä{value % 5}" for value in mapped)
    return _text(["counted", key, total + 1, sorted([*listed, -1]), {**entries, "counted": 1}])


def _text(row: list[Any]) -> str:
    return json.dumps(row, sort_keys=True)


@pytest.mark.long
@lines
@pytest.mark.parametrize(
    "within", [pytest.param(False, marks=pytest.mark.long, id="for-ever"), pytest.param(True, id="within-watermark")]
)
def test_deduplication(
    within: bool, line: str, spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path
) -> None:
    """The job drops what Spark has seen, and the second of two new keys."""
    feed = runner.feed("events", SCHEMA)
    for batch in events(rng, 3, keys=60):
        feed.drop(batch)
    frame = feed.stream(spark).withWatermark("ts", "10 hours")
    unique = frame.dropDuplicatesWithinWatermark(["key"]) if within else frame.dropDuplicates(["key"])
    runner.drain(unique, BatchLog(runner.folder / "out", "append"))
    seen = sorted({str(key) for _, key, _ in feed.rows()})
    new = [f"new{number}" for number in range(20)]
    arriving = [*seen, *new, *seen, *new]
    rng.shuffle(arriving)
    requests = []
    for backend, key_groups in KEY_GROUPS.items():
        savepoint = tmp_path / backend
        export_savepoint(runner.location, savepoint, key="string", uid="unique", max_parallelism=key_groups, force=True)
        request = {"do": "deduplicate", "savepoint": str(savepoint), "uid": "unique", "key": "string", "within": within}
        requests.append(
            {**request, "keys": arriving, "backend": backend, "parallelism": 3, "maxParallelism": key_groups}
        )
    for answer in ask(requests, line):
        assert sorted(answer.parsed) == sorted(new)


@lines
@pytest.mark.parametrize(
    "has_zone", [pytest.param(False, marks=pytest.mark.long, id="local"), pytest.param(True, id="zoned")]
)
def test_group_by_of_flink_sql(
    has_zone: bool, line: str, spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path
) -> None:
    """COUNT, SUM, MIN and MAX by three columns with nulls go on where Spark has stopped.

    A timestamp of Spark is TIMESTAMP_LTZ, one without a time zone TIMESTAMP.
    """
    feed = runner.feed("events", SCHEMA)
    for batch in events(rng, 3, keys=12):
        feed.drop(batch)
    moment = f"timestamp'{BEFORE_1970} UTC'" if has_zone else f"timestamp_ntz'{BEFORE_1970}'"
    number = "cast(substr(key, 2) as int)"
    columns = {
        "s": f"if(key = 'k1', null, repeat(key, 1 + {number} % 4))",
        "l": f"if(key in ('k1', 'k2'), null, cast({number} as long))",
        "ts": f"if(key in ('k1', 'k3'), null, {moment} + make_dt_interval(0, 0, 0, {number}))",
        "v": "value",
    }

    def grouped(frame: DataFrame) -> DataFrame:
        keyed = frame.select(*[sf.expr(text).alias(name) for name, text in columns.items()]).groupBy("s", "l", "ts")
        return keyed.agg(sf.count("*"), sf.sum("v"), sf.min("v"), sf.max("v"))

    runner.drain(grouped(feed.stream(spark)), BatchLog(runner.folder / "out", "update"))
    state = [tuple(row) for row in grouped(feed.table(spark)).collect()]
    assert any(row[:3] == (None, None, None) for row in state)
    ts_of_flink = "CAST(ts AS TIMESTAMP_LTZ(6))" if has_zone else "ts"
    query = f"SELECT s, l, {ts_of_flink}, COUNT(*), SUM(v), MIN(v), MAX(v) FROM t GROUP BY s, l, {ts_of_flink}"
    added = 1_000_000
    new = ("new", 99, datetime(2024, 1, 1, microsecond=1))
    # PySpark shows times in the local zone, which is also that of Flink SQL.
    keys = [row[:3] for row in state]
    requests = []
    for backend, key_groups in KEY_GROUPS.items():
        savepoint = tmp_path / backend
        export_savepoint(
            runner.location,
            savepoint,
            key="rowdata",
            uid="sql_group-aggregate",
            sql_aggregate=True,
            max_parallelism=key_groups,
            force=True,
        )
        requests.append(
            {
                "do": "sql",
                "savepoint": str(savepoint),
                "backend": backend,
                "parallelism": 2,
                "maxParallelism": key_groups,
                "query": query,
                "input": [(s, number, ts and ts.isoformat(), added) for s, number, ts in (*keys, new)],
            }
        )

    def shown(key: tuple[Any, ...]) -> tuple[Any, ...]:
        ts = key[2]
        if ts is None or not has_zone:
            return (*key[:2], ts and ts.isoformat())
        return (*key[:2], ts.astimezone(timezone.utc).replace(tzinfo=None).isoformat() + "Z")

    expected = Counter([_change("+I", shown(new), 1, added, added, added)])
    for key, (_, _, _, count, total, least, most) in zip(keys, state, strict=True):
        expected[_change("-U", shown(key), count, total, least, most)] += 1
        expected[_change("+U", shown(key), count + 1, total + added, least, added)] += 1
    for answer in ask(requests, line):
        assert answer.rows is not None, answer.exception
        assert Counter(answer.rows) == expected


@pytest.mark.long
@lines
def test_aggregate_of_flink_sql_without_grouping(
    line: str, spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path
) -> None:
    feed = runner.feed("events", SCHEMA)
    for batch in events(rng, 3):
        feed.drop(batch)
    runner.drain(feed.stream(spark).agg(sf.count("*"), sf.sum("value")), BatchLog(runner.folder / "out", "update"))
    export_savepoint(
        runner.location, tmp_path / "s", key="rowdata", uid="sql_group-aggregate", sql_aggregate=True, force=True
    )
    values = [int(str(value)) for _, _, value in feed.rows()]
    request = {
        "do": "sql",
        "savepoint": str(tmp_path / "s"),
        "backend": "rocksdb",
        "parallelism": 2,
        "maxParallelism": 128,
        "query": "SELECT COUNT(*), SUM(v) FROM t",
        "input": [("a", 1, None, 5)],
    }
    (answer,) = ask([request], line)
    assert answer.rows is not None, answer.exception
    count, total = len(values), sum(values)
    assert answer.rows == [_change("-U", (), count, total), _change("+U", (), count + 1, total + 5)]


def _change(kind: str, key: tuple[Any, ...], *accumulators: int) -> str:
    """Row of a changelog, as Flink prints it."""
    return f"{kind}[{', '.join('null' if each is None else str(each) for each in (*key, *accumulators))}]"
