"""`spark-ckpt edit`, `erase` and `verify --absent`: their output and exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

from tests.edit.hashed_state import counts
from tests.support.cli import run

SET = json.dumps({"key": {"user": "u0"}, "value": {"count": 9, "name": None}})
KEYS = '{"user": "u0"}'


def test_an_edit(tmp_path: Path) -> None:
    query = counts(tmp_path)
    dry = run("edit", tmp_path, "--set", SET, "--delete", '[{"key": {"user": "u1"}}]', "--dry-run")
    assert dry.status == 0
    assert dry.stdout.splitlines() == [
        f"{tmp_path} 0/default: 0 rows inserted, 1 updated, 0 deleted, 1 key to delete not there, in 1 partition",
        "nothing was written",
    ]
    assert len(query.log.temporary_files()) == 0
    shown = run("edit", tmp_path, "--set", SET)
    assert shown.status == 0
    first, last = shown.stdout.splitlines()
    assert first == f"{tmp_path} 0/default: 0 rows inserted, 1 updated, 0 deleted, in 1 partition"
    assert last.startswith("new checkpoint ")
    assert "batch 4, from checkpoint " in last
    found = run("read", tmp_path, "--limit", 0, "--json").json["rows"]
    assert [each["value"] for each in found if each["key"]["user"] == "u0"] == [{"count": 9, "name": None}]


def test_what_read_prints_can_be_set(tmp_path: Path) -> None:
    counts(tmp_path / "q")
    before = run("read", tmp_path / "q", "--limit", 0, "--json").json
    (tmp_path / "rows.json").write_text(json.dumps(before))
    shown = run("edit", tmp_path / "q", "--set", tmp_path / "rows.json", "--json").json
    assert (shown["inserted"], shown["updated"]) == (0, len(before["rows"]))
    after = run("read", tmp_path / "q", "--limit", 0, "--json").json["rows"]
    assert sorted(after, key=str) == sorted(before["rows"], key=str)


def test_an_erasure_and_its_proof(tmp_path: Path) -> None:
    counts(tmp_path)
    there = run("verify", tmp_path, "--absent", KEYS)
    assert there.status == 3
    assert "found in " in there.stdout
    shown = run("erase", tmp_path, "--keys", KEYS)
    assert shown.status == 0
    assert shown.stdout.splitlines()[:2] == [
        f"{tmp_path}: 1 row of 1 key removed",
        "  0/default/default: 1 row",
    ]
    assert run("verify", tmp_path, "--absent", KEYS).status == 3, "earlier checkpoints have it"
    purged = run("erase", tmp_path, "--keys", KEYS, "--purge")
    assert purged.status == 0
    assert "rewritten" in purged.stdout
    gone = run("verify", tmp_path, "--absent", KEYS)
    assert gone.status == 0
    assert gone.stdout.startswith(f"{tmp_path}: absent from ")
    assert "not searched: other savepoints" in gone.stdout
    assert run("verify", tmp_path, "--absent", KEYS, "--json").json["traces"] == []
    assert run("verify", tmp_path).status == 0


def test_what_cannot_be_done_has_a_status_of_its_own(tmp_path: Path) -> None:
    counts(tmp_path)
    refused = run("edit", tmp_path, "--set", '{"key": {"name": "a"}}')
    assert (refused.status, refused.stdout) == (5, "")
    assert "key.name" in refused.stderr
    error = run("erase", tmp_path, "--keys", '{"name": "a"}', "--json")
    assert error.status == 5
    assert error.error["column"] == "name"
    assert run("edit", tmp_path).status == 2
    assert run("erase", tmp_path).status == 2
    assert run("edit", tmp_path / "nowhere", "--set", SET).status == 1
    assert run("edit", tmp_path, "--set", tmp_path / "missing.parquet").status == 1
    assert run("verify", tmp_path, "--absent", KEYS, "--all").status == 2
    assert run("verify", tmp_path, "--operator", 0).status == 2
