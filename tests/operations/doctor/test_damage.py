from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.operations.doctor import Status, Verdict
from spark_ckpt.storage import LocalStorage
from tests.operations.damaged import change, newest_entry
from tests.operations.doctor.examined import examined, only
from tests.support.queries import make_query


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    """Location with checkpoints 4 to 7, of batches 2 to 5."""
    make_query(tmp_path)
    return LocalStorage(tmp_path)


def test_a_damaged_segment(storage: LocalStorage) -> None:
    entry = newest_entry(storage)
    change(storage, f"ckpt/{entry.path}", int(entry.offsets[0]) + 20, b"\xff\xfe")
    report = examined(storage)
    found = only(report, "state")
    assert (report.verdict, found.status) == (Verdict.DAMAGED, Status.PROBLEM)
    assert f"ckpt/{entry.path}" in found.answer
    assert (found.data["read"], found.data["restorable"]) == ([7, 6], [6])
    assert found.command == f"spark-ckpt rollback {storage.location} --id 6"


def test_a_missing_file(storage: LocalStorage) -> None:
    storage.delete(f"ckpt/{newest_entry(storage).path}")
    report = examined(storage)
    assert report.verdict is Verdict.DAMAGED
    assert "missing" in only(report, "state").answer
    assert only(report, "spark logs").status is Status.OK


def test_nothing_that_can_be_restored(storage: LocalStorage) -> None:
    for checkpoint_id in range(4, 8):
        storage.delete(f"ckpt/chk-{checkpoint_id}/_metadata")
    found = only(examined(storage), "state")
    assert (found.status, found.data["restorable"]) == (Status.PROBLEM, [])
    assert found.advice is not None
    assert "backup" in found.advice


def test_damage_of_an_older_checkpoint_shows_only_with_everything(storage: LocalStorage) -> None:
    storage.delete("ckpt/chk-5/_metadata")
    assert only(examined(storage), "state").status is Status.OK
    found = only(examined(storage, everything=True), "state")
    assert found.status is Status.PROBLEM
    assert found.command == f"spark-ckpt savepoint {storage.location} NEW_DIRECTORY --id 7"


def test_spark_logs_that_contradict_the_checkpoints(storage: LocalStorage) -> None:
    storage.delete("offsets/5")
    report = examined(storage)
    assert only(report, "state").status is Status.OK
    found = only(report, "spark logs")
    assert (report.verdict, found.status) == (Verdict.DAMAGED, Status.PROBLEM)
    assert found.data["damages"]


def test_a_batch_that_a_start_repeats(storage: LocalStorage) -> None:
    assert "a start continues after it" in only(examined(storage), "spark logs").answer
    storage.delete("commits/5")
    found = only(examined(storage), "spark logs")
    assert (found.status, found.data["last_started"], found.data["last_committed"]) == (Status.OK, 5, 4)
