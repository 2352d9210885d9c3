from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from spark_ckpt.clock import SystemClock
from spark_ckpt.storage import LocalStorage
from tests.support.cli import run
from tests.support.queries import Query, make_query


@pytest.fixture
def location(tmp_path: Path) -> Path:
    """Location with checkpoints 4 to 7, of batches 2 to 5; its driver has ended."""
    make_query(tmp_path / "q")
    return tmp_path / "q"


def test_going_back(location: Path) -> None:
    planned = run("rollback", location, "--id", "5", "--dry-run")
    assert planned.status == 0
    assert planned.stdout.splitlines() == [
        "the query would resume from checkpoint 5, with batch 4",
        f"batches 4 to 5 and checkpoints 6 to 7 would be moved to {location}/rolled-back",
    ]
    done = run("rollback", location, "--id", "5")
    assert done.status == 0
    first, second = done.stdout.splitlines()
    assert first == "the query resumes from checkpoint 5, with batch 4"
    assert second.startswith(f"batches 4 to 5 and checkpoints 6 to 7 moved to {location}/rolled-back/")
    assert [c["id"] for c in run("list", location, "--json").json["checkpoints"]] == [4, 5]


def test_json(location: Path) -> None:
    done = run("rollback", location, "--id", "6", "--json").json
    assert (done["id"], done["batch_id"], done["batches"], done["checkpoints"]) == (6, 4, [5], [7])
    assert (location / done["aside"] / "offsets" / "5").is_file()


def test_a_driver_that_runs_is_status_4(tmp_path: Path) -> None:
    query = Query(LocalStorage(tmp_path))
    environment = query.driver.environment
    query.driver.environment = replace(environment, host=socket.gethostname(), pid=os.getpid(), clock=SystemClock())
    query.run(range(3))
    done = run("rollback", tmp_path, "--id", "3", "--json")
    assert (done.status, done.error["error"], done.error["is_known"]) == (4, "LocationInUseError", True)
    assert run("rollback", tmp_path, "--id", "3", "--force").status == 0


def test_other_failures_are_status_1(location: Path) -> None:
    (location / "ckpt" / "chk-5" / "_metadata").write_bytes(b"damaged")
    assert run("rollback", location, "--id", "5", "--json").error["error"] == "DamagedCheckpointError"
    missing = run("rollback", location, "--id", "99")
    assert (missing.status, missing.stdout) == (1, "")
    assert "no checkpoint 99" in missing.stderr
    assert run("rollback", location).status == 2
