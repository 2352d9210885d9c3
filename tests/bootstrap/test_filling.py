"""A location is filled with the state of a new query: whole, or not at all."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_ckpt import read_state
from spark_ckpt.bootstrap.filling import fill_location
from spark_ckpt.bootstrap.new_location import NewQuery
from spark_ckpt.bootstrap.result import WrittenState
from spark_ckpt.checkpoint.meaning import QueryMeaning
from spark_ckpt.edit.errors import EditRowError
from spark_ckpt.location.errors import ImportUnfinishedError
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.location.import_marker import check_no_import
from spark_ckpt.operations.errors import TargetNotEmptyError
from spark_ckpt.operations.savepoint import take_savepoint
from spark_ckpt.operations.verify import verify
from spark_ckpt.spark_files.entries import OffsetEntry
from spark_ckpt.spark_files.logs import SparkBatches, SparkLog
from spark_ckpt.state.catalog import open_state
from spark_ckpt.state_writing.errors import RepeatedKeyError
from spark_ckpt.state_writing.targets import targets_in
from spark_ckpt.storage import LocalStorage, Storage
from tests.evolution.planned import COUNT, SUM, USER, planned
from tests.support.clocks import NoClock
from tests.support.invariants import assert_invariants
from tests.support.kills import kills
from tests.support.s3 import S3
from tests.support.state_location import schema

PLANNED = planned(USER, schema(count="long", sum="long"), ("0.user",), (COUNT, SUM))
ROWS = pa.table({"user": [f"u{n}" for n in range(100)], "count": list(range(100)), "sum": [None, *range(1, 100)]})
EXPECTED = {f"u{n}": (n, n or None) for n in range(100)}


def new_query(checkpoint_format: int = 1, **settings: str) -> NewQuery:
    conf = {"spark.sql.shuffle.partitions": "4"}
    entry = OffsetEntry(1, {"batchWatermarkMs": 7000, "batchTimestampMs": 1, "conf": conf}, {"0": '{"orders":{"0":3}}'})
    return NewQuery(PLANNED, entry, checkpoint_format, 4, settings)


def fill(storage: Storage, rows: pa.Table | None = ROWS, query: NewQuery | None = None) -> WrittenState:
    (store,) = PLANNED.stores
    (target,) = targets_in(store.as_store(), store.with_ttl)
    return fill_location(
        storage, query or new_query(), {} if rows is None else {"0/default": (target, rows)}, NoClock()
    )


def rows_in(location: str, **which: Any) -> dict[str, tuple[Any, ...]]:
    rows = read_state(location, **which).to_arrow().to_pylist()
    return {row["key"]["user"]: tuple(row["value"].values()) for row in rows}


@pytest.mark.parametrize("checkpoint_format", [1, 2])
def test_the_state_is_that_of_the_rows(tmp_path: Path, checkpoint_format: int) -> None:
    storage = LocalStorage(tmp_path / "q")
    done = fill(storage, query=new_query(checkpoint_format))
    assert rows_in(str(tmp_path / "q")) == EXPECTED
    assert [(each.name, each.rows) for each in done.states] == [("default", 100)]
    log = SparkLog(storage)
    assert (SparkBatches.of(log).started, SparkBatches.of(log).committed) == ((0,), (0,))
    assert log.offsets(0).offsets == {"0": '{"orders":{"0":3}}'}
    assert log.commit(0).metadata["nextBatchWatermarkMs"] == 7000
    assert (log.commit(0).state_ids is not None) == (checkpoint_format == 2)
    assert log.query_id() == done.query_id
    assert verify(storage, everything=True).is_whole
    assert_invariants(storage, orphans=True)


def test_its_checkpoint_is_one_like_others(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "q")
    fill(storage)
    take_savepoint(storage, LocalStorage(tmp_path / "savepoint"))
    assert rows_in(str(tmp_path / "savepoint")) == EXPECTED
    batch = read_state(str(tmp_path / "q"))
    assert batch.schema.names == ["key", "value", "partition_id"]


def test_its_checkpoint_says_what_the_state_means(tmp_path: Path) -> None:
    fill(LocalStorage(tmp_path / "q"))
    meaning = open_state(str(tmp_path / "q")).batch.meaning
    assert meaning is not None
    assert QueryMeaning.decode(meaning) == PLANNED.meaning


def test_state_without_rows_begins_empty(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "q")
    assert [each.rows for each in fill(storage, None).states] == [0]
    assert rows_in(str(tmp_path / "q")) == {}
    assert verify(storage, everything=True).is_whole


def test_the_number_of_key_groups_is_that_of_the_settings(tmp_path: Path) -> None:
    settings = {"spark.sql.streaming.stateStore.ckpt.maxParallelism": "64"}
    fill(LocalStorage(tmp_path / "q"), query=new_query(1, **settings))
    assert open_state(str(tmp_path / "q")).batch.max_parallelism == 64
    assert rows_in(str(tmp_path / "q")) == EXPECTED


def test_a_location_with_anything_is_refused(tmp_path: Path) -> None:
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "notes.txt").write_text("mine")
    with pytest.raises(TargetNotEmptyError):
        fill(LocalStorage(tmp_path / "q"))
    assert [path.name for path in (tmp_path / "q").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        (ROWS.append_column("extra", ROWS["sum"]).drop_columns(["count"]), EditRowError, "0/default, count"),
        (pa.concat_tables([ROWS, ROWS.slice(5, 1)]), RepeatedKeyError, "u5"),
        (ROWS.set_column(1, "count", pa.array(["x"] * 100)), EditRowError, "value.count"),
    ],
)
def test_after_an_error_the_location_is_empty(
    tmp_path: Path, rows: pa.Table, error: type[Exception], words: str
) -> None:
    storage = LocalStorage(tmp_path / "q")
    with pytest.raises(error, match=words):
        fill(storage, rows)
    assert storage.list("") == []
    fill(storage)
    assert rows_in(str(tmp_path / "q")) == EXPECTED


def test_a_kill_at_every_write_leaves_no_query_that_starts_without_its_state(tmp_path: Path) -> None:
    numbers = count()

    def made() -> LocalStorage:
        return LocalStorage(tmp_path / str(next(numbers)))

    for _, faulty in kills(fill, made):
        is_begun = faulty.exists("metadata") or bool(faulty.list("offsets")) or bool(faulty.list("ckpt"))
        if is_begun and faulty.list("ckpt"):
            if faulty.exists("ckpt/import.json"):
                with pytest.raises(ImportUnfinishedError):
                    check_no_import(faulty)
            else:
                assert rows_in(faulty.location) == EXPECTED  # it was killed after its last change, or before its first
                continue
        fill(faulty)
        assert rows_in(faulty.location) == EXPECTED
        assert_invariants(faulty, orphans=True)
    assert next(numbers) > 10


def test_on_s3(s3: S3) -> None:
    place = f"{s3.url}/filled"
    storage = CheckpointLocation.open(place).storage
    fill(storage)
    assert rows_in(place) == EXPECTED
    assert verify(storage, everything=True).is_whole
