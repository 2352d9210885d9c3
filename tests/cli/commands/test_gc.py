from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from spark_ckpt.clock import SystemClock
from spark_ckpt.operations.gc import DEFAULT_GRACE_SECONDS
from spark_ckpt.storage import LocalStorage
from tests.support.cli import run
from tests.support.driver import Driver, faulty_environment

HOUR = 3600.0


@pytest.fixture
def location(tmp_path: Path) -> Path:
    """Location with two checkpoints, and an orphan that is ten hours old."""
    storage = LocalStorage(tmp_path / "q")
    environment = replace(faulty_environment(storage), clock=SystemClock())  # records have the real time, like files
    driver = Driver(storage.location, environment=environment, settings={"inlineThreshold": "0"})
    driver.batch(1)
    driver.batch(2)
    orphan = tmp_path / "q" / "ckpt" / "shared" / "delta-10571057105710571057105710571057"
    orphan.write_bytes(b"x" * 2048)
    os.utime(orphan, (time.time() - 10 * HOUR,) * 2)
    return tmp_path / "q"


def test_deletes_what_is_older_than_the_grace_time(location: Path) -> None:
    done = run("gc", location, "--grace", "9h")
    assert done.status == 0
    assert done.stdout == "shared/delta-10571057105710571057105710571057  2.0 KiB\ndeleted 1 orphan, 2.0 KiB\n"
    assert not (location / "ckpt" / "shared" / "delta-10571057105710571057105710571057").exists()
    assert run("gc", location, "--grace", "0").stdout.startswith("no orphans")
    assert run("list", location).status == 0


@pytest.mark.parametrize(
    "grace", ["11h", "39600", "660m", "660 min", " 0.5 D ", "0.5d", "1d", "39600000ms", "11\tH", None]
)
def test_younger_orphans_stay(location: Path, grace: str | None) -> None:
    done = run("gc", location, *(["--grace", grace] if grace else []))
    assert done.stdout == "no orphans\n"
    assert (location / "ckpt" / "shared" / "delta-10571057105710571057105710571057").exists()


def test_the_grace_time_is_a_day_by_default() -> None:
    assert DEFAULT_GRACE_SECONDS == 24 * HOUR
    assert "24h" in run("gc", "--help").stdout


def test_a_dry_run_deletes_nothing(location: Path) -> None:
    done = run("gc", location, "--grace", "1h", "--dry-run")
    assert (done.status, done.stdout.splitlines()[-1]) == (0, "would delete 1 orphan, 2.0 KiB")
    assert (location / "ckpt" / "shared" / "delta-10571057105710571057105710571057").exists()


def test_json(location: Path) -> None:
    done = run("gc", location, "--grace", "1h", "--json")
    (orphan,) = done.json["orphans"]
    assert (orphan["path"], orphan["size"]) == ("shared/delta-10571057105710571057105710571057", 2048)
    assert orphan["modified"].endswith("Z")
    assert (done.json["location"], done.json["dry_run"], done.json["bytes"]) == (str(location), False, 2048)
    assert done.json["failed"] == []


def test_a_checkpoint_that_cannot_be_read_is_status_1(location: Path) -> None:
    (location / "ckpt" / "chk-2" / "_metadata").write_bytes(b"damaged")
    done = run("gc", location, "--grace", "0", "--json")
    assert done.status == 1
    assert done.error["error"] == "CollectionRefusedError"
    assert done.error["checkpoint_id"] == 2
    assert (location / "ckpt" / "shared" / "delta-10571057105710571057105710571057").exists()


def test_an_orphan_that_cannot_be_deleted_is_status_1(location: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "unlink", _refuse)
    done = run("gc", location, "--grace", "1h")
    assert done.status == 1
    assert "delta-10571057105710571057105710571057: Permission denied" in done.stderr
    assert done.stdout.endswith("found 1 orphan, 2.0 KiB; deleted 0\n")


def _refuse(path: Path, missing_ok: bool = False) -> None:
    raise PermissionError(13, "Permission denied", str(path))


@pytest.mark.parametrize("grace", ["soon", "1 week", "-3", "", "3 0m", "1e3"])
def test_a_grace_time_that_is_none_is_wrong_usage(location: Path, grace: str) -> None:
    done = run("gc", location, "--grace", grace)
    assert done.status == 2
    assert "not a duration" in done.stderr


@pytest.mark.parametrize("grace", ["1", "9m", "599s", "0.5", "0.0001", "1ms"])
def test_a_grace_time_too_short_for_a_running_query_is_wrong_usage(location: Path, grace: str) -> None:
    done = run("gc", location, "--grace", grace)
    assert done.status == 2
    assert "too short" in done.stderr
    assert run("gc", location, "--grace", "10m", "--dry-run").status == 0


def test_a_place_that_is_no_location(tmp_path: Path) -> None:
    assert "no such file" in run("gc", tmp_path / "nowhere").stderr
    done = run("gc", tmp_path)
    assert done.status == 1
    assert "not a checkpoint location" in done.stderr


def test_a_location_without_a_log_is_listed_inspected_and_collected(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    driver = Driver(storage.location, environment=faulty_environment(storage), settings={"store": "standalone"})
    for version in range(1, 12):
        driver.batch(version)
    listed = run("list", tmp_path, "--json")
    assert [(c["id"], c["version"]) for c in listed.json["checkpoints"]] == [(11, 10), (12, 11)]
    assert run("inspect", tmp_path).stdout.startswith("checkpoint 12, ")
    assert run("inspect", tmp_path, "--id", "11").status == 0
    assert run("inspect", tmp_path, "--id", "3").status == 1
    assert run("gc", tmp_path, "--grace", "0").stdout.startswith("no orphans")


def test_what_is_not_ours_is_named_and_left_alone(location: Path) -> None:
    for name in ("payroll.parquet", ".payroll.parquet.crc"):
        (location / "ckpt" / "shared" / name).write_bytes(b"x")
    done = run("gc", location, "--grace", "0")
    assert [line.partition("  ")[0] for line in done.stdout.splitlines()[1:3]] == [
        "shared/.payroll.parquet.crc",
        "shared/payroll.parquet",
    ]
    assert done.stdout.count("left alone") == 2
    assert (location / "ckpt" / "shared" / "payroll.parquet").exists()
    (_, other) = run("gc", location, "--json").json["left_alone"]
    assert (other["path"], other["size"]) == ("shared/payroll.parquet", 1)


def test_a_link_is_refused(location: Path, tmp_path: Path) -> None:
    (location / "ckpt" / "taskowned").symlink_to(tmp_path)
    done = run("gc", location, "--grace", "0", "--json")
    assert (done.status, done.error["error"]) == (1, "LinkedStateError")
    assert (location / "ckpt" / "shared").is_dir()
