from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.messages import Decline, Task
from spark_ckpt.storage import LocalStorage
from tests.storage.faulty import FaultyStorage
from tests.support.cli import run
from tests.support.driver import Driver, faulty_environment
from tests.support.locations import make_location


@pytest.fixture
def location(tmp_path: Path) -> Path:
    """Location with two completed batches, an aborted checkpoint, and a checkpoint completed after a retry."""
    storage = FaultyStorage(LocalStorage(tmp_path))
    driver = Driver(tmp_path, environment=faulty_environment(storage))
    driver.batch(1)
    job = driver.trigger(2)
    job.acknowledge(driver.make_ack(driver.subtasks()[0], 2))
    again = Driver(tmp_path, environment=faulty_environment(storage))
    again.rows, again.ids = driver.rows, driver.ids
    job = again.trigger(2)
    job.decline(Decline(again.subtasks()[0], 1, 2, Task(9, 0, 0, 0), "disk full", job=again.run_id))
    storage.fail("create", "_metadata")
    again.batch(2)
    return tmp_path


def test_a_line_for_each_checkpoint(location: Path) -> None:
    shown = run("history", location)
    assert (shown.status, shown.stderr) == (0, "")
    header, first, second = shown.stdout.splitlines()
    assert header.split()[:4] == ["ID", "BATCH", "STATUS", "TRIGGERED"]
    assert first.split()[:3] == ["2", "0", "completed"]
    assert second.split()[:3] == ["4", "1", "completed"]
    assert "4/4" in second.split()
    assert second.split()[second.split().index("4/4") + 1] == "2"  # a decline and a storage failure


def test_json_has_every_field(location: Path) -> None:
    shown = run("history", location, "--json").json
    first, second = shown["history"]
    assert (first["checkpoint_id"], first["batch_id"], first["version"], first["status"]) == (2, 0, 1, "completed")
    assert first["triggered"].endswith("Z")
    assert first["failures"] == {}
    assert first["subtasks"]["snapshot_us"].keys() == {"least", "mean", "most"}
    assert first["subtasks"]["slowest"][0]["subtask"] == {"operator_id": 0, "store": "default", "partition": 3}
    assert second["failures"] == {"declined": 1, "storage": 1}
    assert second["size"]["rows"] == 16  # two per batch in each of four subtasks
    assert second["size"]["new_bytes"] <= second["size"]["state_bytes"]


def test_one_checkpoint(location: Path) -> None:
    shown = run("history", location, "--id", "4")
    assert shown.status == 0
    assert shown.stdout.splitlines()[0] == "checkpoint 4, batch 1, state version 2: completed"
    assert "declined: 1" in shown.stdout
    assert "operator 0, store default, partition 3" in shown.stdout
    assert [entry["checkpoint_id"] for entry in run("history", location, "--id", "4", "--json").json["history"]] == [4]


def test_each_subtask_of_one_checkpoint(location: Path) -> None:
    shown = run("history", location, "--id", "4", "--subtasks")
    assert shown.status == 0
    header, *lines = shown.stdout.splitlines()[-5:]
    assert header.split()[:4] == ["OPERATOR", "STORE", "PARTITION", "EXECUTOR"]
    assert sorted(line.split()[2] for line in lines) == ["0", "1", "2", "3"]
    (entry,) = run("history", location, "--id", "4", "--subtasks", "--json").json["history"]
    assert len(entry["by_subtask"]) == entry["acks"] == 4
    assert sum(subtask["rows"] for subtask in entry["by_subtask"]) == entry["size"]["rows"]
    assert entry["by_subtask"][-1] == entry["subtasks"]["slowest"][0]


def test_subtasks_are_those_of_one_checkpoint(location: Path) -> None:
    shown = run("history", location, "--subtasks")
    assert (shown.status, "--subtasks requires --id" in shown.stderr) == (2, True)


def test_a_checkpoint_that_is_not_there_names_those_that_are(location: Path) -> None:
    shown = run("history", location, "--id", "3", "--json")
    assert shown.status == 1
    assert shown.error["available"] == [2, 4]


def test_a_location_whose_checkpoints_carry_no_statistics(tmp_path: Path) -> None:
    shown = run("history", make_location(tmp_path))
    assert shown.status == 1
    assert "no readable master state spark-history" in shown.stderr


def test_nothing_is_there(tmp_path: Path) -> None:
    assert run("history", tmp_path / "absent").status == 1


def test_a_page_for_a_ticket(location: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    page = tmp_path_factory.mktemp("pages") / "report.html"
    shown = run("history", location, "--html", page)
    assert (shown.status, shown.stdout, shown.stderr) == (0, f"{page}: 2 checkpoints\n", "")
    assert "declined: 1" in page.read_text()
    again = run("history", location, "--html", page, "--json")
    assert (again.status, again.error["error"], again.error["target"]) == (1, "TargetExistsError", str(page))
    forced = run("history", location, "--html", page, "--force", "--last", 1, "--json")
    assert [entry["checkpoint_id"] for entry in forced.json["history"]] == [4]
    assert page.read_text().count("<tr") == 2


@pytest.mark.parametrize("options", [("--html", "x", "--id", 4), ("--html", "x", "--watch"), ("--force",)])
def test_a_page_is_of_all_checkpoints_once(location: Path, options: tuple[object, ...]) -> None:
    assert run("history", location, *options).status == 2


def test_no_page_without_a_history(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert run("history", make_location(tmp_path / "q"), "--html", page).status == 1
    assert not page.exists()
