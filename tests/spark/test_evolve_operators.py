"""Operators, sources and locations change in the middle of the input, and an evolution is taken back."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_ckpt import evolve
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.storage import LocalStorage
from tests.support.changed_query import ALL, RECENT, ChangedQuery, Row, last, rows, touched

pytestmark = pytest.mark.usefixtures("ours_only")


@pytest.mark.core
def test_an_operator_added_and_removed(changed: ChangedQuery) -> None:
    """Operators count from the sink, so one that is added before the aggregation has the higher number."""

    def counts(frame: DataFrame) -> DataFrame:
        return frame.groupBy("k").agg(sf.count("*"))

    changed.run(counts(changed.source()))
    changed.more()
    more = counts(changed.source().dropDuplicates(["k", "id"]))
    done = changed.evolve(more)
    assert [(store.name, store.from_operator) for store in done.stores] == [("stateStoreSave", 0), ("dedupe", None)]
    got = last(changed.run(more), 1)
    want: dict[str, int] = defaultdict(int)
    for file in (0, 1, 2):
        for row in rows(file):
            want[row["k"]] += 1
    for key, _ in touched(RECENT, lambda row: (row["k"], row["id"])):
        want[key] += 1
    assert {key[0]: values[0] for key, values in got.items()} == {k: want[k] for k in touched(RECENT, lambda r: r["k"])}
    less = counts(changed.source())
    changed.refused(less, r"operator 1 \(dedupe\) of the earlier query is gone, with .* rows")
    changed.evolve(less, drop=[1])
    changed.put(5)
    got = last(changed.run(less), 1)
    for row in rows(5):
        want[row["k"]] += 1
    assert {key[0]: values[0] for key, values in got.items()} == {k: want[k] for k in touched((5,), lambda r: r["k"])}


def test_de_duplication(changed: ChangedQuery) -> None:
    """Key columns in another order with one more payload column, then one key column less."""
    changed.run(changed.source().select("k", "id", "v").dropDuplicates(["k", "id"]), "append")
    changed.more()
    frame = changed.source().select("v", "id", "w", "k").dropDuplicates(["id", "k"])
    changed.evolve(frame, "append")
    got = sorted((row[2], row[4]) for row in changed.run(frame, "append"))

    def pair(row: Row) -> tuple[int, str]:
        return row["id"], row["k"]

    assert got == sorted(touched(RECENT, pair) - touched((0, 1, 2), pair))
    changed.put(5)
    fewer = changed.source().select("id", "w").dropDuplicates(["id"])
    changed.evolve(fewer, "append")
    got = sorted(row[1] for row in changed.run(fewer, "append"))
    assert got == sorted(touched((5,), lambda row: row["id"]) - touched(ALL, lambda row: row["id"]))
    wider = changed.source().select("k", "id", "j").dropDuplicates(["k", "id", "j"])
    changed.refused(wider, "the key column j", "append")


@pytest.mark.core
def test_sources(changed: ChangedQuery) -> None:
    """A source added, then the first one removed."""
    changed.run(changed.source().groupBy("k").count())
    changed.more()
    both = changed.source().select("k").union(changed.source(1).select("k")).groupBy("k").count()
    changed.refused(both, "source 1 .*in1.* is none of the earlier query")
    done = changed.evolve(both, sources={1: None})
    assert [(source.from_source, source.position) for source in done.sources] == [(0, '{"logOffset":2}'), (None, None)]
    changed.run(both)
    want: dict[str, int] = defaultdict(int)
    for file in ALL:
        for source in (0, 1):
            for row in rows(file, source):
                want[row["k"]] += 1
    second = changed.source(1).groupBy("k").count()
    done = changed.evolve(second)
    assert [source.from_source for source in done.sources] == [1]
    changed.put(5)
    got = last(changed.run(second), 1)
    for row in rows(5, 1):
        want[row["k"]] += 1
    assert {key[0]: values[0] for key, values in got.items()} == {k: want[k] for k in {row["k"] for row in rows(5, 1)}}


def test_nothing_changes(changed: ChangedQuery) -> None:
    frame = changed.source().groupBy("k").count()
    changed.run(frame)
    done = evolve(changed.source().where("v >= 0").groupBy("k").count(), changed.location, output_mode="update")
    assert (done.checkpoint_id, done.batch_id) == (None, None)


def test_a_new_location(changed: ChangedQuery, tmp_path: Path) -> None:
    frame = changed.source().groupBy("k").agg(sf.count("*"))
    changed.run(frame)
    changed.more()
    new = changed.source().groupBy("k").agg(sf.sum("v"), sf.count("*"))
    target = tmp_path / "new"
    evolve(new, changed.location, output_mode="update", new_location=target)
    earlier, changed.location = changed.location, str(target)
    got = last(changed.run(new), 1)
    for key in touched(RECENT, lambda row: row["k"]):
        recent = [row["v"] for file in RECENT for row in rows(file) if row["k"] == key]
        assert got[key,] == (sum(recent), sum(row["k"] == key for file in ALL for row in rows(file)))
    changed.location = earlier
    assert len(changed.run(frame)) > 0  # the earlier query is as it was


def test_a_rollback_brings_the_earlier_query_back(changed: ChangedQuery) -> None:
    earlier = changed.source().groupBy("k").agg(sf.count("*"))
    changed.run(earlier)
    frame = changed.source().groupBy("k").agg(sf.sum("v"), sf.count("*"))
    done = changed.evolve(frame)
    changed.more()
    changed.run(frame)
    changed.put(5)
    with pytest.raises(StreamingQueryException):
        changed.run(earlier)
    roll_back(LocalStorage(Path(changed.location)), done.from_checkpoint, force=True)
    got = last(changed.run(earlier), 1)
    for key in touched((3, 4, 5), lambda row: row["k"]):
        assert got[key,] == (sum(row["k"] == key for file in range(6) for row in rows(file)),)
