"""The grouping key of a processor with timers and values that expire changes in the middle of the input."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from spark_ckpt import read_state
from tests.support.changed_query import ALL, RECENT, ChangedQuery, rows, seconds
from tests.support.spark_version import needs_rows
from tests.support.waiting import eventually

pytestmark = [pytest.mark.usefixtures("ours_only"), needs_rows]
OUTPUT = "k string, j long, n long, fired long"
SHORT_MS = 4000
"""Time to live of the values that expire during a test."""


def names(key: tuple[Any, ...]) -> tuple[str, int]:
    """User and number in a grouping key, whatever their order."""
    k, j = key if isinstance(key[0], str) else reversed(key)
    return str(k), int(j)


def alarm(moment: int) -> int:
    """Event time, in seconds, at which a row's timer fires: 10 to 20 minutes later."""
    return moment // 600 * 600 + 1200


class Alarms(StatefulProcessor):
    """Counts rows, with a timer for each ten minutes that have some."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.n = handle.getValueState("n", "n long")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timers: TimerValues) -> Iterator[Any]:  # noqa: N802
        moments = [int(row.ts.timestamp()) for row in rows]
        number = (self.n.get() or (0,))[0] + len(moments)
        self.n.update((number,))
        for moment in {alarm(moment) for moment in moments}:
            self.handle.registerTimer(moment * 1000)
        k, j = names(key)
        yield Row(k=k, j=j, n=number, fired=None)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Any]:
        k, j = names(key)
        yield Row(k=k, j=j, n=(self.n.get() or (0,))[0], fired=expiredTimerInfo.getExpiryTimeInMs() // 1000)

    def close(self) -> None:
        return


def fired(out: list[tuple[Any, ...]]) -> Counter[tuple[str, int, int]]:
    return Counter((row[1], row[2], row[4]) for row in out if row[4] is not None)


def test_timers(changed: ChangedQuery) -> None:
    """Each timer fires once: by the earlier query, or under the key of the changed one."""

    def frame(*key: str) -> DataFrame:
        rows = changed.source().withWatermark("ts", "5 minutes").groupBy(*key)
        return rows.transformWithState(Alarms(), OUTPUT, "append", "eventTime")

    before = changed.run(frame("k", "j"), "append")
    changed.more()
    done = changed.evolve(frame("j", "k"), "append")
    assert done.stores[0].is_rewritten
    out = changed.run(frame("j", "k"), "append")
    newest = max(seconds(row) for file in ALL for row in rows(file)) - 300
    every = {(row["k"], row["j"], alarm(seconds(row))) for file in ALL for row in rows(file)}
    assert fired(before) + fired(out) == Counter(each for each in every if each[2] <= newest)
    earlier = {(row["k"], row["j"], alarm(seconds(row))) for file in range(3) for row in rows(file)}
    assert set(fired(out)) & earlier, "no timer of the earlier query fires later"
    counted = {(row[1], row[2]): row[3] for row in out if row[4] is None}
    for k, j in {(row["k"], row["j"]) for file in RECENT for row in rows(file)}:
        assert counted[k, j] == sum((row["k"], row["j"]) == (k, j) for file in ALL for row in rows(file))


class Expiring(StatefulProcessor):
    """Counts rows for an hour, and keeps their values for a short time as value, list and map."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.n = handle.getValueState("n", "n long", ttlDurationMs=3_600_000)
        self.latest = handle.getValueState("latest", "v int", ttlDurationMs=SHORT_MS)
        self.seen = handle.getListState("seen", "v int", ttlDurationMs=SHORT_MS)
        self.by = handle.getMapState("by", "id int", "v int", ttlDurationMs=SHORT_MS)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timers: TimerValues) -> Iterator[Any]:  # noqa: N802
        values = [(row.v, row.id) for row in rows]
        number = (self.n.get() or (0,))[0] + len(values)
        self.n.update((number,))
        for v, identifier in values:
            self.latest.update((v,))
            self.seen.appendValue((v,))
            self.by.updateValue((identifier,), (v,))
        k, j = names(key)
        yield Row(k=k, j=j, n=number, fired=None)

    def close(self) -> None:
        return


@pytest.mark.long
def test_values_that_expire(changed: ChangedQuery) -> None:
    """Their times of expiry stay: those of the earlier query are gone after a batch of the changed one, even of keys
    without input."""
    changed.spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")  # else they follow for ever

    def frame(*key: str, users: str = "true") -> DataFrame:
        return (
            changed.source()
            .where(users)
            .groupBy(*key)
            .transformWithState(Expiring(), OUTPUT, "update", "processingTime")
        )

    changed.run(frame("k", "j"))
    changed.more()
    was = {name: number_of(changed, name) for name in ("n", "latest", "seen", "by")}
    assert all(was.values())
    new = frame("j", "k", users="k < 'k3'")
    done = changed.evolve(new)
    assert done.stores[0].is_rewritten
    assert {name: number_of(changed, name) for name in was} == was
    expired = time.monotonic() + SHORT_MS / 1000
    eventually(lambda: time.monotonic() > expired)
    out = changed.run(new)
    recent = [row for file in RECENT for row in rows(file) if row["k"] < "k3"]
    got = {(row[1], row[2]): row[3] for row in out}
    for k, j in {(row["k"], row["j"]) for row in recent}:
        assert got[k, j] == sum((row["k"], row["j"]) == (k, j) for file in ALL for row in rows(file))
    assert number_of(changed, "n") == was["n"]
    assert number_of(changed, "latest") <= len({(row["k"], row["j"]) for row in recent})
    assert number_of(changed, "seen") <= len(recent)
    assert number_of(changed, "by") <= len({(row["k"], row["j"], row["id"]) for row in recent})


def number_of(changed: ChangedQuery, variable: str) -> int:
    return int(read_state(changed.location, variable=variable).to_arrow().num_rows)
