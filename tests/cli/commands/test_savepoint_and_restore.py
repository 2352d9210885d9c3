from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import run
from tests.support.queries import make_query


@pytest.fixture
def location(tmp_path: Path) -> Path:
    """Location with checkpoints 4 to 7, of batches 2 to 5."""
    make_query(tmp_path / "q")
    return tmp_path / "q"


def test_a_savepoint_and_a_query_from_it(location: Path, tmp_path: Path) -> None:
    planned = run("savepoint", location, tmp_path / "s", "--dry-run")
    assert planned.stdout.startswith(f"checkpoint 7, batch 5, would be copied to {tmp_path / 's'}: ")
    done = run("savepoint", location, tmp_path / "s")
    assert done.status == 0
    assert planned.stdout == done.stdout.replace(", copied", ", would be copied")
    assert done.stdout.startswith(f"checkpoint 7, batch 5, copied to {tmp_path / 's'}: ")
    assert run("verify", tmp_path / "s").stdout.startswith("checkpoint 7, batch 5: intact; ")
    assert run("inspect", tmp_path / "s", "--streams").status == 0
    restored = run("restore", tmp_path / "s", tmp_path / "new", "--json").json
    assert (restored["id"], restored["batch_id"], restored["source"]) == (7, 5, str(tmp_path / "s"))
    assert [c["id"] for c in run("list", tmp_path / "new", "--json").json["checkpoints"]] == [7]
    assert run("verify", tmp_path / "new").status == 0


def test_a_location_has_a_note_of_its_latest_savepoint(location: Path, tmp_path: Path) -> None:
    notes = location / "ckpt" / "savepoints"
    run("savepoint", location, tmp_path / "s", "--dry-run")
    assert not notes.exists()
    for target in ("s", "t"):
        run("savepoint", location, tmp_path / target)
        (note,) = notes.iterdir()
        content = json.loads(note.read_bytes())
        fields = [content[name] for name in ("format", "id", "batch_id", "path")]
        assert fields == [1, 7, 5, str(tmp_path / target)]
    assert run("verify", location).status == 0
    assert "savepoints" not in run("gc", location, "--dry-run").stdout


def test_a_savepoint_of_a_location_that_cannot_be_written(location: Path, tmp_path: Path) -> None:
    (location / "ckpt" / "savepoints").write_bytes(b"")  # no directory, so no note
    assert run("savepoint", location, tmp_path / "s").status == 0
    assert run("verify", tmp_path / "s").status == 0


def test_a_dry_run_of_restore(location: Path, tmp_path: Path) -> None:
    planned = run("restore", location, tmp_path / "new", "--dry-run")
    assert planned.status == 0
    assert not (tmp_path / "new").exists()
    done = run("restore", location, tmp_path / "new")
    assert planned.stdout == done.stdout.splitlines(keepends=True)[0].replace(", copied", ", would be copied")


@pytest.mark.parametrize("by", ["number", "directory"])
def test_one_checkpoint_of_a_location(location: Path, tmp_path: Path, by: str) -> None:
    source = (location, "--id", 5) if by == "number" else (location / "ckpt" / "chk-5",)
    place, *options = source
    done = run("restore", place, tmp_path / "new", *options)
    assert done.status == 0
    first, second = done.stdout.splitlines()
    assert first.startswith("checkpoint 5, batch 3, copied to ")
    assert second.endswith(" starts there with batch 4")


def test_the_same_query(location: Path, tmp_path: Path) -> None:
    done = run("restore", location, tmp_path / "new", "--keep-query-id", "--json").json
    assert (tmp_path / "new" / "metadata").read_bytes() == b'{"id":"%s"}' % done["query_id"].encode()
    assert done["query_id"] in (location / "metadata").read_text()


def test_a_savepoint_is_no_location(location: Path, tmp_path: Path) -> None:
    run("savepoint", location, tmp_path / "s")
    error = run("gc", tmp_path / "s", "--json").error
    assert error["error"] == "SavepointLocationError"
    assert f"spark-ckpt restore {tmp_path / 's'}" in error["message"]


def test_a_savepoint_is_listed(location: Path, tmp_path: Path) -> None:
    run("savepoint", location, tmp_path / "s")
    assert [c["id"] for c in run("list", tmp_path / "s", "--json").json["checkpoints"]] == [7]


def test_failures(location: Path, tmp_path: Path) -> None:
    assert run("savepoint", location, location, "--json").error["error"] == "TargetNotEmptyError"
    assert run("restore", tmp_path / "nowhere", tmp_path / "new").status == 1
    assert run("restore", tmp_path, tmp_path / "new", "--json").error["error"] == "ForeignLocationError"
    other = run("restore", location / "ckpt" / "chk-5", tmp_path / "new", "--id", 6, "--json")
    assert (other.status, other.error["available"]) == (1, [5])
    assert run("savepoint", location, tmp_path / "s", "--id", 99).status == 1
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "s").exists()
