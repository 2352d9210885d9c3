from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import run
from tests.support.locations import make_location
from tests.support.queries import make_query
from tests.support.s3 import S3
from tests.support.uploads import copy


@pytest.fixture
def location(tmp_path: Path) -> Path:
    """Location with checkpoints 4 to 7, of batches 2 to 5."""
    make_query(tmp_path / "my query")
    return tmp_path / "my query"


def damage(location: Path) -> Path:
    file = location / "ckpt" / "chk-7" / "_metadata"
    file.write_bytes(file.read_bytes()[:-1])
    return file


def test_a_healthy_location(location: Path) -> None:
    shown = run("doctor", location)
    assert (shown.status, shown.stderr) == (0, "")
    headline, header, *rows, steps = shown.stdout.splitlines()
    assert headline == f"{location}: healthy"
    assert header.split() == ["CHECK", "STATUS", "ANSWER"]
    assert any(row.startswith("state ") and "checkpoint 7 intact" in row for row in rows)
    assert steps == "What to do next: nothing"


def test_damage_is_status_3_and_the_steps_are_commands(location: Path) -> None:
    file = damage(location)
    shown = run("doctor", location)
    assert shown.status == 3
    assert shown.stdout.startswith(f"{location}: damaged: 1 problem")
    steps = shown.stdout.splitlines()[shown.stdout.splitlines().index("What to do next:") + 1 :]
    assert steps[0].startswith("  1. Stop the query, go back to checkpoint 6")
    assert steps[0].endswith(f": spark-ckpt rollback '{location}' --id 6")
    shown = run("doctor", location, "--json")
    assert (shown.status, shown.json["verdict"]) == (3, "damaged")
    (state,) = [finding for finding in shown.json["findings"] if finding["name"] == "state"]
    assert (state["status"], state["data"]["restorable"]) == ("problem", [6])
    assert str(file) in state["answer"]


def test_everything_is_read_on_request(location: Path) -> None:
    (state,) = [each for each in run("doctor", location, "--all", "--json").json["findings"] if each["name"] == "state"]
    assert state["data"]["read"] == [7, 6, 5, 4]


def test_a_probe_answers_what_is_not_tested_otherwise(location: Path) -> None:
    def exclusive(*options: str) -> str:
        findings = run("doctor", location, "--json", *options).json["findings"]
        return next(str(each["status"]) for each in findings if each["name"] == "exclusive create")

    assert (exclusive(), exclusive("--probe")) == ("unknown", "ok")


def test_a_location_without_a_checkpoint(tmp_path: Path) -> None:
    shown = run("doctor", make_location(tmp_path / "new", batches=0))
    assert shown.status == 0
    assert "no checkpoint has completed yet" in shown.stdout


@pytest.mark.parametrize("name", ["absent", "empty", "file"])
def test_what_is_no_location(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    ours, of_verify = (run(command, tmp_path / name, "--json") for command in ("doctor", "verify"))
    assert (ours.status, ours.stdout) == (1, "")
    assert ours.error == of_verify.error


def test_control_characters_are_escaped(location: Path) -> None:
    (location / "ckpt" / "a\x1b[31m").touch()
    assert "\x1b" not in run("doctor", location).stdout


def test_on_s3(location: Path, s3: S3) -> None:
    place = f"{s3.url}/deep/q"
    copy(location, place)
    shown = run("doctor", place, "--probe", "--json")
    assert shown.status == 0
    statuses = {finding["name"]: finding["status"] for finding in shown.json["findings"]}
    assert (statuses["state"], statuses["exclusive create"], statuses["free space"]) == ("ok", "ok", "unknown")
    assert {finding["name"] for finding in shown.json["findings"] if finding["error"]} == set()
