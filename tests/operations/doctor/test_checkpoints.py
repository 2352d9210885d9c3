from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.completed import Owner
from spark_ckpt.messages import Decline, Task
from spark_ckpt.operations.doctor import Status
from spark_ckpt.storage import LocalStorage
from tests.operations.doctor.examined import ALIVE, ENDED, LAST_MS, examined, location, only
from tests.support.driver import Driver, faulty_environment


@pytest.mark.parametrize(
    ("owner", "age_ms", "status"),
    [
        (ALIVE, 60_000, Status.OK),
        (ALIVE, 180_000, Status.OK),
        (ALIVE, 180_001, Status.WARNING),
        (ENDED, 180_001, Status.OK),
    ],
)
def test_a_late_checkpoint_of_a_driver_that_may_run(tmp_path: Path, owner: Owner, age_ms: int, status: Status) -> None:
    found = only(examined(location(tmp_path, owner), LAST_MS + age_ms), "last checkpoint")
    assert found.status is status
    assert (found.data["age_ms"], found.data["median_interval_ms"]) == (age_ms, 60_000)
    assert "the last 4 came every 1 min" in found.answer
    assert found.command == (f"spark-ckpt list {tmp_path} --sources" if status is Status.WARNING else None)


def test_the_bytes_that_a_restart_reads(tmp_path: Path) -> None:
    found = only(examined(location(tmp_path, ENDED, deltas=3)), "chains")
    assert found.status is Status.OK
    assert found.data == {"longest": 3, "bytes": 1120, "base_bytes": 1000, "subtasks": 2}


def test_a_long_chain(tmp_path: Path) -> None:
    found = only(examined(location(tmp_path, ENDED, deltas=90)), "chains")
    assert found.status is Status.WARNING
    assert found.command == f"spark-ckpt history {tmp_path}"


def test_recent_failures(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    driver = Driver(tmp_path, environment=faulty_environment(storage))
    driver.batch(1)
    assert only(examined(storage), "failures").status is Status.OK
    job = driver.trigger(2)
    job.decline(Decline(driver.subtasks()[0], 1, 2, Task(9, 0, 0, 0), "disk full", job=driver.run_id))
    driver.batch(2)
    found = only(examined(storage), "failures")
    assert (found.status, found.data["reasons"]) == (Status.WARNING, {"declined": 1})
