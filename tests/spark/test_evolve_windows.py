"""Windows and sessions change in the middle of the input, and come out once."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as sf

from spark_ckpt import read_state
from tests.support.changed_query import ALL, RECENT, ChangedQuery, rows, seconds

pytestmark = pytest.mark.usefixtures("ours_only")


def counted(changed: ChangedQuery, delay: str, length: str, *more: Column) -> DataFrame:
    windows = (
        changed.source().withWatermark("ts", delay).groupBy(sf.window("ts", length), "k").agg(sf.count("*"), *more)
    )
    start = sf.col("window.start").cast("long").alias("start")
    return windows.select(start, "k", "count(1)", *(["sum(v)"] if more else []))


@pytest.mark.core
def test_windows_come_out_once(changed: ChangedQuery) -> None:
    """The watermark's delay and an aggregate change; the length of windows cannot."""
    first = changed.run(counted(changed, "10 minutes", "5 minutes"), "append")
    changed.more()
    frame = counted(changed, "2 minutes", "5 minutes", sf.sum("v"))
    changed.refused(
        counted(changed, "10 minutes", "10 minutes"), r"window\(0.ts, 10 min long\) was window\(0.ts, 5 min", "append"
    )
    done = changed.evolve(frame, "append")
    assert done.watermarks
    second = changed.run(frame, "append")
    state: dict[Any, list[Any]] = defaultdict(lambda: [0, None])
    for file in ALL:
        for row in rows(file):
            each = state[seconds(row) // 300 * 300, row["k"]]
            each[0] += 1
            each[1] = each[1] if file < 3 else (each[1] or 0) + row["v"]
    got: dict[Any, Any] = {(window, key): (number, None) for _, window, key, number in first}
    for _, window, key, number, total in second:
        assert (window, key) not in got, "a window came out twice"
        got[window, key] = (number, total)
    newest = max(seconds(row) for file in ALL for row in rows(file)) - 120
    assert got == {key: tuple(values) for key, values in state.items() if key[0] + 300 <= newest}


def test_session_windows(changed: ChangedQuery) -> None:
    """An aggregate more, and key columns in another order; another gap is refused."""

    def sessions(gap: str, *keys: str) -> GroupedData:
        marked = changed.source().withWatermark("ts", "1 hour")
        return marked.groupBy(sf.session_window("ts", gap), *keys)

    old = sessions("1 minute", "k", "j").agg(sf.count("*"))
    changed.run(old, "append")
    changed.more()
    new = sessions("1 minute", "j", "k").agg(sf.max("v"), sf.count("*"))
    changed.refused(sessions("2 minutes", "k", "j").agg(sf.count("*")), "another gap", "append")
    changed.evolve(new, "append")
    changed.run(new, "append")
    rows_after = _sessions_of(changed)
    assert rows_after == _sessions_in_python()


def _sessions_of(changed: ChangedQuery) -> dict[Any, tuple[int, int | None]]:
    found = {}
    for each in read_state(changed.location).to_arrow().to_pylist():
        value = each["value"]
        window = value["session_window"]
        key = (value["k"], value["j"], int(window["start"].timestamp()), int(window["end"].timestamp()))
        found[key] = (value["count"], value["max"])
    return found


def _sessions_in_python() -> dict[Any, tuple[int, int | None]]:
    moments: dict[Any, list[tuple[int, int | None]]] = defaultdict(list)
    for file in ALL:
        for row in rows(file):
            moments[row["k"], row["j"]].append((seconds(row), row["v"] if file in RECENT else None))
    newest = max(seconds(row) for file in ALL for row in rows(file)) - 3600
    found = {}
    for (k, j), times in moments.items():
        session: list[tuple[int, int | None]] = []
        for moment in [*sorted(times, key=lambda each: each[0]), (1 << 40, None)]:
            if session and moment[0] > session[-1][0] + 60:
                values = [value for _, value in session if value is not None]
                if session[-1][0] + 60 > newest:
                    found[k, j, session[0][0], session[-1][0] + 60] = (len(session), max(values, default=None))
                session = []
            session.append(moment)
    return found
