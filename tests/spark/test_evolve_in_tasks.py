"""Large stores are rewritten by Spark tasks, with the same result as in the driver."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from spark_ckpt import evolve, read_state
from spark_ckpt.evolution import EvolutionValueError, spark_tasks
from spark_ckpt.evolution.spark_tasks import SparkTasks
from tests.support.changed_query import ChangedQuery, rows
from tests.support.spark_version import needs_rows

pytestmark = pytest.mark.usefixtures("ours_only", "every_store_is_large")


@pytest.fixture
def every_store_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_tasks, "LARGE_ROWS", 1)


@pytest.fixture
def in_tasks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of partitions of each store that tasks have rewritten."""
    counts: list[int] = []
    chains = SparkTasks.chains

    def counted(*arguments: Any) -> Any:
        made = chains(*arguments)
        counts.append(len(made))
        return made

    monkeypatch.setattr(SparkTasks, "chains", counted)
    return counts


def state_of(changed: ChangedQuery, **which: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_state(changed.location, **which).to_arrow().to_pylist()
    return found


def aggregates() -> tuple[Column, ...]:
    return sf.count("*"), sf.sum("v"), sf.min("w")


@pytest.mark.core
def test_rows_that_stay_in_their_partition(changed: ChangedQuery, in_tasks: list[int]) -> None:
    changed.run(changed.source().groupBy("k", "j").agg(*aggregates()))
    before = {tuple(each["key"].values()): tuple(each["value"].values()) for each in state_of(changed)}
    changed.evolve(changed.source().groupBy("k", "j").agg(sf.max("v"), *aggregates()))
    assert in_tasks == [3]
    after = {tuple(each["key"].values()): tuple(each["value"].values()) for each in state_of(changed)}
    assert after == {key: (None, *values) for key, values in before.items()}
    changed.more()
    assert changed.run(changed.source().groupBy("k", "j").agg(sf.max("v"), *aggregates()))


def test_rows_that_move_and_merge(changed: ChangedQuery, in_tasks: list[int]) -> None:
    changed.run(changed.source().groupBy("k", "j").agg(*aggregates()))
    changed.evolve(changed.source().groupBy("j").agg(*aggregates()))
    assert in_tasks == [3]
    expected = {}
    every = [row for file in range(3) for row in rows(file)]
    for j in {row["j"] for row in every}:
        mine = [row for row in every if row["j"] == j]
        expected[j] = (len(mine), sum(row["v"] for row in mine), min(row["w"] for row in mine))
    assert {each["key"]["j"]: tuple(each["value"].values()) for each in state_of(changed)} == expected


class Listing(StatefulProcessor):
    """Keeps the values of a key, in the order of its batches."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.seen = handle.getListState("seen", "file int, v int")
        self.n = handle.getValueState("n", "n long")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timers: TimerValues) -> Iterator[Any]:  # noqa: N802
        values = sorted((row.ts.timestamp(), row.v) for row in rows)
        number = (self.n.get() or (0,))[0]
        for _, v in values:
            self.seen.appendValue((number, v))
            number += 1
        self.n.update((number,))
        yield Row(n=number)

    def close(self) -> None:
        return


@pytest.mark.long
@needs_rows
def test_lists_move_in_order(changed: ChangedQuery, in_tasks: list[int]) -> None:
    def frame(*keys: str) -> DataFrame:
        return changed.source().groupBy(*keys).transformWithState(Listing(), "n long", "update", "none")

    changed.run(frame("k", "j"))
    lists = lists_of(changed)
    assert all([place for place, _ in values] == list(range(len(values))) for values in lists.values())
    changed.evolve(frame("j", "k"))
    assert in_tasks == [3]
    assert lists_of(changed) == lists


def lists_of(changed: ChangedQuery) -> dict[tuple[str, int], list[tuple[int, int]]]:
    lists: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for each in state_of(changed, variable="seen"):
        element = each["list_element"]
        lists.setdefault((each["key"]["k"], each["key"]["j"]), []).append((element["file"], element["v"]))
    return lists


@pytest.mark.parametrize("package", ["no_package_of_this_name", 5])
def test_executors_without_the_package(
    package: object, changed: ChangedQuery, in_tasks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or without a Python that can tell: then the look for it fails."""
    monkeypatch.setattr(spark_tasks, "_PACKAGE", package)
    changed.run(changed.source().groupBy("k").agg(*aggregates()))
    changed.evolve(changed.source().groupBy("k").agg(sf.max("v"), *aggregates()))
    assert in_tasks == []


def test_tasks_that_fail(
    changed: ChangedQuery, in_tasks: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The driver rewrites the store instead, and leaves none of their files."""
    changed.run(changed.source().groupBy("k").agg(*aggregates()))
    begin = SparkTasks.__init__

    def spoiled(tasks: SparkTasks, *arguments: Any) -> None:
        begin(tasks, *arguments)
        tasks._settings["a"] = Unsendable()  # type: ignore[assignment]

    monkeypatch.setattr(SparkTasks, "__init__", spoiled)
    with caplog.at_level(logging.WARNING):
        changed.evolve(changed.source().groupBy("k").agg(sf.max("v"), *aggregates()))
    assert in_tasks == []
    assert "the tasks that rewrite" in caplog.text


class Unsendable:
    """An object that arrives at no task."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _raise, ()


def _raise() -> None:
    raise RuntimeError("does not arrive")


def test_a_value_that_does_not_fit_is_one_error(changed: ChangedQuery, in_tasks: list[int]) -> None:
    """Nothing was changed, and no file of a task is left."""
    every = [row for file in range(3) for row in rows(file)]
    one = every[0]
    other = next(row for row in every if row["k"] == one["k"] and row["j"] != one["j"])
    chosen = " or ".join(f"(ts = '{row['ts']}' and j = {row['j']} and k = '{row['k']}')" for row in (one, other))
    total = sf.sum(sf.expr(f"if({chosen}, {6 * 10**18}L, 0L)"))
    changed.run(changed.source().groupBy("k", "j").agg(total))
    files = {path for path in Path(changed.location).rglob("*") if path.is_file()}
    with pytest.raises(EvolutionValueError, match="a sum does not fit"):
        evolve(changed.source().groupBy("k").agg(total), changed.location, output_mode="update")
    assert in_tasks == []
    left = {path for path in Path(changed.location).rglob("*") if path.is_file()} - files
    assert not [path for path in left if "shared" in path.parts]
