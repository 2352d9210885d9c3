"""Random pairs of queries: an aggregation changes twice in the middle of its input, and equals plain Python.

Keys are reordered, renamed, widened and dropped; functions are added, dropped, reordered and widened; a source is
added. A function covers the input that came while the query had it.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_ckpt import evolve, read_state
from tests.support.checkpoints import CheckpointJudge
from tests.support.provider import ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog

SCHEMA = "k string, j int, v int, w int"
LIMITS = (3, 100, 50)
"""Limits of the numbers in a row."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Function:
    """An aggregate function: in Spark, and over rows in Python."""

    column: Callable[[], Column]
    python: Callable[[Sequence[Row]], Any]
    buffers: Callable[[Sequence[Row]], tuple[Any, ...]] | None = None

    def of(self, rows: Sequence[Row]) -> tuple[Any, ...]:
        """Its buffers in the state."""
        return self.buffers(rows) if self.buffers is not None else (self.python(rows),)


def total(name: str) -> Callable[[Sequence[Row]], Any]:
    return lambda rows: sum(row[name] for row in rows) if rows else None


def average(name: str) -> Callable[[Sequence[Row]], tuple[Any, ...]]:
    return lambda rows: (float(sum(row[name] for row in rows)), len(rows))


FUNCTIONS = {
    "count": Function(lambda: sf.count("*"), len),
    "sum v": Function(lambda: sf.sum("v"), total("v")),
    "sum w": Function(lambda: sf.sum(sf.col("w") * 2), lambda rows: 2 * sum(r["w"] for r in rows) if rows else None),
    "max v": Function(lambda: sf.max("v"), lambda rows: max((row["v"] for row in rows), default=None)),
    "min w": Function(lambda: sf.min("w"), lambda rows: min((row["w"] for row in rows), default=None)),
    "wide min w": Function(
        lambda: sf.min(sf.col("w").cast("long")), lambda rows: min((row["w"] for row in rows), default=None)
    ),
    "avg v": Function(lambda: sf.avg("v"), total("v"), average("v")),
}
KEYS: Mapping[str, Callable[[str], Column]] = {
    "k": sf.col,
    "j": sf.col,
    "wide j": lambda _: sf.col("j").cast("long").alias("wide_j"),
}
SAME = {"wide min w": "min w", "wide j": "j"}
"""Functions and keys that continue a narrower one."""


@dataclass(frozen=True)
class Query:
    """A query: keys and functions in order, and numbers of its sources."""

    keys: tuple[str, ...]
    functions: tuple[str, ...]
    sources: tuple[int, ...] = (0,)

    def frame(self, sources: Sequence[DataFrame]) -> DataFrame:
        rows = sources[self.sources[0]]
        for number in self.sources[1:]:
            rows = rows.union(sources[number])
        return rows.groupBy(*(KEYS[key](key) for key in self.keys)).agg(
            *(FUNCTIONS[f].column() for f in self.functions)
        )

    def changed(self, rng: random.Random) -> Query:
        """A random change of it that is sound, without a question but for new sources."""
        keys = [rng.choice([key, *(wide for wide, narrow in SAME.items() if narrow == key)]) for key in self.keys]
        rng.shuffle(keys)
        kept = [f for f in self.functions if rng.random() < 0.8] or [self.functions[0]]
        kept = [rng.choice([f, *(wide for wide, narrow in SAME.items() if narrow == f)]) for f in kept]
        functions = list(kept)
        if {SAME.get(f, f) for f in kept} == {SAME.get(f, f) for f in self.functions}:  # nothing went, so more may come
            taken = {SAME.get(f, f) for f in kept}
            free = [f for f in FUNCTIONS if SAME.get(f, f) not in taken]
            functions += rng.sample(free, rng.randrange(min(3, len(free)) + 1))
        if len(keys) > 1 and rng.random() < 0.3:
            keys = keys[:-1]
        rng.shuffle(functions)
        sources = (*self.sources, 1) if len(self.sources) == 1 and rng.random() < 0.5 else self.sources
        return replace(self, keys=tuple(keys), functions=tuple(functions), sources=sources)


@dataclass
class Covered:
    """Rows of the input, and those that each function of a query covers."""

    every: list[Row] = field(default_factory=list)
    of: dict[str, list[Row]] = field(default_factory=dict)

    def add(self, query: Query, rows: Sequence[Row]) -> None:
        """Adds rows that a query has read."""
        self.every += rows
        self.of = {narrow: [*self.of.get(narrow, []), *rows] for narrow in (SAME.get(f, f) for f in query.functions)}

    def state(self, query: Query) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """Buffers by key. A key is there if any row had it, whatever functions the query had then."""
        columns = [SAME.get(key, key) for key in query.keys]

        def key_of(row: Row) -> tuple[Any, ...]:
            return tuple(row[column] for column in columns)

        found: dict[tuple[Any, ...], dict[str, list[Row]]] = {key_of(row): defaultdict(list) for row in self.every}
        for function, rows in self.of.items():
            for row in rows:
                found[key_of(row)][function].append(row)
        return {
            key: tuple(buffer for f in query.functions for buffer in FUNCTIONS[f].of(rows[SAME.get(f, f)]))
            for key, rows in found.items()
        }


@pytest.fixture(autouse=True)
def ours(provider: ProviderUnderTest) -> None:
    if not provider.is_ours:
        pytest.skip("only our provider has state that evolves")


@pytest.mark.parametrize("number", [0, *(pytest.param(number, marks=pytest.mark.long) for number in range(1, 5))])
def test_random_pairs(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, judge: CheckpointJudge, tmp_path: Path, number: int
) -> None:
    names = [column.split()[0] for column in SCHEMA.split(", ")]
    feeds = [runner.feed(f"in{source}", SCHEMA) for source in (0, 1)]
    sources = [feed.stream(spark) for feed in feeds]
    query = Query(("k", "j"), tuple(rng.sample(sorted(set(FUNCTIONS) - set(SAME)), 3)))
    covered, read = Covered(), [0, 0]
    for step in range(3):
        for feed in feeds:
            feed.drop([(f"k{rng.randrange(6)}", *(rng.randrange(limit) for limit in LIMITS)) for _ in range(40)])
        runner.drain(query.frame(sources), BatchLog(tmp_path / f"out{step}", "update"))
        for source in query.sources:
            new, read[source] = feeds[source].batches[read[source] :], len(feeds[source].batches)
            covered.add(query, [dict(zip(names, row, strict=True)) for batch in new for row in batch])
        assert state_of(runner.location) == covered.state(query), f"{query} in step {step}"
        judge.check(runner.location, all_retained=False)
        if step < 2:
            before, query = query, query.changed(rng)
            begun: dict[int, None] = {1: None} if len(query.sources) > len(before.sources) else {}
            evolve(query.frame(sources), runner.location, output_mode="update", sources=begun)


def state_of(location: Path) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Buffers by key."""
    rows = read_state(str(location)).to_arrow().to_pylist()
    return {tuple(each["key"].values()): tuple(each["value"].values()) for each in rows}
