"""Commands `state`, `read`, `diff` and `verify` on checkpoints and savepoints of Flink."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import spark_ckpt
from tests.flink.streams.corpus import backend, flink_job, with_unknown_class, with_unknown_end
from tests.support.cli import run

OPERATOR = "e7beec23fd9f6ed5e1b8395129d43728"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return flink_job(tmp_path / "flink")


def moved(place: Path) -> tuple[str, str]:
    return "--map", f"oracle://ckpt={place.parent}"


def test_state(place: Path) -> None:
    shown = run("state", place, *moved(place))
    assert (shown.status, shown.stderr) == (0, "")
    title, operator, *states = shown.stdout.splitlines()
    assert title == "checkpoint 2 of Flink"
    assert operator.startswith(f"└── {OPERATOR}, 2 subtasks, 128 key groups, ")
    assert [line.strip(" ├└─") for line in states[:3]] == [
        "sum VALUE: (key int64) -> (value int64)",
        "list LIST: (key int64) -> (list_element string)",
        "map MAP: (key int64, user_map_key string) -> (user_map_value int64)",
    ]
    (described,) = run("state", place, "--id", 1, *moved(place), "--json").json["operators"]
    assert (described["operator_id"], described["parallelism"], described["name"]) == (OPERATOR, 1, None)
    (timers,) = (state for state in described["states"] if state["name"].startswith("_timer_state/event"))
    assert [column["serializer"] for column in timers["key"]] == ["Long", "Date"]


def test_rows_as_text(place: Path) -> None:
    shown = run("read", place, "--variable", "map", "--where", "key = 4 and user_map_key != 'k1'", *moved(place))
    assert (shown.status, shown.stderr) == (0, "")
    header, *rows, end = shown.stdout.splitlines()
    assert header.split() == ["key", "user_map_key", "user_map_value", "key_group", "partition_id"]
    assert [row.split()[:3] for row in rows] == [["4", "k0", "2"], ["4", "k2", "2"]]
    assert end == "2 rows"


def test_rows_as_json(place: Path) -> None:
    shown = run("read", place, "--operator", OPERATOR, "--variable", "sum", "--limit", 1, *moved(place), "--json").json
    assert (shown["operator_id"], shown["variable"], shown["checkpoint_id"]) == (OPERATOR, "sum", 2)
    assert [column["name"] for column in shown["columns"]] == ["key", "value", "key_group", "partition_id"]
    assert (len(shown["rows"]), shown["has_more"]) == (1, True)


@pytest.mark.parametrize("form", ["parquet", "delta"])
@pytest.mark.parametrize("state", ["list", "_timer_state/event_user-timers"])
def test_exports(place: Path, tmp_path: Path, form: str, state: str) -> None:
    target = tmp_path / "target"
    shown = run("read", place, "--variable", state, f"--to-{form}", target, *moved(place))
    assert shown.status == 0, shown.stderr
    scan = spark_ckpt.read_state(place, variable=state, moved=[("oracle://ckpt", str(place.parent))])
    assert pq.read_table(target).to_pylist() == scan.to_arrow().to_pylist()
    assert shown.stdout.startswith(f"{scan.to_arrow().num_rows} rows written to ")


def test_bytes_of_unknown_classes(tmp_path: Path) -> None:
    vector = with_unknown_class(backend("unknown-full"), tmp_path)
    (row,) = run("read", vector.directory, "--variable", "instant", "--json").json["rows"]
    assert row["value"]["class"].endswith("UnknownSerializerSnapshot")
    assert (row["key"], row["value"]["bytes"]) == (7, "AAAAAAAAAAcAAAAA")
    (operator,) = run("state", vector.directory, "--json").json["operators"]
    (instant,) = (state for state in operator["states"] if state["name"] == "instant")
    assert instant["value"][0]["serializer"].endswith("UnknownSerializerSnapshot")
    assert (
        run("verify", vector.directory).stdout.splitlines()[1].startswith("  not checked, because its type is unknown")
    )


def test_states_without_names_are_named_as_such(tmp_path: Path) -> None:
    vector = with_unknown_end(with_unknown_class(backend("unknown-full"), tmp_path))
    reason = "1 of 3 states behind the unknown serializer "
    (operator,) = run("state", vector.directory, "--json").json["operators"]
    (unread,) = operator["unread"]
    assert unread.startswith(reason)
    assert f"not read: {reason}" in " ".join(run("state", vector.directory).stdout.split())


def test_differences(place: Path) -> None:
    shown = run("diff", place, 1, 2, "--variable", "list", "--limit", 1, *moved(place))
    assert (shown.status, shown.stderr) == (0, "")
    header, change, end = shown.stdout.splitlines()
    assert header.split() == ["CHANGE", "key", "VALUE"]
    assert change.startswith('update  4    ["v4", "v14", "v24", "v34"] -> ["v4", "v14", "v24", "v1000004"')
    assert end == "0 inserted, 10 updated, 0 deleted; 9 not shown (see --limit)"
    shown = run("diff", place, 1, 2, "--variable", "_timer_state/event_user-timers", *moved(place), "--json")
    assert shown.json["counts"] == {"delete": 10, "update": 0, "insert": 30}
    assert run("diff", place, 1, 2, "--variable", "sum", "--store", "default", *moved(place)).status == 2


def test_verification(place: Path) -> None:
    shown = run("verify", place, "--all", *moved(place))
    assert shown.status == 0
    assert [line.partition(";")[0] for line in shown.stdout.splitlines()] == [
        "checkpoint 2 of Flink: intact",
        "checkpoint 1 of Flink: intact",
    ]
    for path in (place / "chk-2").iterdir():
        if path.name != "_metadata":
            path.unlink()
    shown = run("verify", place, *moved(place))
    assert shown.status == 3
    assert shown.stdout.splitlines()[0].startswith("checkpoint 2 of Flink: damaged in 4 places")
    assert shown.stdout.splitlines()[-1] == "the newest intact checkpoint is 1"


@pytest.mark.parametrize(
    ("arguments", "error", "reason"),
    [
        (["--variable", "other"], "StateNotFoundError", "no state 'other'"),
        ([], "StateNotFoundError", "choose a state"),
        (["--operator", "0"], "StateNotFoundError", "no operator '0' has state"),
        (["--store", "default"], "StateNotFoundError", "neither stores nor sides"),
        (["--side", "left"], "StateNotFoundError", "neither stores nor sides"),
        (["--variable", "sum", "--where", "n = 1"], "FilterError", "'n' is unknown"),
        (["--id", "7"], "CheckpointNotFoundError", "7"),
    ],
)
def test_errors(place: Path, arguments: list[str], error: str, reason: str) -> None:
    shown = run("read", place, *arguments, *moved(place), "--json")
    assert (shown.status, shown.error["error"]) == (1, error)
    assert reason in shown.error["message"]


def test_files_outside_are_not_opened(tmp_path: Path) -> None:
    place = flink_job(tmp_path / "flink", "f120-rocksdb-incr-p2-second")
    for command in (("read", place, "--variable", "sum"), ("verify", place)):
        shown = run(*command, "--json")
        assert (shown.status, shown.error["error"]) == (1, "StateFileOutsideError")
        assert run(*command, *moved(place)).status == 0


def test_a_negative_operator_is_wrong_usage(place: Path) -> None:
    assert run("read", place, "--operator", -1).status == 2
