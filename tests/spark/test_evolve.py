"""A changed query continues from the state of the earlier one, equal to plain Python over all input.

Each earlier query runs on files 0 to 2, is changed, and continues with files 3 and 4.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import Column, DataFrame, GroupedData, SparkSession
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from spark_ckpt import evolve, export_savepoint, read_state
from spark_ckpt.evolution import Evolution, EvolutionRefusedError, QueryPlanError
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.operations.verify import verify
from spark_ckpt.storage import LocalStorage
from tests.support.checkpoints import CheckpointJudge
from tests.support.cli import run
from tests.support.provider import ProviderUnderTest
from tests.support.spark_version import needs_rows

START = datetime(2024, 1, 1, tzinfo=timezone.utc)
SCHEMA = "k string, j int, v int, w int, id int, ts timestamp, p decimal(10,2)"
Row = Mapping[str, Any]


@pytest.fixture(autouse=True)
def ours(provider: ProviderUnderTest) -> None:
    if not provider.is_ours:
        pytest.skip("only our provider has state that evolves")


def rows(file: int, source: int = 0) -> list[dict[str, Any]]:
    """Rows of a file."""
    rng = random.Random(1000 * source + file)
    made = []
    for _ in range(120):
        moment = START + timedelta(minutes=10 * file, seconds=rng.randrange(600))
        made.append(
            {
                "k": f"k{rng.randrange(12)}",
                "j": rng.randrange(3),
                "v": rng.randrange(100),
                "w": rng.randrange(1000),
                "id": rng.randrange(40),
                "ts": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "p": round(rng.random() * 100, 2),
            }
        )
    return made


def seconds(row: Row) -> int:
    return int(datetime.strptime(row["ts"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp())


@dataclass
class Changed:
    """A location and its input."""

    spark: SparkSession
    folder: Path
    judge: CheckpointJudge
    location: str = field(init=False)

    def __post_init__(self) -> None:
        self.location = str(self.folder / "query")
        for file in range(3):
            self.put(file)

    def put(self, file: int) -> None:
        for source in (0, 1):
            folder = self.folder / f"in{source}"
            folder.mkdir(parents=True, exist_ok=True)
            hidden = folder / f".{file}"
            hidden.write_text("\n".join(map(json.dumps, rows(file, source))))
            hidden.rename(folder / f"{file}.json")

    def more(self) -> None:
        self.put(3)
        self.put(4)

    def source(self, number: int = 0) -> DataFrame:
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.folder / f"in{number}"))

    def run(self, frame: DataFrame, mode: str = "update") -> list[tuple[Any, ...]]:
        """Runs the query over all input; rows of its sink with the batch in front."""
        out: list[tuple[Any, ...]] = []

        def collect(batch: DataFrame, number: int) -> None:
            out.extend((number, *row) for row in batch.collect())

        writer = frame.writeStream.outputMode(mode).foreachBatch(collect).option("checkpointLocation", self.location)
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return out

    def evolve(self, frame: DataFrame, mode: str = "update", **choices: Any) -> Evolution:
        """Evolves the query, and checks that its dry run says the same and writes nothing."""
        there = sorted(self.folder.glob("query/**/*"))
        planned = evolve(frame, self.location, output_mode=mode, dry_run=True, **choices)
        assert sorted(self.folder.glob("query/**/*")) == there
        done = evolve(frame, self.location, output_mode=mode, **choices)
        assert planned.stores == done.stores
        assert planned.sources == done.sources
        self.judge.check(Path(self.location), all_retained=False)
        assert verify(LocalStorage(Path(self.location)), everything=True).is_whole
        return done

    def refused(self, frame: DataFrame, words: str, mode: str = "update", **choices: Any) -> None:
        with pytest.raises(EvolutionRefusedError, match=words):
            evolve(frame, self.location, output_mode=mode, dry_run=True, **choices)


@pytest.fixture
def changed(spark: SparkSession, tmp_path: Path, judge: CheckpointJudge) -> Iterator[Changed]:
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        yield Changed(spark, tmp_path, judge)
    finally:
        spark.conf.unset("spark.sql.shuffle.partitions")


def last(out: Sequence[tuple[Any, ...]], keys: int) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The last row of each key in update mode."""
    return {tuple(row[1 : 1 + keys]): tuple(row[1 + keys :]) for row in out}


def touched(files: Sequence[int], key: Callable[[Row], Any]) -> set[Any]:
    return {key(row) for file in files for row in rows(file)}


ALL, RECENT = range(5), (3, 4)


@pytest.mark.core
def test_aggregates_and_keys(changed: Changed) -> None:
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


def test_a_new_aggregate_begins_without_input_or_with_values(changed: Changed) -> None:
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


def test_a_key_column_less_merges_states(changed: Changed) -> None:
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


def test_an_aggregation_without_a_key(changed: Changed) -> None:
    changed.run(changed.source().agg(sf.count("*")), "complete")
    changed.more()
    frame = changed.source().agg(sf.sum("v"), sf.count("*"))
    changed.evolve(frame, "complete")
    *_, newest = changed.run(frame, "complete")
    assert newest[1:] == (sum(row["v"] for file in RECENT for row in rows(file)), sum(len(rows(file)) for file in ALL))


@pytest.mark.core
def test_an_operator_added_and_removed(changed: Changed) -> None:
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


def test_de_duplication(changed: Changed) -> None:
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


def joined(changed: Changed, left: Sequence[str], right: Sequence[str], how: str = "inner") -> DataFrame:
    a = changed.source().select("k", "id", "ts", *left).withWatermark("ts", "1 hour").alias("a")
    b = changed.source(1).select("k", "id", "ts", *right).withWatermark("ts", "1 hour").alias("b")
    hour = "interval 1 hour"
    on = sf.expr(f"a.k = b.k and a.id = b.id and a.ts >= b.ts - {hour} and a.ts <= b.ts + {hour}")
    times = (sf.col("a.ts").cast("long"), sf.col("b.ts").cast("long"))
    return a.join(b, on, how).select("a.k", "a.id", *times, *left, *right)


@pytest.mark.core
@pytest.mark.parametrize("join_format", ["2", "3"])
def test_the_payload_of_a_join(changed: Changed, spark: SparkSession, join_format: str) -> None:
    """A column more on the left, null in earlier rows; one less on the right."""
    key = "spark.sql.streaming.join.stateFormatVersion"
    spark.conf.set(key, join_format)
    try:
        changed.run(joined(changed, ["v"], ["w", "j"]), "append")
        changed.more()
        frame = joined(changed, ["v", "p"], ["w"])
        changed.refused(joined(changed, ["v"], ["w"], "left_outer"), "a LEFT OUTER join was a INNER join", "append")
        changed.evolve(frame, "append")
        out = changed.run(frame, "append")
    finally:
        spark.conf.unset(key)
    got = [(*row[1:6], None if row[6] is None else float(row[6]), row[7]) for row in out]
    want = []
    for file in ALL:
        for other in ALL:
            if max(file, other) < 3:
                continue
            for a in rows(file):
                for b in rows(other, 1):
                    if (a["k"], a["id"]) == (b["k"], b["id"]) and abs(seconds(a) - seconds(b)) <= 3600:
                        price = a["p"] if file in RECENT else None
                        want.append((a["k"], a["id"], seconds(a), seconds(b), a["v"], price, b["w"]))
    assert sorted(got, key=str) == sorted(want, key=str)


def counted(changed: Changed, delay: str, length: str, *more: Column) -> DataFrame:
    windows = (
        changed.source().withWatermark("ts", delay).groupBy(sf.window("ts", length), "k").agg(sf.count("*"), *more)
    )
    start = sf.col("window.start").cast("long").alias("start")
    return windows.select(start, "k", "count(1)", *(["sum(v)"] if more else []))


@pytest.mark.core
def test_windows_come_out_once(changed: Changed) -> None:
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


def test_session_windows(changed: Changed) -> None:
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


def _sessions_of(changed: Changed) -> dict[Any, tuple[int, int | None]]:
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


@pytest.mark.core
def test_sources(changed: Changed) -> None:
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


def test_everything_unsound_is_refused_at_once(changed: Changed) -> None:
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


def test_told_that_a_function_continues_another(changed: Changed) -> None:
    changed.run(changed.source().groupBy("k").agg(sf.max("v")))
    changed.more()
    frame = changed.source().groupBy("k").agg(sf.max(sf.abs("v")))
    changed.refused(frame, "came, and max")
    changed.evolve(frame, functions={"max(abs(v))": "max(v)"})
    got = last(changed.run(frame), 1)
    for key in touched(RECENT, lambda row: row["k"]):
        assert got[key,] == (max(row["v"] for file in ALL for row in rows(file) if row["k"] == key),)


def test_nothing_changes(changed: Changed) -> None:
    frame = changed.source().groupBy("k").count()
    changed.run(frame)
    done = evolve(changed.source().where("v >= 0").groupBy("k").count(), changed.location, output_mode="update")
    assert (done.checkpoint_id, done.batch_id) == (None, None)


def test_a_new_location(changed: Changed, tmp_path: Path) -> None:
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


# ---- state variables and groups --------------------------------------------------------------------------------------


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
def test_variables_of_transform_with_state(changed: Changed) -> None:
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


def test_groups_with_state_in_pandas(changed: Changed) -> None:
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


# ---- the way back, and the command -----------------------------------------------------------------------------------


def test_a_rollback_brings_the_earlier_query_back(changed: Changed) -> None:
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


def test_the_state_is_exported_to_flink_after_an_evolution(changed: Changed) -> None:
    changed.run(changed.source().groupBy("k").agg(sf.count("*")))
    frame = changed.source().groupBy("k").agg(sf.sum("v"), sf.count("*"))
    changed.evolve(frame)
    changed.more()
    changed.run(frame)
    target = changed.folder / "flink"
    exported = export_savepoint(changed.location, target, key="string", uid="operator", force=True)
    assert exported.states
    assert (target / "_metadata").is_file()


def test_the_command_evolves(changed: Changed, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a session of its own in production; here in the test's."""
    changed.run(changed.source().groupBy("k").agg(sf.count("*")))
    job = changed.folder / "job.py"
    job.write_text(
        "from pyspark.sql import functions as sf\n"
        "def build(spark):\n"
        f"    rows = spark.readStream.schema({SCHEMA!r}).json({str(changed.folder / 'in0')!r})\n"
        "    return rows.groupBy('k').agg(sf.count('*'), sf.max('v')).writeStream.outputMode('update')\n"
    )

    @contextmanager
    def session(*_: object) -> Iterator[SparkSession]:
        yield changed.spark

    monkeypatch.setattr("spark_ckpt.cli.commands.evolve.spark_session", session)
    result = run("evolve", changed.location, "--query", f"{job}:build", "--dry-run", "--json")
    assert result.status == 0, result.stderr
    assert [store["rewritten"] for store in result.json["stores"]] == [True]
    assert run("evolve", changed.location, "--query", f"{job}:build").status == 0
    changed.more()
    got = last(changed.run(changed.source().groupBy("k").agg(sf.count("*"), sf.max("v"))), 1)
    for key in touched(RECENT, lambda row: row["k"]):
        recent = max(row["v"] for file in RECENT for row in rows(file) if row["k"] == key)
        assert got[key,] == (sum(row["k"] == key for file in ALL for row in rows(file)), recent)


def test_what_spark_cannot_plan_is_one_error(changed: Changed) -> None:
    changed.run(changed.source().groupBy("k").count())
    with pytest.raises(QueryPlanError, match="no streaming query"):
        evolve(changed.spark.range(3), changed.location)
    with pytest.raises(QueryPlanError, match="append"):
        evolve(changed.source().groupBy("k").count(), changed.location, output_mode="append", dry_run=True)
    with pytest.raises(QueryPlanError, match="output mode is 'other'"):
        evolve(changed.source().groupBy("k").count(), changed.location, output_mode="other")
