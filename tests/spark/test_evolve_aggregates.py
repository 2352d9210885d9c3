"""Aggregations and their keys change in the middle of the input, and equal plain Python over all of it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from pyspark.sql import functions as sf

from spark_ckpt import evolve
from spark_ckpt.evolution import EvolutionRefusedError
from tests.support.changed_query import ALL, RECENT, ChangedQuery, last, rows, touched

pytestmark = pytest.mark.usefixtures("ours_only")


@pytest.mark.core
def test_aggregates_and_keys(changed: ChangedQuery) -> None:
    """Added, dropped, reordered aggregates; keys reordered, renamed, widened; values widened."""
    changed.run(
        changed.source().groupBy("k", "j").agg(sf.count("*"), sf.sum("v"), sf.max("v"), sf.min("w"), sf.sum("p"))
    )
    changed.more()
    source = changed.source().withColumn("jj", sf.col("j").cast("long")).withColumn("v", sf.col("v").cast("long"))
    frame = source.groupBy("jj", "k").agg(
        sf.max("v").alias("largest"),
        sf.avg("w").alias("mean"),
        sf.sum("v").alias("total"),
        sf.count("*").alias("n"),
        sf.sum(sf.col("p").cast("decimal(12,2)")).alias("price"),
    )
    changed.refused(frame, r"avg\(w\) came, and min\(w\) went")
    changed.evolve(frame, functions={"avg(w)": None})
    got = last(changed.run(frame), 2)
    state: dict[Any, list[Any]] = defaultdict(lambda: [None, [], 0, 0, 0])
    for file in ALL:
        for row in rows(file):
            each = state[row["j"], row["k"]]
            each[0] = row["v"] if each[0] is None else max(row["v"], each[0])
            each[1] += [row["w"]] if file in RECENT else []
            each[2] += row["v"]
            each[3] += 1
            each[4] += round(row["p"] * 100)
    keys = touched(RECENT, lambda row: (row["j"], row["k"]))
    want = {key: (s[0], sum(s[1]) / len(s[1]), s[2], s[3], s[4]) for key, s in state.items() if key in keys}
    assert {key: (*values[:4], int(values[4] * 100)) for key, values in got.items()} == want


def test_a_new_aggregate_begins_without_input_or_with_values(changed: ChangedQuery) -> None:
    """Objects too: an empty list comes from Spark."""
    changed.run(changed.source().groupBy("k").agg(sf.count("*")))
    changed.more()
    frame = changed.source().groupBy("k").agg(sf.max("w"), sf.count("*"), sf.collect_list("v"), sf.sum("v"))
    done = changed.evolve(frame, initial={"sum(v)": [1000]})
    assert "collect_list(v): begins without input" in " ".join(done.stores[0].notes)
    got = last(changed.run(frame), 1)
    for key in touched(RECENT, lambda row: row["k"]):
        recent = [row for file in RECENT for row in rows(file) if row["k"] == key]
        number = sum(row["k"] == key for file in ALL for row in rows(file))
        most, count, values, total = got[key,]
        assert (most, count, total) == (max(row["w"] for row in recent), number, 1000 + sum(row["v"] for row in recent))
        assert sorted(values) == sorted(row["v"] for row in recent)


def test_a_key_column_less_merges_states(changed: ChangedQuery) -> None:
    aggregates = (sf.count("*"), sf.sum("v"), sf.min("w"), sf.max("w"), sf.avg("v"))
    changed.run(changed.source().groupBy("k", "j").agg(*aggregates))
    changed.more()
    frame = changed.source().groupBy("k").agg(*aggregates)
    done = changed.evolve(frame)
    assert "without the key column j: its states are merged" in done.stores[0].notes[0]
    got = last(changed.run(frame), 1)
    for key in touched(RECENT, lambda row: row["k"]):
        every = [row for file in ALL for row in rows(file) if row["k"] == key]
        v, w = [row["v"] for row in every], [row["w"] for row in every]
        assert got[key,][:4] == (len(v), sum(v), min(w), max(w))
        assert got[key,][4] == pytest.approx(sum(v) / len(v))
    changed.refused(changed.source().groupBy("k", "j").agg(*aggregates), r"the key column j \(0.j\) is new")


def test_an_aggregation_without_a_key(changed: ChangedQuery) -> None:
    changed.run(changed.source().agg(sf.count("*")), "complete")
    changed.more()
    frame = changed.source().agg(sf.sum("v"), sf.count("*"))
    changed.evolve(frame, "complete")
    *_, newest = changed.run(frame, "complete")
    assert newest[1:] == (sum(row["v"] for file in RECENT for row in rows(file)), sum(len(rows(file)) for file in ALL))


def test_told_that_a_function_continues_another(changed: ChangedQuery) -> None:
    changed.run(changed.source().groupBy("k").agg(sf.max("v")))
    changed.more()
    frame = changed.source().groupBy("k").agg(sf.max(sf.abs("v")))
    changed.refused(frame, "came, and max")
    changed.evolve(frame, functions={"max(abs(v))": "max(v)"})
    got = last(changed.run(frame), 1)
    for key in touched(RECENT, lambda row: row["k"]):
        assert got[key,] == (max(row["v"] for file in ALL for row in rows(file) if row["k"] == key),)


def test_everything_unsound_is_refused_at_once(changed: ChangedQuery) -> None:
    changed.run(changed.source().groupBy("k").agg(sf.count("*"), sf.sum("v")))
    source = changed.source()
    both = source.groupBy(sf.upper("k").alias("k")).agg(sf.count("*"), sf.sum("v"))
    changed.refused(both, r"the key column .* is upper\(0.k\), and was 0.k")
    changed.refused(source.groupBy("k").agg(sf.count("*"), sf.sum("w")), r"sum\(w\) came, and sum\(v\) went")
    changed.refused(source.groupBy("k").agg(sf.count("*"), sf.max("w")), r"max\(w\) came, and sum\(v\) went")
    changed.refused(
        source.dropDuplicates(["k"]), r"operator 0 \(stateStoreSave\) of the earlier query is gone", "append"
    )
    other = changed.source(1).groupBy("k").agg(sf.count("*"), sf.sum("w"))
    with pytest.raises(EvolutionRefusedError) as refused:
        evolve(other, changed.location, output_mode="update")
    assert len(refused.value.problems) == 2
    narrow = source.groupBy("k").agg(sf.count("*"), sf.sum(sf.col("v").cast("decimal(5,0)")))
    changed.refused(narrow, "sum", functions={"sum(v)": "sum(v)"})
