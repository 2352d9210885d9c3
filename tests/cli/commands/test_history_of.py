"""`spark-ckpt history-of`: its output and exit statuses."""

from __future__ import annotations

from pathlib import Path

from tests.edit.hashed_state import counts
from tests.support.cli import run


def test_the_history_of_a_key(tmp_path: Path) -> None:
    counts(tmp_path)
    shown = run("history-of", tmp_path, '{"user": "u0"}')
    assert shown.status == 0
    assert [line.split(maxsplit=3) for line in shown.stdout.splitlines()[:4]] == [
        ["operator", "0,", "store", "default, default"],
        ["BATCH", "key.user", "CHANGE", "VALUE"],
        ["0", "u0", "insert", '{"count": 0, "name": "a title"}'],
        ["3", "u0", "update", '{"count": 100, "name": null}'],
    ]
    assert shown.stdout.splitlines()[4] == "2 changes of 1 key in 4 checkpoints; 4 segments read"


def test_keys_in_a_file_and_keys_without_rows(tmp_path: Path) -> None:
    counts(tmp_path / "q")
    (tmp_path / "keys.json").write_text('[{"user": "u1"}, {"user": "nobody"}]')
    found = run("history-of", tmp_path / "q", tmp_path / "keys.json", "--json").json
    (family,) = found["families"]
    assert [(change["last_batch"], change["change"]) for change in family["changes"]] == [(0, "insert"), (3, "delete")]
    assert found["keys"] == 2
    none = run("history-of", tmp_path / "q", '{"user": "nobody"}')
    assert none.status == 0
    assert none.stdout.startswith("0 changes of 1 key in 4 checkpoints; ")


def test_an_unknown_column_and_a_location_without_checkpoints_are_errors(tmp_path: Path) -> None:
    counts(tmp_path / "q")
    wrong = run("history-of", tmp_path / "q", '{"name": "u1"}', "--json")
    assert (wrong.status, wrong.error["error"]) == (5, "EditRowError")
    missing = run("history-of", tmp_path / "none", '{"name": "u1"}', "--json")
    assert (missing.status, missing.error["error"]) == (1, "LocationNotFoundError")
    assert run("history-of", tmp_path / "q").status == 2
