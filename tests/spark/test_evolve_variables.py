"""Variables and groups of user code change in the middle of the input."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from tests.support.changed_query import ALL, RECENT, ChangedQuery, last, rows, touched
from tests.support.spark_version import needs_rows

pytestmark = pytest.mark.usefixtures("ours_only")


class Summing(StatefulProcessor):
    """Counts rows; with `more`, also the largest value, and a sum as a field of the count."""

    def __init__(self, more: bool) -> None:
        self.more = more

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.n = handle.getValueState("n", "n long, total long" if self.more else "n int")
        self.seen = handle.getListState("seen", "v int")
        self.by = handle.getMapState("by", "j int", "n long")
        if self.more:
            self.most = handle.getValueState("most", "most int")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timers: TimerValues) -> Iterator[Any]:  # noqa: N802
        values = [(row.v, row.j) for row in rows]
        had = self.n.get() or (0, None)
        number, total, most = had[0] + len(values), None, None
        if self.more:
            total = (had[1] or 0) + sum(v for v, _ in values)
            self.n.update((number, total))
            most = max([v for v, _ in values] + ([(self.most.get() or (0,))[0]]))
            self.most.update((most,))
        else:
            self.n.update((number,))
        for v, j in values:
            self.seen.appendValue((v,))
            self.by.updateValue((j,), ((self.by.getValue((j,)) or (0,))[0] + 1,))
        listed = json.dumps(sorted(v[0] for v in self.seen.get()))
        mapped = json.dumps(sorted([j[0], n[0]] for j, n in self.by.iterator()))
        yield SparkRow(k=key[0], n=number, total=total, most=most, seen=listed, by=mapped)

    def close(self) -> None:
        return


OUTPUT = "k string, n long, total long, most int, seen string, by string"


@pytest.mark.core
@needs_rows
def test_variables_of_transform_with_state(changed: ChangedQuery) -> None:
    """A variable and a field added, a field widened; list and map as they are."""

    def frame(*, more: bool) -> DataFrame:
        return changed.source().groupBy("k").transformWithState(Summing(more), OUTPUT, "update", "none")

    changed.run(frame(more=False))
    changed.more()
    done = changed.evolve(frame(more=True))
    assert "most: begins empty" in done.stores[0].notes
    got = last(changed.run(frame(more=True)), 1)
    want = {}
    for key in touched(RECENT, lambda row: row["k"]):
        every = [(file, row) for file in ALL for row in rows(file) if row["k"] == key]
        recent = [row["v"] for file, row in every if file in RECENT]
        by: dict[int, int] = defaultdict(int)
        for _, row in every:
            by[row["j"]] += 1
        listed = json.dumps(sorted(row["v"] for _, row in every))
        want[key,] = (len(every), sum(recent), max(recent), listed, json.dumps([[j, by[j]] for j in sorted(by)]))
    assert got == want


def test_groups_with_state_in_pandas(changed: ChangedQuery) -> None:
    """A field of the user's state added, and one widened."""

    def frame(*, more: bool) -> DataFrame:
        def count(key: Any, frames: Iterator[Any], state: Any) -> Iterator[Any]:
            import pandas as pd

            values = [int(v) for each in frames for v in each["v"]]
            had = state.get if state.exists else (0, None)
            total = (had[1] or 0) + sum(values) if more else None
            state.update((had[0] + len(values), total) if more else (had[0] + len(values),))
            yield pd.DataFrame([{"k": key[0], "n": had[0] + len(values), "total": total}])

        kind = "n long, total long" if more else "n int"
        output = "k string, n long, total long"
        return changed.source().groupBy("k").applyInPandasWithState(count, output, kind, "update", "NoTimeout")

    changed.run(frame(more=False))
    changed.more()
    changed.evolve(frame(more=True))
    got = last(changed.run(frame(more=True)), 1)
    for key in touched(RECENT, lambda row: row["k"]):
        number = sum(row["k"] == key for file in ALL for row in rows(file))
        assert got[key,] == (number, sum(row["v"] for file in RECENT for row in rows(file) if row["k"] == key))
