"""Queries of Spark continue from edited and erased state, and from moved offsets."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_ckpt import edit_state, erase_state, read_state, verify_absent
from spark_ckpt.operations.offsets import move_offsets
from spark_ckpt.operations.verify import verify
from spark_ckpt.storage import LocalStorage
from tests.spark.processors import COUNTS, RememberingRows, remembered
from tests.support.checkpoints import CheckpointJudge, committed_batches
from tests.support.counts import RunningCount
from tests.support.events import SCHEMA, events
from tests.support.feeds import Row
from tests.support.provider import ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, assert_same_rows
from tests.support.spark_version import needs_rows

pytestmark = pytest.mark.usefixtures("checkpoint_format")


@pytest.fixture(autouse=True)
def ours(provider: ProviderUnderTest) -> None:
    if not provider.is_ours:
        pytest.skip("only our provider has state that can be written")


def sums(rows: Sequence[Row]) -> dict[object, tuple[int, int]]:
    """Count and sum by key, in Python."""
    result: dict[object, tuple[int, int]] = {}
    for _, key, value in rows:
        number, total = result.get(key, (0, 0))
        result[key] = (number + 1, total + int(str(value)))
    return result


def state_of(count: RunningCount) -> dict[object, tuple[int, int]]:
    rows = read_state(str(count.location)).to_arrow().to_pylist()
    return {each["key"]["key"]: tuple(each["value"].values()) for each in rows}


def test_a_query_continues_from_edited_and_erased_keys(count: RunningCount, judge: CheckpointJudge) -> None:
    count.drop(2)
    count.drain()
    before = sums(count.feed.rows())
    assert state_of(count) == before
    changed, deleted, erased = sorted(map(str, before))[:3]
    names = [field.name for field in read_state(str(count.location)).schema.field("value").type]
    rows = pa.Table.from_pylist([{"key": {"key": changed}, "value": dict(zip(names, (1000, -5), strict=True))}])
    edit = edit_state(count.location, rows, pa.Table.from_pylist([{"key": {"key": deleted}}]), force=True)
    assert (edit.updated, edit.deleted, edit.inserted) == (1, 1, 0)
    erasure = erase_state(count.location, pa.table({"key": [erased]}), purge_files=True, force=True)
    assert sum(family.rows for family in erasure.families) == 1
    expected = {**before, changed: (1000, -5)}
    del expected[deleted], expected[erased]
    assert state_of(count) == expected
    assert verify_absent(count.location, pa.table({"key": [erased]})).traces == ()
    old = len(count.feed.rows())
    count.drop(3)
    count.drain()
    for key, (number, total) in sums(count.feed.rows()[old:]).items():
        had = expected.get(key, (0, 0))
        expected[key] = (had[0] + number, had[1] + total)
    assert state_of(count) == expected
    assert_same_rows(
        [row for row in count.sink.rows() if row[0] in sums(count.feed.rows()[old:])],
        [(key, *expected[key]) for key in sums(count.feed.rows()[old:])],
    )
    judge.check(count.location, all_retained=False)
    assert verify(LocalStorage(count.location), everything=True).is_whole


def test_files_are_read_again_and_skipped(count: RunningCount, judge: CheckpointJudge) -> None:
    count.drop(2)
    count.drain()
    once, storage = sums(count.feed.rows()), LocalStorage(count.location)
    last = committed_batches(count.location)[-1]
    moved = move_offsets(storage, {"0": '{"logOffset":-1}'}, force=True)
    assert moved.batches == 2
    count.drain()
    assert committed_batches(count.location)[-1] > last + 2
    assert state_of(count) == {key: (2 * number, 2 * total) for key, (number, total) in once.items()}
    old = len(count.feed.rows())
    count.drop(1)
    count.drain()
    for key, (number, total) in sums(count.feed.rows()[old:]).items():
        had = once.get(key, (0, 0))
        once[key] = (had[0] + number, had[1] + total)
        assert state_of(count)[key] == (2 * had[0] + number, 2 * had[1] + total)
    judge.check(count.location, all_retained=False)


def test_a_key_is_erased_from_every_window(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path
) -> None:
    """The window is part of the grouping key, and is not given."""
    feed = runner.feed("events", SCHEMA)
    batches = events(rng, batches=6)

    def plan() -> DataFrame:
        return feed.stream(spark).groupBy(sf.window("ts", "10 seconds"), "key").agg(sf.sum("value").alias("total"))

    def state() -> dict[tuple[object, str], int]:
        rows = read_state(str(runner.location)).to_arrow().to_pylist()
        return {(each["key"]["window"]["start"], each["key"]["key"]): each["value"]["sum"] for each in rows}

    sink = BatchLog(tmp_path / "out", "update")
    for batch in batches[:4]:
        feed.drop(batch)
    runner.drain(plan(), sink)
    before = state()
    erasure = erase_state(runner.location, pa.table({"key": ["k1"]}), force=True)
    assert sum(each.rows for each in erasure.families) == sum(key[1] == "k1" for key in before)
    expected = {key: total for key, total in before.items() if key[1] != "k1"}
    assert state() == expected
    for batch in batches[4:]:
        feed.drop(batch)
    runner.drain(plan(), sink)
    later = [int(str(row[2])) for batch in batches[4:] for row in batch if row[1] == "k1"]
    assert later
    assert sum(total for key, total in state().items() if key[1] == "k1") == sum(later)


@pytest.mark.core
@needs_rows
def test_all_variables_of_a_key_are_erased(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path
) -> None:
    """The query meets the key as a new one, whatever it had as value, list and map."""
    feed = runner.feed("events", SCHEMA)

    def plan() -> DataFrame:
        return feed.stream(spark).groupBy("key").transformWithState(RememberingRows(), COUNTS, "update", "none")

    sink = BatchLog(tmp_path / "out", "update")
    batches = events(rng, batches=6)
    for batch in batches[:4]:
        feed.drop(batch)
    runner.drain(plan(), sink)
    erasure = erase_state(runner.location, pa.table({"key": ["k2"]}), purge_files=True, force=True)
    assert {family.variable for family in erasure.families if family.rows} >= {"count", "listed", "mapped"}
    assert verify_absent(runner.location, pa.table({"key": ["k2"]})).traces == ()
    for batch in batches[4:]:
        feed.drop(batch)
    runner.drain(plan(), sink)
    known = remembered([[tuple(row) for row in batch] for batch in feed.batches])
    again = remembered([[tuple(row) for row in batch] for batch in feed.batches[4:]])
    known["k2"] = again["k2"]
    rows = read_state(str(runner.location), variable="listed").to_arrow().to_pylist()
    found: dict[str, list[int]] = {}
    for each in rows:
        found.setdefault(each["key"]["key"], []).append(each["list_element"]["value"])
    assert {key: sorted(values) for key, values in found.items()} == {
        key: sorted(values) for key, (_, values, _) in known.items()
    }
    counted = read_state(str(runner.location), variable="count").to_arrow().to_pylist()
    assert {each["key"]["key"]: each["value"]["n"] for each in counted} == {
        key: number for key, (number, _, _) in known.items()
    }
    assert verify(LocalStorage(runner.location), everything=True).is_whole
