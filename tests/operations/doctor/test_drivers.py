from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from spark_ckpt.completed import OPERATION, ClaimRecord, FilesystemCompletedCheckpointStore, Owner, RecordFiles
from spark_ckpt.completed.records import encode_record
from spark_ckpt.operations.doctor import Status
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.storage import LocalStorage
from tests.operations.doctor.examined import examined, only
from tests.support.queries import ENDED, Query, make_query

HERE = Owner(socket.gethostname(), os.getpid(), "token", "query", "run-9")


@pytest.fixture
def query(tmp_path: Path) -> Query:
    return make_query(tmp_path)


def claim(storage: LocalStorage, owner: Owner = HERE, hung: int | None = None) -> None:
    """A driver claims the location."""
    store = FilesystemCompletedCheckpointStore(storage, owner)
    store.hung = hung
    store.recover()
    store.claim()


def test_a_driver_that_is_alive(query: Query, tmp_path: Path) -> None:
    claim(LocalStorage(tmp_path))
    found = only(examined(query.storage), "driver")
    assert found.status is Status.OK
    assert found.answer.startswith(f"alive: process {os.getpid()} on {HERE.host} (run run-9), generation 2, since ")
    assert (found.data["holder"], found.data["owner"]["pid"]) == ("alive", os.getpid())
    takeovers = only(examined(query.storage), "takeovers")
    assert takeovers.data["fenced"]["pid"] == ENDED


def test_a_driver_that_ended_between_two_batches(query: Query) -> None:
    found = only(examined(query.storage), "driver")
    assert (found.status, found.data["holder"]) == (Status.OK, "none")
    assert "between two batches" in found.answer


def test_a_driver_that_ended_in_a_batch(query: Query) -> None:
    query.start(6)
    found = only(examined(query.storage), "driver")
    assert found.status is Status.WARNING
    assert "in the middle of batch 6" in found.answer
    assert found.advice is not None
    assert "repeats batch 6" in found.advice


def test_a_driver_elsewhere(query: Query) -> None:
    files = RecordFiles(query.storage)
    (record_id, record) = next(iter(files.read_all().items()))
    assert isinstance(record, ClaimRecord)
    elsewhere = replace(record, owner=replace(record.owner, host="other"), process=None)
    query.storage.write_atomic(files.name(record_id), encode_record(elsewhere))
    found = only(examined(query.storage), "driver")
    assert found.status is Status.UNKNOWN
    assert "look on other" in found.answer


def test_a_command_holds_nothing(query: Query) -> None:
    roll_back(query.storage, 6)
    found = only(examined(query.storage), "driver")
    assert found.status is Status.OK
    assert found.data["owner"]["run_id"].startswith(OPERATION)


def test_drivers_that_start_again_and_again(query: Query, tmp_path: Path) -> None:
    for restart in range(2):
        claim(LocalStorage(tmp_path), replace(HERE, run_id=f"run-{restart}"))
    assert only(examined(query.storage), "takeovers").status is Status.OK
    claim(LocalStorage(tmp_path))
    found = only(examined(query.storage), "takeovers")
    assert found.status is Status.WARNING
    assert found.data["claims_since_checkpoint"] == 3


def test_a_coordinator_that_hung(query: Query, tmp_path: Path) -> None:
    found = only(examined(query.storage), "coordinator")
    assert (found.status, found.data) == (Status.OK, {"hung": 0})
    claim(LocalStorage(tmp_path), hung=2)
    found = only(examined(query.storage), "coordinator")
    assert (found.status, found.data) == (Status.WARNING, {"hung": 2})
    assert "killed and replaced it 2 times, because it gave no sign of life" in found.answer
    assert found.advice is not None
    assert f"log of the driver on {HERE.host}" in found.advice
    claim(LocalStorage(tmp_path))  # another driver
    assert only(examined(query.storage), "coordinator").status is Status.OK


def test_a_store_without_claims(tmp_path: Path) -> None:
    query = make_query(tmp_path, settings={"store": "standalone", "inlineThreshold": "0"})
    report = examined(query.storage)
    assert only(report, "driver").status is Status.UNKNOWN
    assert only(report, "last checkpoint").data["batch_id"] == 5
