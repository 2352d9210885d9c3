from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.cli import run
from tests.support.queries import make_query


@pytest.fixture
def location(tmp_path: Path) -> Path:
    """Location with checkpoints 4 to 7, of batches 2 to 5."""
    make_query(tmp_path / "q")
    return tmp_path / "q"


def damage(location: Path, checkpoint_id: int = 7) -> Path:
    file = location / "ckpt" / f"chk-{checkpoint_id}" / "_metadata"
    file.write_bytes(file.read_bytes()[:-1])
    return file


def test_a_whole_location(location: Path) -> None:
    done = run("verify", location)
    assert done.status == 0
    assert done.stdout.startswith("checkpoint 7, batch 5: intact; ")
    assert len(done.stdout.splitlines()) == 1
    every = run("verify", location, "--all", "--json").json
    assert [(c["id"], c["whole"]) for c in every["checkpoints"]] == [(7, True), (6, True), (5, True), (4, True)]
    assert every["restorable"] == [7, 6, 5, 4]
    assert run("verify", location, "--id", "5").stdout.startswith("checkpoint 5, ")


def test_damage_is_status_3_and_names_the_way_back(location: Path) -> None:
    file = damage(location)
    done = run("verify", location)
    assert done.status == 3
    first, second, third, way_out = done.stdout.splitlines()
    assert first.startswith("checkpoint 7, batch 5: damaged in 1 place; ")
    assert second.startswith(f"  {file}: ")
    assert third.startswith("checkpoint 6, batch 4: intact; ")
    assert way_out == f"roll back with: spark-ckpt rollback {location} --id 6"
    shown = run("verify", location, "--json")
    assert (shown.status, shown.json["whole"], shown.json["restorable"]) == (3, False, [6])


def test_nothing_that_can_be_restored(location: Path) -> None:
    for checkpoint_id in range(4, 8):
        damage(location, checkpoint_id)
    done = run("verify", location)
    assert done.status == 3
    assert "none of these checkpoints can be restored" in done.stdout


def test_damage_beside_the_newest_checkpoint(location: Path) -> None:
    damage(location, 5)
    done = run("verify", location, "--all")
    assert (done.status, done.stdout.splitlines()[-1]) == (
        3,
        "the query starts from the newest checkpoint, 7, which is whole",
    )


def test_all_checkpoints_are_gone(location: Path) -> None:
    shutil.rmtree(location / "ckpt")
    done = run("verify", location)
    assert (done.status, done.stderr) == (3, "")
    assert f"{location / 'ckpt'}: no completed checkpoint found" in done.stdout
    assert run("verify", location, "--json").json["whole"] is False


def test_many_damages_are_counted(location: Path) -> None:
    for file in (location / "ckpt" / "shared").iterdir():
        file.write_bytes(bytes(file.stat().st_size))
    done = run("verify", location, "--id", "7")
    assert done.status == 3
    assert "more (see --json)" in done.stdout
    assert len(run("verify", location, "--id", "7", "--json").json["checkpoints"][0]["damages"]) > 20


def test_wrong_usage(location: Path) -> None:
    assert run("verify", location, "--all", "--id", "7").status == 2
    missing = run("verify", location, "--id", "99", "--json")
    assert (missing.status, missing.error["error"]) == (1, "CheckpointNotFoundError")
    assert run("verify", location / "nowhere").status == 1
