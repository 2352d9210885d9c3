"""Queries of the main job on Kafka, each with its answer computed in Python from the records of the topics.

The input topics have columns `ts timestamp, key string, value long`, as in `tests/support/events.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from tests.support.events import END
from tests.support.feeds import Row as Fields
from tests.support.sinks import Rows

LATENESS = "90 seconds"
"""Watermark delay. The partitions of a topic may be this far apart in event time without a late row."""

WINDOW_SECONDS = 10
NEAR_SECONDS = 5
"""Farthest distance in event time of the rows that the join pairs."""

SUMS = "key string, n long, total long"


def windows(events: DataFrame) -> DataFrame:
    """Figures per key and window, each emitted when the watermark has passed the window."""
    window = sf.window("ts", f"{WINDOW_SECONDS} seconds")
    counted = events.withWatermark("ts", LATENESS).groupBy("key", window)
    figures = counted.agg(sf.count("*").alias("n"), sf.sum("value").alias("total"))
    return figures.select("key", sf.unix_seconds("window.start").alias("start"), "n", "total")


def answer_of_windows(events: Iterable[Fields]) -> Rows:
    """Batch answer to `windows`."""
    figures: dict[tuple[object, int], list[int]] = defaultdict(list)
    for ts, key, value in _without_end(events):
        start = int(_seconds(ts)) // WINDOW_SECONDS * WINDOW_SECONDS
        figures[key, start].append(_integer(value))
    return [(key, start, len(values), sum(values)) for (key, start), values in figures.items()]


def pairs(left: DataFrame, right: DataFrame) -> DataFrame:
    """Rows of two topics with the same key and nearly the same time."""
    left = left.withWatermark("ts", LATENESS).selectExpr("key", "ts AS left_ts", "value AS left_value")
    right = right.withWatermark("ts", LATENESS).selectExpr("key AS right_key", "ts AS right_ts", "value AS right_value")
    near = f"INTERVAL {NEAR_SECONDS} SECONDS"
    match = sf.expr(f"key = right_key AND right_ts BETWEEN left_ts - {near} AND left_ts + {near}")
    return left.join(right, match).select("key", "left_value", "right_value")


def answer_of_pairs(left: Iterable[Fields], right: Iterable[Fields]) -> Rows:
    """Batch answer to `pairs`."""
    by_key: dict[object, list[tuple[float, object]]] = defaultdict(list)
    for ts, key, value in _without_end(right):
        by_key[key].append((_seconds(ts), value))
    return [
        (key, value, other)
        for ts, key, value in _without_end(left)
        for moment, other in by_key[key]
        if abs(moment - _seconds(ts)) <= NEAR_SECONDS
    ]


def unique(events: DataFrame) -> DataFrame:
    """Each row once."""
    single = events.withWatermark("ts", LATENESS).dropDuplicates(["ts", "key", "value"])
    return single.select("key", sf.unix_millis("ts").alias("ms"), "value")


def answer_of_unique(events: Iterable[Fields]) -> Rows:
    """Batch answer to `unique`."""
    rows = dict.fromkeys((key, round(_seconds(ts) * 1000), value) for ts, key, value in _without_end(events))
    return list(rows)


class RunningSums(StatefulProcessor):
    """Number and sum of a key's values so far."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.sums = handle.getValueState("sums", "n long, total long")

    def handleInputRows(self, key: tuple[str], rows: Iterator[Row], timers: TimerValues) -> Iterator[Row]:  # noqa: N802
        count, total = self.sums.get() or (0, 0)
        for row in rows:
            count, total = count + 1, total + row.value
        self.sums.update((count, total))
        yield Row(key=key[0], n=count, total=total)

    def close(self) -> None:
        return


def sums(events: DataFrame) -> DataFrame:
    """Running figures per key, by transformWithState; each batch emits the keys that it changed."""
    return events.groupBy("key").transformWithState(RunningSums(), SUMS, "update", "none")


def answer_of_sums(events: Iterable[Fields]) -> Rows:
    """Batch answer to `sums`, the newest figures of each key."""
    figures: dict[object, list[int]] = defaultdict(list)
    for _, key, value in events:
        figures[key].append(_integer(value))
    return [(key, len(values), sum(values)) for key, values in figures.items()]


def _without_end(events: Iterable[Fields]) -> Iterator[Fields]:
    return (event for event in events if event[1] != END)


def _seconds(ts: object) -> float:
    """Seconds since 1970 of a time as it is in a record, in UTC."""
    moment = datetime.fromisoformat(str(ts))
    return (moment - datetime(1970, 1, 1)) / timedelta(seconds=1)


def _integer(value: object) -> int:
    assert isinstance(value, int)
    return value
