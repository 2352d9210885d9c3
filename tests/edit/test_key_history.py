"""Histories of keys, of chains of deltas, merged deltas and bases, beside reads of each checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_ckpt import history_of, read_state
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.edit import EditRowError, KeyHistory
from spark_ckpt.format.segments import SegmentKind
from spark_ckpt.location.listing import list_completed
from spark_ckpt.operations.rescale import rescale
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.operations.savepoint import take_savepoint
from spark_ckpt.operations.tagging import tag_checkpoint, untag_checkpoint
from spark_ckpt.storage import LocalStorage
from tests.edit.hashed_state import USER, Entry, HashedState, counts, user
from tests.support.state_location import row, schema

NUMBER = schema(n="long")
BOTH = schema(user="string", day="long")


def told(history: KeyHistory, family: str | None = None) -> list[tuple[Any, ...]]:
    """Batches, change, key and value of each change."""
    return [
        (change["first_batch"], change["last_batch"], change["change"], change["key"], change["value"])
        for each in history.families
        if family in (None, each.view.family.name)
        for change in each.to_arrow().to_pylist()
    ]


def of(*names: str) -> pa.Table:
    return pa.table({"user": list(names)})


def value(count: int, name: str | None = None) -> dict[str, Any]:
    return {"count": count, "name": name}


def test_each_batch_of_a_chain_is_told(tmp_path: Path) -> None:
    counts(tmp_path)
    history = history_of(tmp_path, of("u0"))
    key = {"user": "u0"}
    assert told(history) == [
        (0, 0, "insert", key, value(0, "a title")),
        (3, 3, "update", key, value(100)),
    ]
    assert (history.keys, len(history.checkpoints)) == (1, 4)
    assert told(history_of(tmp_path, of("u1"))) == [
        (0, 0, "insert", {"user": "u1"}, value(1, "a title")),
        (3, 3, "delete", {"user": "u1"}, None),
    ]
    assert history_of(tmp_path, of("never")).families == ()


def test_one_segment_a_batch_is_read_for_a_key(tmp_path: Path) -> None:
    counts(tmp_path)
    assert history_of(tmp_path, of("u0")).segments <= 4


@pytest.mark.parametrize("inline", [False, True])
def test_the_newest_checkpoint_alone_tells_of_the_batches_of_its_chain(tmp_path: Path, inline: bool) -> None:
    query = HashedState(tmp_path, {"default": (USER, NUMBER)})
    for number in (5, 5, 7):
        query.batch({"default": [Entry(user("a"), user("a"), row(NUMBER, number))]}, inline=inline)
    only_the_newest_of(query)
    history = history_of(tmp_path, of("a"))
    assert history.checkpoints == (query.records[-1].id,)
    changes = [(*change[:3], change[4]) for change in told(history)]
    assert changes == [(0, 0, "insert", {"n": 5}), (2, 2, "update", {"n": 7})]


def entry(name: str, number: int) -> Entry:
    return Entry(user(name), user(name), row(NUMBER, number))


def drop(query: HashedState, records: Sequence[CheckpointRecord]) -> None:
    for record in records:
        query.storage.delete(f"ckpt/completed/{record.id:020d}.json")


def only_the_newest_of(query: HashedState) -> None:
    """Drops all other checkpoints."""
    drop(query, list_completed(query.storage).records[:-1])


@pytest.fixture
def three_batches(tmp_path: Path) -> HashedState:
    query = HashedState(tmp_path, {"default": (USER, NUMBER)})
    query.batch({"default": [entry("a", 1), entry("b", 1)]})
    query.batch({"default": [entry("a", 2)]})
    query.batch({"default": [entry("c", 3)]}, {"default": [entry("b", 0)]})
    return query


def changes_of(path: Path, *names: str) -> list[tuple[Any, ...]]:
    found = told(history_of(path, of(*names)))
    return [(*change[:3], change[3]["user"], None if change[4] is None else change[4]["n"]) for change in found]


def test_a_base_does_not_tell_since_when_a_row_is_there(three_batches: HashedState, tmp_path: Path) -> None:
    three_batches.compact(SegmentKind.BASE, {"default": [entry("a", 2), entry("c", 3)]})
    three_batches.batch({"default": [entry("a", 9)]})
    only_the_newest_of(three_batches)
    assert changes_of(tmp_path, "a") == [(0, 2, "present", "a", 2), (3, 3, "update", "a", 9)]
    assert changes_of(tmp_path, "b") == []


def test_what_a_base_has_replaced_is_told_by_earlier_checkpoints(three_batches: HashedState, tmp_path: Path) -> None:
    """The base has changes of batches whose checkpoints are gone."""
    gone = list_completed(three_batches.storage).records[1:]
    three_batches.compact(SegmentKind.BASE, {"default": [entry("a", 2), entry("c", 3)]})
    three_batches.batch({"default": [entry("a", 9)]})
    drop(three_batches, gone)
    assert changes_of(tmp_path, "a") == [(0, 0, "insert", "a", 1), (1, 2, "update", "a", 2), (3, 3, "update", "a", 9)]
    assert changes_of(tmp_path, "b") == [(0, 0, "insert", "b", 1), (1, 3, "delete", "b", None)]
    assert changes_of(tmp_path, "c") == [(1, 2, "insert", "c", 3)]


def test_a_tagged_checkpoint_tells_what_its_files_say(three_batches: HashedState, tmp_path: Path) -> None:
    earlier = list_completed(three_batches.storage).records
    tag_checkpoint(three_batches.storage, earlier[1].id, "second")
    three_batches.compact(SegmentKind.BASE, {"default": [entry("a", 2), entry("c", 3)]})
    three_batches.batch({"default": [entry("a", 9)]})
    only_the_newest_of(three_batches)
    history = history_of(tmp_path, of("a", "b"))
    assert earlier[1].id in history.checkpoints
    told_with_it = changes_of(tmp_path, "a", "b")
    untag_checkpoint(three_batches.storage, "second")
    assert changes_of(tmp_path, "a", "b") == [(0, 2, "present", "a", 2), (3, 3, "update", "a", 9)]
    assert (0, 0, "insert", "a", 1) in told_with_it
    assert "b" in {change[3] for change in told_with_it}
    assert (3, 3, "update", "a", 9) in told_with_it


def test_merged_deltas_tell_what_several_batches_led_to(three_batches: HashedState, tmp_path: Path) -> None:
    merged = {"default": [entry("a", 2), entry("c", 3)]}
    three_batches.compact(SegmentKind.DELTA, merged, {"default": [entry("b", 0)]})
    three_batches.batch({"default": [entry("a", 9)]})
    only_the_newest_of(three_batches)
    assert changes_of(tmp_path, "a") == [(0, 2, "insert", "a", 2), (3, 3, "update", "a", 9)]
    assert changes_of(tmp_path, "b") == []


def test_merged_deltas_of_known_batches_tell_the_rest(three_batches: HashedState, tmp_path: Path) -> None:
    gone = list_completed(three_batches.storage).records[1:]
    merged = {"default": [entry("a", 2), entry("c", 3)]}
    three_batches.compact(SegmentKind.DELTA, merged, {"default": [entry("b", 0)]})
    three_batches.batch({"default": [entry("a", 9)]})
    drop(three_batches, gone)
    assert changes_of(tmp_path, "a") == [(0, 0, "insert", "a", 1), (1, 2, "update", "a", 2), (3, 3, "update", "a", 9)]
    assert changes_of(tmp_path, "b") == [(0, 0, "insert", "b", 1), (1, 2, "delete", "b", None)]


def test_a_savepoint_tells_as_much(three_batches: HashedState, tmp_path: Path) -> None:
    take_savepoint(three_batches.storage, LocalStorage(tmp_path / "savepoint"))
    assert changes_of(tmp_path / "savepoint", "a", "b") == changes_of(tmp_path, "a", "b")


def test_some_columns_of_the_key_tell_of_all_others(tmp_path: Path) -> None:
    query = HashedState(tmp_path, {"default": (BOTH, NUMBER)}, grouping=BOTH)
    for day in range(3):
        key = row(BOTH, "a", day)
        query.batch({"default": [Entry(key, key, row(NUMBER, day))]})
    changes = told(history_of(tmp_path, of("a")))
    assert [(change[0], change[3]["day"], change[4]["n"]) for change in changes] == [(0, 0, 0), (1, 1, 1), (2, 2, 2)]
    assert len(told(history_of(tmp_path, pa.table({"day": [1]})))) == 1


def test_lists_have_all_elements_after_each_change(tmp_path: Path) -> None:
    families = {"seen": (USER, NUMBER)}
    query = HashedState(tmp_path, families, name="transformWithStateExec", variables={"seen": "ListState"})

    def of_list(*numbers: int) -> Entry:
        return Entry(user("a"), user("a"), tuple(row(NUMBER, number) for number in numbers))

    query.batch({"seen": [of_list(1, 2)]})
    query.batch({"seen": [of_list(3)]})
    query.batch({}, {"seen": [of_list(0)]})
    changes = [(*change[:3], change[4]) for change in told(history_of(tmp_path, of("a")))]
    assert changes == [
        (0, 0, "insert", [{"n": 1}, {"n": 2}]),
        (1, 1, "update", [{"n": 3}]),
        (2, 2, "delete", None),
    ]


def test_a_rescale_changes_no_history(tmp_path: Path) -> None:
    query = counts(tmp_path)
    before = told(history_of(tmp_path, of("u0", "u1", "u7")))
    rescale(query.storage, 3)
    assert told(history_of(tmp_path, of("u0", "u1", "u7"))) == before


def test_what_a_rollback_has_undone_is_not_told(tmp_path: Path) -> None:
    query = counts(tmp_path)
    roll_back(query.storage, query.records[2].id, force=True)
    assert [change[2] for change in told(history_of(tmp_path, of("u0")))] == ["insert"]


def test_the_history_ends_with_the_state(tmp_path: Path) -> None:
    query = counts(tmp_path)
    everyone = sorted({each["key"]["user"] for each in read_state(query.path).to_arrow().to_pylist()} | {"u1", "u2"})
    last = {change[3]["user"]: change[4] for change in told(history_of(tmp_path, of(*everyone)))}
    state = {each["key"]["user"]: each["value"] for each in read_state(query.path).to_arrow().to_pylist()}
    assert {name: found for name, found in last.items() if found is not None} == state


def test_a_column_that_is_no_part_of_the_key_is_an_error(tmp_path: Path) -> None:
    counts(tmp_path)
    with pytest.raises(EditRowError, match="the grouping key has the columns user"):
        history_of(tmp_path, pa.table({"count": [1]}))


def test_progress_counts_checkpoints(tmp_path: Path) -> None:
    counts(tmp_path)
    seen: list[tuple[int, int | None]] = []
    history_of(tmp_path, of("u0"), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
