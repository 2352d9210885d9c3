"""The examination as a whole: its verdict, and checks that fail."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_ckpt.completed import RecordFiles
from spark_ckpt.operations.doctor import Finding, Status, Verdict
from spark_ckpt.operations.doctor.evidence import Evidence
from spark_ckpt.operations.doctor.examination import CHECKS, Check
from spark_ckpt.operations.savepoint import take_savepoint
from spark_ckpt.storage import LocalStorage
from tests.operations.doctor.examined import examined, only
from tests.storage.faulty import FaultyStorage
from tests.support.queries import Query, make_query


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    """Location with checkpoints 4 to 7, of batches 2 to 5."""
    make_query(tmp_path / "q")
    return LocalStorage(tmp_path / "q")


def test_a_whole_location_is_healthy(storage: LocalStorage) -> None:
    report = examined(storage)
    assert report.verdict is Verdict.HEALTHY
    assert list(report.next_steps()) == []
    assert {finding.name for finding in report.findings} == {check.name for check in CHECKS} | {"exclusive create"}


@pytest.mark.parametrize("probe", [False, True])
def test_nothing_is_left_behind(storage: LocalStorage, tmp_path: Path, probe: bool) -> None:
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    examined(storage, everything=True, probe=probe)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_without_a_probe_no_request_writes(storage: LocalStorage) -> None:
    counting = FaultyStorage(storage)
    examined(counting)
    assert {operation for operation, _ in counting.log} <= {"read", "list", "size", "exists", "read_range"}


def test_a_query_that_has_not_completed_a_checkpoint(tmp_path: Path) -> None:
    query = Query(LocalStorage(tmp_path))
    assert examined(query.storage).verdict is Verdict.HEALTHY
    query.start(0)
    query.driver.trigger(1)
    report = examined(query.storage)
    assert only(report, "last checkpoint").data["id"] is None
    assert only(report, "driver").status is Status.WARNING  # the process of these drivers has ended
    assert report.verdict is Verdict.ATTENTION


def test_a_savepoint_has_neither_driver_nor_orphans(storage: LocalStorage, tmp_path: Path) -> None:
    copy = LocalStorage(tmp_path / "savepoint")
    take_savepoint(storage, copy)
    report = examined(copy, probe=True)
    assert report.verdict is Verdict.HEALTHY
    assert only(report, "kind").data == {"kind": "savepoint"}
    assert not {"driver", "files", "exclusive create"} & {finding.name for finding in report.findings}
    (name,) = [f"ckpt/shared/{file.name}" for file in copy.list("ckpt/shared")][:1]
    copy.delete(name)
    assert examined(copy).verdict is Verdict.DAMAGED


def test_a_check_that_fails_leaves_the_others(storage: LocalStorage) -> None:
    def fail(evidence: Evidence) -> Iterator[Finding]:
        yield from ()
        raise ZeroDivisionError

    report = examined(storage, checks=(Check("broken", fail), *CHECKS))
    assert (only(report, "broken").status, only(report, "broken").error) == (Status.UNKNOWN, "ZeroDivisionError")
    assert report.verdict is Verdict.IN_DOUBT
    assert only(report, "state").status is Status.OK


def test_a_storage_that_fails_once(storage: LocalStorage) -> None:
    faulty = FaultyStorage(storage)
    faulty.fail("list", "ckpt/rollbacks")
    report = examined(faulty)
    assert report.verdict is Verdict.IN_DOUBT
    failed = [finding for finding in report.findings if finding.error == "StorageError"]
    assert failed
    assert failed[0].command == f"spark-ckpt doctor {storage.location}"


def test_a_damaged_record_is_damage(storage: LocalStorage) -> None:
    name = RecordFiles(storage).name(7)
    storage.write_atomic(name, storage.read(name)[:-2])
    report = examined(storage)
    assert report.verdict is Verdict.DAMAGED
    assert storage.describe(name) in only(report, "state").answer
    assert only(report, "last checkpoint").data["id"] == 6


def test_damage_counts_more_than_doubt(storage: LocalStorage) -> None:
    shutil.rmtree(Path(storage.location, "ckpt", "shared"))
    report = examined(storage)
    assert report.verdict is Verdict.DAMAGED
    assert only(report, "files").error == "CollectionRefusedError"
