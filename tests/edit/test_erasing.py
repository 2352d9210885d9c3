"""Erasure removes all state of a grouping key, and a purge leaves no trace of it in any file."""

from __future__ import annotations

from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_ckpt import erase_state, read_state, verify_absent
from spark_ckpt.edit import EditRefusedError, EditRowError
from spark_ckpt.location.listing import list_completed
from spark_ckpt.operations.rescale import rescale
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.operations.savepoint import take_savepoint
from spark_ckpt.operations.verify import verify
from spark_ckpt.spark_files.rollbacks import Rollbacks
from spark_ckpt.storage import LocalStorage
from tests.edit.hashed_state import USER, Entry, HashedState, counted, counts, user
from tests.support.clocks import NoClock
from tests.support.invariants import assert_invariants
from tests.support.kills import kills
from tests.support.state_location import Schema, row, schema

NUMBER = schema(n="long")
DIGIT = schema(digit="long")
BOTH = schema(user="string", day="long")


def struct(**parts: Any) -> Schema:
    return {
        "type": "struct",
        "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in parts.items()],
    }


MAP_KEY = struct(key=USER, userKey=DIGIT)
TIMER = struct(key=USER, expiryTimestampMs="long")
BY_TIME = struct(expiryTimestampMs="long", key=USER)
TTL = struct(expirationMs="long", elementKey=USER)
TTL_OF_MAP = struct(expirationMs="long", elementKey=MAP_KEY)
ALL = {
    "total": (USER, NUMBER),
    "seen": (USER, NUMBER),
    "digits": (MAP_KEY, NUMBER),
    "$rowCounter_seen": (USER, NUMBER),
    "$eventTimers_keyToTimestamp": (TIMER, schema()),
    "$eventTimers_timestampToKey": (BY_TIME, schema()),
    "$ttl_total": (TTL, schema()),
    "$ttl_digits": (TTL_OF_MAP, schema()),
}
VARIABLES = {
    "total": "ValueState",
    "seen": "ListState",
    "digits": "MapState",
    "$eventTimers_keyToTimestamp": "TimerState",
    "$eventTimers_timestampToKey": "TimerState",
}


def users(path: str | Path, **options: Any) -> set[str | None]:
    return {each["key"]["user"] for each in read_state(str(path), **options).to_arrow().to_pylist()}


def keys(*names: str | None) -> pa.Table:
    return pa.table({"user": pa.array(names, pa.string())})


def entries_of(name: str, family: str, number: int) -> Entry:
    empty, of = row(schema()), user(name)
    rows: dict[str, tuple[bytes, bytes | tuple[bytes, ...]]] = {
        "total": (of, row(NUMBER, number)),
        "seen": (of, (row(NUMBER, number), row(NUMBER, number + 1))),
        "digits": (row(MAP_KEY, {"user": name}, {"digit": number}), row(NUMBER, number)),
        "$rowCounter_seen": (of, row(NUMBER, 2)),
        "$eventTimers_keyToTimestamp": (row(TIMER, {"user": name}, number), empty),
        "$eventTimers_timestampToKey": (row(BY_TIME, number, {"user": name}), empty),
        "$ttl_total": (row(TTL, number, {"user": name}), empty),
        "$ttl_digits": (row(TTL_OF_MAP, number, {"key": {"user": name}, "userKey": {"digit": number}}), empty),
    }
    return Entry(of, *rows[family])


def with_everything(directory: Path) -> HashedState:
    query = HashedState(directory, ALL, name="transformWithStateExec", variables=VARIABLES)
    for number in range(3):
        names = [f"u{i}" for i in range(12)]
        query.batch({family: [entries_of(name, family, number) for name in names] for family in ALL})
    return query


@pytest.mark.parametrize("checkpoint_format", [1, 2])
def test_the_rows_of_a_key_go_and_all_others_stay(tmp_path: Path, checkpoint_format: int) -> None:
    query = counts(tmp_path, checkpoint_format=checkpoint_format)
    before = users(tmp_path)
    erasure = erase_state(tmp_path, keys("u0", "u7", "never", "u1"))
    assert users(tmp_path) == before - {"u0", "u7"}
    assert [(family.variable, family.rows) for family in erasure.families] == [("default", 2)]
    assert (erasure.keys, erasure.rewritten, erasure.dropped, erasure.batch_id) == (4, 0, (), 4)
    record = list_completed(query.storage).records[-1]
    assert (record.id, record.rows) == (erasure.checkpoint_id, len(before) - 2)
    assert users(tmp_path, id=erasure.from_checkpoint) == before
    assert_invariants(query.storage)
    assert verify(query.storage, everything=True).is_whole


def test_every_family_of_a_variable_loses_the_key(tmp_path: Path) -> None:
    query = with_everything(tmp_path)
    erasure = erase_state(tmp_path, pa.table({"key": pa.array([{"user": "u3"}, {"user": "u4"}])}))
    rows = {family.variable: family.rows for family in erasure.families}
    # Maps, timers and indexes have a key of their own for each of the three batches.
    assert rows == {family: 2 if family in ("total", "seen", "$rowCounter_seen") else 6 for family in ALL}
    found = verify_absent(tmp_path, keys("u3", "u4"))
    removals = {trace.variable for trace in found.traces if trace.name not in query.files()}
    assert removals == set()
    for variable in ("total", "seen", "digits", "$eventTimers_keyToTimestamp"):
        assert users(tmp_path, variable=variable) == {f"u{i}" for i in range(12)} - {"u3", "u4"}
    assert len(read_state(str(tmp_path), variable="seen").to_arrow()) == 2 * 10
    assert_invariants(query.storage)
    assert verify(query.storage).is_whole


@pytest.mark.parametrize("purge", [False, True])
def test_after_a_rescale_timers_of_shared_key_groups_go_both_ways(tmp_path: Path, purge: bool) -> None:
    """Three partitions share key groups, and each has a part of their rows: that of its grouping keys."""
    by_key, by_time = "$eventTimers_keyToTimestamp", "$eventTimers_timestampToKey"
    families = {name: ALL[name] for name in ("total", by_key, by_time)}
    variables = {name: VARIABLES[name] for name in families}
    query = HashedState(tmp_path, families, name="transformWithStateExec", variables=variables)
    query.batch({family: [entries_of(f"u{i}", family, 7 + i) for i in range(12)] for family in families})
    rescale(query.storage, 3)
    gone = [f"u{i}" for i in range(0, 12, 2)]
    erasure = erase_state(tmp_path, keys(*gone), purge_files=purge)
    assert {family.variable: family.rows for family in erasure.families} == dict.fromkeys(families, 6)
    rows = read_state(str(tmp_path), variable=by_time).to_arrow()
    assert len(rows) == 6
    assert users(tmp_path, variable=by_key) == users(tmp_path, variable="total") == {f"u{i}" for i in range(1, 12, 2)}
    assert verify(query.storage).is_whole


def test_some_columns_of_the_key_erase_all_others(tmp_path: Path) -> None:
    query = HashedState(tmp_path, {"default": (BOTH, NUMBER)}, grouping=BOTH)
    entries = [row(BOTH, f"u{i}", day) for i in range(6) for day in range(5)]
    query.batch({"default": [Entry(each, each, row(NUMBER, 1)) for each in entries]})
    assert sum(each.rows for each in erase_state(tmp_path, keys("u2")).families) == 5
    assert users(tmp_path) == {f"u{i}" for i in range(6)} - {"u2"}
    assert sum(each.rows for each in erase_state(tmp_path, pa.table({"day": [3]})).families) == 5
    whole = pa.table({"day": [0], "user": ["u4"]})
    assert sum(each.rows for each in erase_state(tmp_path, whole).families) == 1
    assert len(read_state(str(tmp_path)).to_arrow()) == 30 - 5 - 5 - 1
    assert_invariants(query.storage)


def test_a_purge_leaves_no_trace(tmp_path: Path) -> None:
    query = counts(tmp_path)
    roll_back(query.storage, query.records[2].id, force=True)
    before, gone = users(tmp_path), keys("u0", "u1", "u7")
    assert verify_absent(tmp_path, gone).traces
    assert {trace.name.partition("/")[0] for trace in verify_absent(tmp_path, gone).traces} == {"ckpt", "rolled-back"}
    erasure = erase_state(tmp_path, gone, purge_files=True)
    assert users(tmp_path) == before - {"u0", "u1", "u7"}
    assert erasure.rewritten > 0
    found = verify_absent(tmp_path, gone)
    assert (found.traces, found.keys) == ((), 3)
    assert found.blocks > 0
    assert not any(name in content for name in (b"u0\0", b"u7\0") for content in query.files().values())
    assert [record.id for record in list_completed(query.storage).records] == [erasure.checkpoint_id]
    assert_invariants(query.storage)
    assert verify(query.storage).is_whole
    assert users(tmp_path) == before - {"u0", "u1", "u7"}


def test_a_purge_of_keys_that_are_erased_already_removes_their_traces(tmp_path: Path) -> None:
    query = counts(tmp_path)
    erase_state(tmp_path, keys("u5"))
    assert verify_absent(tmp_path, keys("u5")).traces
    erasure = erase_state(tmp_path, keys("u5"), purge_files=True)
    assert sum(family.rows for family in erasure.families) == 0
    assert verify_absent(tmp_path, keys("u5")).traces == ()
    again = erase_state(tmp_path, keys("u5"), purge_files=True)
    assert (again.checkpoint_id, again.deleted) == (erasure.checkpoint_id, ()) or again.rewritten == 0
    assert_invariants(query.storage)


def test_a_purge_of_all_families(tmp_path: Path) -> None:
    query = with_everything(tmp_path)
    erase_state(tmp_path, keys("u3"), purge_files=True)
    assert verify_absent(tmp_path, keys("u3")).traces == ()
    assert verify_absent(tmp_path, keys("u2")).traces
    for variable in ("total", "seen", "digits", "$eventTimers_keyToTimestamp"):
        assert users(tmp_path, variable=variable) == {f"u{i}" for i in range(12)} - {"u3"}
    lists = read_state(str(tmp_path), variable="seen").to_arrow().to_pylist()
    assert [each["list_element"]["n"] for each in lists if each["key"]["user"] == "u2"] == [2, 3]
    assert_invariants(query.storage)
    assert verify(query.storage).is_whole


def test_a_purge_deletes_the_savepoints_that_have_the_keys(tmp_path: Path) -> None:
    query, others = counts(tmp_path / "q"), counts(tmp_path / "others", users=3)
    having, lacking, untold = (str(tmp_path / name) for name in ("having", "lacking", "untold"))
    query.batch({"default": [counted("u7", 70)]}, inline=True)
    for each, copy in ((query, having), (query, untold), (others, lacking)):
        take_savepoint(each.storage, LocalStorage(Path(copy)))
    assert "_metadata" in {trace.name for trace in verify_absent(having, keys("u7")).traces}
    purge = partial(erase_state, query.path, keys("u7"), purge_files=True, savepoints=(having, lacking))
    assert (purge(dry_run=True).savepoints, Path(having, "savepoint.json").exists()) == ((having,), True)
    assert purge().savepoints == (having,)
    assert not [path for path in Path(having).rglob("*") if path.is_file()]
    assert verify_absent(lacking, keys("u7")).traces == ()
    assert verify_absent(untold, keys("u7")).traces
    with pytest.raises(EditRefusedError, match="no complete savepoint"):
        purge()


def test_without_a_purge_no_savepoint_is_deleted(tmp_path: Path) -> None:
    query, copy = counts(tmp_path / "q"), tmp_path / "copy"
    take_savepoint(query.storage, LocalStorage(copy))
    files = query.files()
    with pytest.raises(EditRefusedError, match="purge_files=True"):
        erase_state(query.path, keys("u0"), savepoints=(copy,))
    assert (query.files(), (copy / "savepoint.json").exists()) == (files, True)


def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path) -> None:
    query = counts(tmp_path)
    files = query.files()
    for purge in (False, True):
        erasure = erase_state(tmp_path, keys("u0"), purge_files=purge, dry_run=True)
        assert (erasure.families[0].rows, erasure.checkpoint_id, erasure.deleted) == (1, None, ())
        assert query.files() == files


def test_keys_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    counts(tmp_path)
    with pytest.raises(EditRowError, match="column name: the grouping key has the columns user"):
        erase_state(tmp_path, pa.table({"name": ["u0"]}))
    with pytest.raises(EditRowError, match=r"column user: values of type list"):
        erase_state(tmp_path, pa.table({"user": [["u0"]]}))


def test_an_operator_without_a_grouping_key_is_refused(tmp_path: Path) -> None:
    counts(tmp_path, name="globalLimit")
    with pytest.raises(EditRefusedError, match="has no grouping key"):
        erase_state(tmp_path, keys("u0"))


@pytest.mark.parametrize("purge", [False, True])
def test_killed_at_any_write_it_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, purge: bool) -> None:
    places, killed = count(), 0

    def run(storage: Any) -> None:
        with monkeypatch.context() as patched:
            patched.setattr("spark_ckpt.edit.opening.CheckpointLocation.of_query", lambda self: storage)
            erase_state(storage.location, keys("u0"), purge_files=purge, force=True, clock=NoClock())

    for _, storage in kills(run, lambda: counts(tmp_path / str(next(places)), users=6).storage):
        killed += 1
        run(storage)
        assert users(storage.location) == {"u3", "u4", "u5"}
        assert Rollbacks.of(storage).unfinished == ()
        assert verify(storage).is_whole
        if purge:
            assert verify_absent(storage.location, keys("u0")).traces == ()
        assert_invariants(storage, orphans=True)
    assert killed > 6
