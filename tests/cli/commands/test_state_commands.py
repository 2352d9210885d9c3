"""Commands `state`, `read` and `diff`."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.sources import TABLE
from tests.cli.states import state_location
from tests.support.cli import run


@pytest.fixture
def location(tmp_path: Path) -> str:
    return state_location(tmp_path / "location").path


def test_state(location: str) -> None:
    shown = run("state", location)
    assert (shown.status, shown.stderr) == (0, "")
    title, store, family = shown.stdout.splitlines()
    assert title == "checkpoint 3, batch 1, state version 2"
    assert store.startswith("└── stateStoreSave 0/default, 2 partitions, 2 rows, ")
    assert family.strip().startswith("└── default: (user string, day date32[day]) -> (n int64, price decimal128(9, 2)")


def test_state_of_variables(tmp_path: Path) -> None:
    location = state_location(tmp_path, variables={"count": "ValueState"}, name="transformWithStateExec")
    assert "count ValueState: (user string" in run("state", location.path).stdout
    (store,) = run("state", location.path, "--json").json["stores"]
    assert (store["name"], store["parallelism"], store["rows"]) == ("transformWithStateExec", 2, 2)
    (family,) = store["families"]
    assert (family["name"], family["kind"]) == ("count", "ValueState")
    assert family["key"] == [{"name": "user", "type": "string"}, {"name": "day", "type": "date32[day]"}]


def test_state_of_an_earlier_checkpoint(location: str) -> None:
    assert run("state", location, "--id", 2, "--json").json["checkpoint_id"] == 2
    assert run("state", location, "--id", 9).status == 1


def test_rows_as_text(location: str) -> None:
    shown = run("read", location, "--id", 2)
    assert shown.status == 0
    header, *rows, end = shown.stdout.splitlines()
    assert header.split()[:4] == ["key.user", "key.day", "value.n", "value.price"]
    assert header.split()[-1] == "partition_id"
    assert end == "2 rows"
    (first,) = (line for line in rows if line.startswith("a "))
    assert first.split()[:5] == ["a", "1970-01-01", "1", "1.50", "1970-01-01"]
    assert '["1970-01-01", null]' in first
    (second,) = (line for line in rows if line.startswith("b"))
    assert "\x1b" not in second
    assert "b\\x1b[0m" in second


def test_rows_as_json(location: str) -> None:
    shown = run("read", location, "--where", "value.n = 2", "--json").json
    assert (shown["operator_id"], shown["store"], shown["variable"]) == (0, "default", "default")
    assert shown["columns"][-1] == {"name": "partition_id", "type": "int32"}
    (found,) = shown["rows"]
    assert found["key"] == {"user": "a", "day": "1970-01-01"}
    value = found["value"]
    assert (value["n"], value["price"], value["share"], value["code"]) == (2, "1.50", "inf", "/w==")
    assert (value["parts"], value["table"], value["pause"]) == ([], [["x", None]], 2**62)
    assert isinstance(value["at"], str)  # a time beyond the range of `datetime`
    assert shown["has_more"] is False


def test_a_limit(location: str) -> None:
    shown = run("read", location, "--limit", 1)
    assert shown.stdout.splitlines()[-1] == "1 row shown; there are more (see --limit)"
    assert len(run("read", location, "--limit", 1, "--json").json["rows"]) == 1
    assert run("read", location, "--limit", 1, "--json").json["has_more"] is True
    assert len(run("read", location, "--limit", 0, "--json").json["rows"]) == 2
    assert run("read", location, "--limit", 2, "--json").json["has_more"] is False


def test_no_row(location: str) -> None:
    shown = run("read", location, "--where", "value.n = 7")
    assert shown.stdout.splitlines()[0].startswith("key.user")
    assert shown.stdout.splitlines()[1:] == ["0 rows"]


@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_exports(location: str, tmp_path: Path, form: str) -> None:
    target = tmp_path / "target"
    shown = run("read", location, f"--to-{form}", target)
    assert shown.status == 0
    assert shown.stdout.startswith("2 rows written to ")
    assert pq.read_table(target).num_rows == 2
    again = run("read", location, f"--to-{form}", target, "--json")
    assert (again.status, again.error["error"]) == (1, "TargetExistsError")


def test_two_targets(location: str, tmp_path: Path) -> None:
    shown = run("read", location, "--to-parquet", tmp_path / "a", "--to-delta", tmp_path / "b")
    assert shown.status == 2
    assert not (tmp_path / "a").exists()


def test_differences_as_text(location: str) -> None:
    shown = run("diff", location, 2, 3)
    assert shown.status == 0
    header, *changes, end = shown.stdout.splitlines()
    assert header.split() == ["CHANGE", "key.user", "key.day", "VALUE"]
    assert end == "1 inserted, 1 updated, 1 deleted"
    (update,) = (line for line in changes if line.startswith("update"))
    assert "n 1 -> 2" in update
    assert "price" not in update
    assert {line.split()[0] for line in changes} == {"insert", "update", "delete"}


def test_differences_as_json(location: str) -> None:
    shown = run("diff", location, 2, 3, "--json").json
    assert (shown["before_id"], shown["checkpoint_id"]) == (2, 3)
    assert shown["counts"] == {"delete": 1, "update": 1, "insert": 1}
    by_kind = {change["change"]: change for change in shown["changes"]}
    assert (by_kind["insert"]["before"], by_kind["delete"]["after"]) == (None, None)
    assert by_kind["insert"]["key"] == {"user": None, "day": None}
    assert (by_kind["update"]["before"]["n"], by_kind["update"]["after"]["n"]) == (1, 2)
    assert shown["columns"][0] == {"name": "change", "type": "string"}


def test_all_differences_are_counted(location: str) -> None:
    shown = run("diff", location, 2, 3, "--limit", 1)
    assert shown.stdout.splitlines()[-1] == "1 inserted, 1 updated, 1 deleted; 2 not shown (see --limit)"
    assert run("diff", location, 3, 3).stdout == "0 inserted, 0 updated, 0 deleted\n"


def test_differences_of_sources_as_text(location: str, tmp_path: Path) -> None:
    with_sources = state_location(tmp_path / "with-sources", with_sources=True).path
    lines = run("diff", with_sources, 2, 3).stdout.splitlines()
    rows = run("diff", location, 2, 3).stdout.splitlines()
    assert lines[: len(rows)] == rows
    title, header, *changes, end = lines[len(rows) :]
    assert title == "source positions:"
    assert header.split() == ["CHANGE", "SOURCE", "KIND", "TOPIC", "PARTITION", "BEFORE", "AFTER"]
    assert [line.split() for line in changes[:4]] == [
        ["update", "0", "kafka", "orders", "0", "17", "29"],
        ["update", "0", "kafka", "orders", "2", "5", "6"],
        ["insert", "0", "kafka", "orders", "3", "-", "0"],
        ["delete", "0", "kafka", "returns", "0", "0", "-"],
    ]
    table = ("table", f"{TABLE},", "version")
    assert changes[4].split() == [
        *("update", "1", "delta", "-", "-"),
        *(*table, "3,", "index", "-1"),
        *(*table, "5,", "index", "-1"),
    ]
    assert changes[5].split() == ["update", "2", "file", "-", "-", "3", "4"]
    assert end == "1 inserted, 8 updated, 1 deleted"


def test_differences_of_sources_as_json(tmp_path: Path) -> None:
    location = state_location(tmp_path, with_sources=True).path
    shown = run("diff", location, 2, 3, "--json").json
    assert shown["source_counts"] == {"delete": 1, "update": 8, "insert": 1}
    assert shown["source_changes"][:3:2] == [
        {
            "source": "0",
            "change": "update",
            "before": {"type": "kafka", "topic": "orders", "partition": 0, "offset": 17},
            "after": {"type": "kafka", "topic": "orders", "partition": 0, "offset": 29},
        },
        {
            "source": "0",
            "change": "insert",
            "before": None,
            "after": {"type": "kafka", "topic": "orders", "partition": 3, "offset": 0},
        },
    ]
    assert len(shown["source_changes"]) == 10


def test_a_limit_holds_for_sources_too(tmp_path: Path) -> None:
    location = state_location(tmp_path, with_sources=True).path
    limited = run("diff", location, 2, 3, "--limit", 1)
    assert limited.stdout.splitlines()[-1] == "1 inserted, 8 updated, 1 deleted; 9 not shown (see --limit)"
    assert len(run("diff", location, 2, 3, "--limit", 1, "--json").json["source_changes"]) == 1
    assert len(run("diff", location, 2, 3, "--limit", 0, "--json").json["source_changes"]) == 10


def test_equal_sources_are_not_mentioned(tmp_path: Path) -> None:
    location = state_location(tmp_path, with_sources=True).path
    assert run("diff", location, 3, 3).stdout == "0 inserted, 0 updated, 0 deleted\n"
    shown = run("diff", location, 3, 3, "--json").json
    assert (shown["source_counts"], shown["source_changes"]) == ({"delete": 0, "update": 0, "insert": 0}, [])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("read", "--operator", 1), "StateNotFoundError"),
        (("read", "--store", "x"), "StateNotFoundError"),
        (("read", "--side", "left"), "StateNotFoundError"),
        (("read", "--where", "value.m = 1"), "FilterError"),
        (("read", "--id", 7), "CheckpointNotFoundError"),
        (("diff", 2, 7), "CheckpointNotFoundError"),
        (("state", "--id", 7), "CheckpointNotFoundError"),
    ],
)
def test_errors(location: str, arguments: tuple[object, ...], error: str) -> None:
    name, *others = arguments
    shown = run(name, location, *others, "--json")
    assert (shown.status, shown.stdout) == (1, "")
    assert shown.error["error"] == error
    assert run(name, location, *others).stderr.startswith("Error: ")


def test_a_location_of_another_kind(tmp_path: Path) -> None:
    for name in ("state", "read"):
        assert run(name, tmp_path, "--json").error["error"] == "ForeignLocationError"
    assert run("diff", tmp_path / "absent", 1, 2, "--json").error["error"] == "LocationNotFoundError"
