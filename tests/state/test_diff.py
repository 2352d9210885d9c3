from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_ckpt.format.segments import Section
from spark_ckpt.state import blocks
from spark_ckpt.state.diff import StateDiff, diff_state
from spark_ckpt.storage import LocalStorage
from tests.state.changes import KEY, KINDS, LISTED, VALUE, Changes, batches, commit_all, key, lists, section
from tests.support.examples import OF_THE_MACHINE
from tests.support.state_location import StateLocation

Difference = dict[str, tuple[str, Any, Any]]


def differences(diff: StateDiff) -> Difference:
    rows = diff.to_arrow().to_pylist()
    assert len({row["key"]["user"] for row in rows}) == len(rows)
    return {row["key"]["user"]: (row["change"], _numbers(row["before"]), _numbers(row["after"])) for row in rows}


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [row["n"] for row in value]
    return None if value is None else value["n"]


def expected(before: dict[str, Any], after: dict[str, Any]) -> Difference:
    changed = [user for user in before.keys() | after.keys() if before.get(user) != after.get(user)]
    kinds = {user: "delete" if user not in after else "update" if user in before else "insert" for user in changed}
    return {user: (kinds[user], before.get(user), after.get(user)) for user in changed}


@settings(max_examples=40, suppress_health_check=[*OF_THE_MACHINE, HealthCheck.function_scoped_fixture])
@given(st.data(), st.lists(st.tuples(batches, st.booleans()), min_size=2, max_size=5), st.sampled_from([1, 1 << 20]))
def test_any_two_checkpoints(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    data: st.DataObject,
    history: list[tuple[Changes, bool]],
    batch_bytes: int,
) -> None:
    monkeypatch.setattr(blocks, "BATCH_BYTES", batch_bytes)
    location = StateLocation(tmp_path_factory.mktemp("location"), {"default": (KEY, VALUE)})
    states = commit_all(location, history)
    before, after = data.draw(st.tuples(st.sampled_from(list(states)), st.sampled_from(list(states))))
    assert differences(diff_state(location.path, before, after)) == expected(states[before], states[after])


def test_key_groups_without_other_blocks_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location = StateLocation(tmp_path, {"default": (KEY, VALUE)})
    everyone = {f"user-{number}": number for number in range(40)}
    first = location.commit(section(everyone), inline=False)
    second = location.commit(section({"user-7": 1}), inline=False)
    read: list[int] = []
    read_range = LocalStorage.read_range

    def counted(storage: LocalStorage, name: str, offset: int, length: int) -> bytes:
        read.append(length)
        return read_range(storage, name, offset, length)

    monkeypatch.setattr(LocalStorage, "read_range", counted)
    assert differences(diff_state(location.path, first, second)) == {"user-7": ("update", 7, 1)}
    files = sum(file.stat().st_size for file in Path(tmp_path, "ckpt", "shared").iterdir())
    assert 0 < sum(read) < files / 2
    read.clear()
    assert differences(diff_state(location.path, second, second)) == {}
    assert read == []


def test_lists(tmp_path: Path) -> None:
    """Lists differ if their rows or the order of their rows differ."""
    location = StateLocation(tmp_path, LISTED, name="transformWithStateExec", variables=KINDS)
    first = location.commit(lists({"a": [1, 2], "b": [3], "c": [4], "d": [5, 6], "same": [7, 8]}))
    removed = Section(((key("c"), None),), "listed", True)
    again = lists({"b": [3, 3], "d": [6, 5], "e": [9], "same": [7, 8]})
    second = location.commit(lists({"a": [5]}, appends=True), again, removed)
    assert differences(diff_state(location.path, first, second, variable="listed")) == {
        "a": ("update", [1, 2], [1, 2, 5]),
        "b": ("update", [3], [3, 3]),
        "c": ("delete", [4], None),
        "d": ("update", [5, 6], [6, 5]),
        "e": ("insert", None, [9]),
    }
    assert differences(diff_state(location.path, first, second, variable="count")) == {}


def test_other_numbers_of_partitions(tmp_path: Path) -> None:
    """After a change from two partitions to one, the diff contains only the changes of the last batch."""
    location = StateLocation(tmp_path, {"default": (KEY, VALUE)})
    everyone = {f"user-{number}": number for number in range(20)}
    first = location.commit(section(everyone))
    location.commit(section({"user-3": None, "user-4": 7, "user-new": 1}))
    one, other = location.chains
    entries = sorted((*one.entries, *other.entries), key=lambda entry: entry.version)
    location.chains = [type(one)("0" * 32, 19, tuple(entries))]
    joined = location.complete()
    changes = {"user-3": ("delete", 3, None), "user-4": ("update", 4, 7), "user-new": ("insert", None, 1)}
    assert differences(diff_state(location.path, first, joined)) == changes
    backwards = {"user-3": ("insert", None, 3), "user-4": ("update", 7, 4), "user-new": ("delete", 1, None)}
    assert differences(diff_state(location.path, joined, first)) == backwards
