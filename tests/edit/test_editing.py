"""Edits of state: rows are set and keys deleted, and nothing else changes."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_ckpt import edit_state, read_state
from spark_ckpt.checkpoint.load import read_checkpoint
from spark_ckpt.edit import EditRefusedError, EditRowError
from spark_ckpt.edit.row_input import read_rows
from spark_ckpt.location.listing import list_completed
from spark_ckpt.operations.rescale import rescale
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.operations.verify import verify
from spark_ckpt.spark_files.rollbacks import Rollbacks
from spark_ckpt.state.errors import StateNotFoundError
from tests.edit.hashed_state import COUNT, USER, Entry, HashedState, counts, user
from tests.support.clocks import NoClock
from tests.support.invariants import assert_invariants
from tests.support.kills import kills
from tests.support.state_location import row, schema

NUMBER = schema(n="long")
DIGIT = schema(digit="long")
MAP_KEY = {
    "type": "struct",
    "fields": [
        {"name": "key", "type": USER, "nullable": True, "metadata": {}},
        {"name": "userKey", "type": DIGIT, "nullable": True, "metadata": {}},
    ],
}


def rows_in(path: str | Path, **options: Any) -> dict[str | None, tuple[Any, ...]]:
    """The values of an aggregation by user."""
    rows = read_state(str(path), **options).to_arrow().to_pylist()
    assert len({each["key"]["user"] for each in rows}) == len(rows)
    return {each["key"]["user"]: tuple(each["value"].values()) for each in rows}


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows))


def setting(name: str | None, number: int | None, title: str | None = None) -> dict[str, Any]:
    return {"key": {"user": name}, "value": {"count": number, "name": title}}


@pytest.mark.parametrize("checkpoint_format", [1, 2])
def test_rows_are_set_and_deleted(tmp_path: Path, checkpoint_format: int) -> None:
    query = counts(tmp_path, checkpoint_format=checkpoint_format)
    before, files = rows_in(tmp_path), query.files()
    edit = edit_state(
        tmp_path,
        table(setting("u0", -1, "new"), setting("u3", None), setting("new", 7), setting(None, 8)),
        table({"key": {"user": "u4"}}, {"key": {"user": "u1"}}, {"key": {"user": "never"}}),
    )
    assert (edit.inserted, edit.updated, edit.deleted, edit.missing) == (2, 2, 1, 2)
    expected = {**before, "u0": (-1, "new"), "u3": (None, None), "new": (7, None), None: (8, None)}
    del expected["u4"]
    assert rows_in(tmp_path) == expected
    assert rows_in(tmp_path, id=edit.from_checkpoint) == before
    state = read_checkpoint(query.storage, list_completed(query.storage).records[-1])
    assert state.record is not None
    assert state.record.rows == len(expected)
    touched = sum(chain.entries[-1].version == state.version for chains in state.table.values() for chain in chains)
    assert touched == edit.subtasks
    assert (edit.batch_id, edit.checkpoint_id, edit.new_bytes) == (4, state.record.id, state.record.new_bytes)
    after = query.files()
    assert {name: after[name] for name in files} == files
    assert sum(name.startswith("ckpt/shared/") for name in after.keys() - files.keys()) == 1
    assert_invariants(query.storage)
    assert verify(query.storage, everything=True).is_whole


def test_what_the_query_reads_next_is_the_edited_row(tmp_path: Path) -> None:
    """Several edits on top of each other, each of which touches few segments."""
    query = counts(tmp_path)
    for number in range(5):
        edit_state(tmp_path, table(setting("u5", number), setting(f"x{number}", number)))
    assert rows_in(tmp_path)["u5"] == (4, None)
    assert {name for name in rows_in(tmp_path) if name and name.startswith("x")} == {f"x{i}" for i in range(5)}
    assert_invariants(query.storage)


def test_after_a_rescale_a_row_is_edited_in_its_new_partition(tmp_path: Path) -> None:
    query = counts(tmp_path)
    for partitions in (8, 3, 1, 7):
        rescale(query.storage, partitions)
        before = rows_in(tmp_path)
        edit = edit_state(tmp_path, table(setting("u6", partitions)), table({"key": {"user": f"u{20 + partitions}"}}))
        assert (edit.updated, edit.deleted) == (1, 1)
        assert rows_in(tmp_path) == {
            name: (partitions, None) if name == "u6" else value
            for name, value in before.items()
            if name != f"u{20 + partitions}"
        }
    assert verify(query.storage).is_whole


def test_a_map_is_edited_by_both_keys(tmp_path: Path) -> None:
    families = {"digits": (MAP_KEY, NUMBER), "total": (USER, NUMBER)}
    variables = {"digits": "MapState", "total": "ValueState"}
    query = HashedState(tmp_path, families, name="transformWithStateExec", variables=variables)
    entries = [
        Entry(user(u), row(MAP_KEY, {"user": u}, {"digit": d}), row(NUMBER, d))
        for u in ("a", "b", "c")
        for d in range(4)
    ]
    query.batch({"digits": entries, "total": [Entry(user("a"), user("a"), row(NUMBER, 4))]})
    edit = edit_state(
        tmp_path,
        table({"key": {"user": "a"}, "user_map_key": {"digit": 9}, "user_map_value": {"n": 90}}),
        table({"key": {"user": "b"}, "user_map_key": {"digit": 0}}),
        variable="digits",
    )
    assert (edit.inserted, edit.deleted, edit.variable) == (1, 1, "digits")
    rows = read_state(str(tmp_path), variable="digits").to_arrow().to_pylist()
    found = {(each["key"]["user"], each["user_map_key"]["digit"]): each["user_map_value"]["n"] for each in rows}
    expected = {(u, d): d for u in ("a", "b", "c") for d in range(4)} | {("a", 9): 90}
    del expected["b", 0]
    assert found == expected
    assert edit_state(tmp_path, table({"key": {"user": "a"}, "value": {"n": 5}}), variable="total").updated == 1
    assert_invariants(query.storage)


def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path) -> None:
    query = counts(tmp_path)
    files = query.files()
    edit = edit_state(tmp_path, table(setting("u0", 1), setting("new", 1)), dry_run=True)
    assert (edit.inserted, edit.updated, edit.checkpoint_id, edit.new_bytes) == (1, 1, None, 0)
    assert query.files() == files


def test_an_edit_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    query = counts(tmp_path)
    files = query.files()
    edit = edit_state(tmp_path, delete=table({"key": {"user": "u1"}}))
    assert (edit.missing, edit.checkpoint_id) == (1, None)
    assert query.files() == files


@pytest.mark.parametrize(
    ("rows", "column", "reason"),
    [
        ([{"key": {"user": "a"}}], "value", "no such column"),
        ([{"value": {"count": 1, "name": None}}], "key", "no such column"),
        ([{"key": "a", "value": {"count": 1, "name": None}}], "key", "has the type"),
        ([{"key": {"name": "a"}, "value": {"count": 1, "name": None}}], "key", "has the fields name; expected user"),
        ([{"key": {"user": "a"}, "value": {"count": 1}}], "value", "has the fields count; expected count, name"),
        ([{"key": {"user": "a"}, "value": {"count": "x", "name": None}}], "value.count", "do not fit int64"),
        ([{"key": {"user": "a"}, "value": {"count": 1.5, "name": None}}], "value.count", "do not fit int64"),
        ([setting("a", 1), {"key": None, "value": {"count": 1, "name": None}}], "key", "it is null"),
        ([setting("a", 1), setting("b", 1), setting("a", 2)], "key", "given twice"),
    ],
)
def test_a_row_that_does_not_fit_is_refused(
    tmp_path: Path, rows: list[dict[str, Any]], column: str, reason: str
) -> None:
    query = counts(tmp_path)
    files = query.files()
    with pytest.raises(EditRowError, match=reason) as refused:
        edit_state(tmp_path, table(*rows))
    assert refused.value.column == column
    assert query.files() == files


def test_a_key_that_is_set_and_deleted_is_given_twice(tmp_path: Path) -> None:
    counts(tmp_path)
    with pytest.raises(EditRowError, match="given twice"):
        edit_state(tmp_path, table(setting("u0", 1)), table({"key": {"user": "u0"}}))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("symmetricHashJoin", "rows of a join depend on each other"),
        ("sessionWindowStateStoreSaveExec", "session windows of a key depend on each other"),
        ("globalLimit", "a limit has no keys"),
    ],
)
def test_state_whose_rows_depend_on_each_other_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    counts(tmp_path, name=name)
    with pytest.raises(EditRefusedError, match=reason):
        edit_state(tmp_path, table(setting("u0", 1)))


def test_lists_timers_and_times_to_live_are_refused(tmp_path: Path) -> None:
    families = {"seen": (USER, NUMBER), "short": (USER, NUMBER)}
    variables = {"seen": "ListState", "short": "ValueState"}
    query = HashedState(
        tmp_path, families, name="transformWithStateExec", variables=variables, ttl=frozenset({"short"})
    )
    query.batch({"seen": [Entry(user("a"), user("a"), (row(NUMBER, 1), row(NUMBER, 2)))]})
    rows = table({"key": {"user": "a"}, "value": {"n": 5}})
    with pytest.raises(EditRefusedError, match="rows of seen depend on others"):
        edit_state(tmp_path, rows, variable="seen")
    with pytest.raises(EditRefusedError, match="short has a time to live"):
        edit_state(tmp_path, rows, variable="short")
    with pytest.raises(StateNotFoundError, match="available: seen, short"):
        edit_state(tmp_path, rows)


def test_a_rollback_takes_the_edit_back(tmp_path: Path) -> None:
    query = counts(tmp_path)
    before = rows_in(tmp_path)
    edit = edit_state(tmp_path, table(setting("u0", -1)))
    roll_back(query.storage, edit.from_checkpoint, force=True)
    assert rows_in(tmp_path) == before
    assert edit_state(tmp_path, table(setting("u0", -2))).batch_id == 4
    assert rows_in(tmp_path)["u0"] == (-2, None)


def test_killed_at_any_write_it_leaves_the_old_state_or_a_query_that_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places, killed = count(), 0
    rows = table(setting("u0", -1), setting("new", 7))

    def location() -> Any:
        return counts(tmp_path / str(next(places)), users=6).storage

    def run(storage: Any) -> None:
        with monkeypatch.context() as patched:
            patched.setattr("spark_ckpt.edit.opening.CheckpointLocation.of_query", lambda self: storage)
            edit_state(storage.location, rows, force=True, clock=NoClock())

    for _, storage in kills(run, location):
        killed += 1
        if not Rollbacks.of(storage).unfinished:
            assert rows_in(storage.location).get("new") in (None, (7, None))
        else:
            with pytest.raises(EditRefusedError, match="'spark-ckpt edit' has not finished"):
                edit_state(storage.location, rows, dry_run=True)
        run(storage)
        found = rows_in(storage.location)
        assert (found["u0"], found["new"], len(found)) == ((-1, None), (7, None), 5)
        assert Rollbacks.of(storage).unfinished == ()
        assert verify(storage).is_whole
        assert_invariants(storage, orphans=True)
    assert killed > 6


def test_rows_come_from_files_and_from_what_read_prints(tmp_path: Path) -> None:
    counts(tmp_path / "q")
    rows = table(setting("u0", 1, "parquet"))
    pq.write_table(rows, tmp_path / "rows.parquet")
    edit_state(tmp_path / "q", lambda schema: read_rows(str(tmp_path / "rows.parquet"), schema))
    assert rows_in(tmp_path / "q")["u0"] == (1, "parquet")
    (tmp_path / "rows.json").write_text('{"key":{"user":"u0"},"value":{"count":2,"name":"json"},"partition_id":3}\n')
    edit_state(tmp_path / "q", lambda schema: read_rows(str(tmp_path / "rows.json"), schema))
    assert rows_in(tmp_path / "q")["u0"] == (2, "json")
    assert COUNT["fields"][0]["name"] == "count"
