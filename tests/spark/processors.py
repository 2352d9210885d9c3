"""Stateful processors for transformWithState, and their expected final state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from tests.support.sinks import Rows

COLUMNS = ["key", "n", "listed", "mapped"]
COUNTS = "key string, n long, listed string, mapped string"


class Remembering(StatefulProcessor):
    """Stores the rows of a key as a count, a list of values, and a map from last digit to number of values."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.count = handle.getValueState("count", "n long")
        self.listed = handle.getListState("listed", "value long")
        self.mapped = handle.getMapState("mapped", "digit long", "n long")

    def add(self, key: str, values: list[int]) -> tuple[str, int, str, str]:
        """Adds the values of a batch; returns the entire state of the key."""
        count = (self.count.get() or (0,))[0] + len(values)
        self.count.update((count,))
        self.listed.appendValue((values[0],))
        if values[1:]:  # Spark rejects an empty append
            self.listed.appendList([(value,) for value in values[1:]])
        for value in values:
            digit = (value % 10,)
            self.mapped.updateValue(digit, ((self.mapped.getValue(digit) or (0,))[0] + 1,))
        if count > 20:  # the map loses an entry as well
            self.mapped.removeKey((0,))
        listed = sorted(row[0] for row in self.listed.get())
        mapped = sorted((digit[0], n[0]) for digit, n in self.mapped.iterator())
        return key, count, str(listed), str(mapped)

    def close(self) -> None:
        return


class RememberingRows(Remembering):
    def handleInputRows(self, key: tuple[str], rows: Iterator[Row], timers: TimerValues) -> Iterator[Row]:  # noqa: N802
        yield Row(**dict(zip(COLUMNS, self.add(key[0], [row.value for row in rows]), strict=True)))


class RememberingFrames(Remembering):
    def handleInputRows(  # noqa: N802
        self, key: tuple[str], rows: Iterator[pd.DataFrame], timers: TimerValues
    ) -> Iterator[pd.DataFrame]:
        values = [int(value) for frame in rows for value in frame["value"]]
        yield pd.DataFrame([self.add(key[0], values)], columns=COLUMNS)


def remembered(batches: list[Rows]) -> dict[str, tuple[int, list[int], Counter[int]]]:
    """Expected final state of `Remembering`, computed batch by batch to follow its removals."""
    known: dict[str, tuple[int, list[int], Counter[int]]] = {}
    for batch in batches:
        for key in {str(row[1]) for row in batch}:
            values = [int(str(row[2])) for row in batch if row[1] == key]
            count, listed, mapped = known.get(key, (0, [], Counter[int]()))
            mapped = mapped + Counter(value % 10 for value in values)
            if count + len(values) > 20:
                del mapped[0]
            known[key] = (count + len(values), listed + values, mapped)
    return known
