from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from spark_ckpt.location.import_marker import MARKER, ImportMarker
from spark_ckpt.operations.doctor import Status, Verdict
from spark_ckpt.spark_files import rollbacks
from spark_ckpt.storage import LocalStorage
from tests.operations.doctor.examined import LOST, examined, only
from tests.support.queries import make_query
from tests.support.stopped_query import OFFSETS, StoppedQuery


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    make_query(tmp_path)
    return LocalStorage(tmp_path)


def test_orphans(storage: LocalStorage, tmp_path: Path) -> None:
    now_ms = time.time_ns() // 1_000_000
    before = only(examined(storage, now_ms), "files")
    assert (before.status, before.data["orphans"]) == (Status.OK, 0)
    storage.write_atomic(LOST, b"123")
    os.utime(tmp_path / LOST, (time.time() - 90_000,) * 2)
    found = only(examined(storage, now_ms), "files")
    assert (found.status, found.data["orphans"], found.data["orphan_bytes"]) == (Status.WARNING, 1, 3)
    assert found.data["files"] == before.data["files"] + 1
    assert found.command == f"spark-ckpt gc {tmp_path}"
    assert (tmp_path / LOST).exists()


def test_files_of_others_are_no_warning(storage: LocalStorage) -> None:
    storage.write_atomic("ckpt/notes.txt", b"x")
    found = only(examined(storage), "files")
    assert (found.status, found.data["foreign"]) == (Status.OK, 1)
    assert "notes.txt" in found.answer


def test_an_unfinished_rollback(storage: LocalStorage) -> None:
    begun = rollbacks.begin(storage, 3)
    report = examined(storage)
    found = only(report, "unfinished operations")
    assert (report.verdict, found.status) == (Verdict.DAMAGED, Status.PROBLEM)
    assert found.data["log_epochs"] == [1]
    assert found.command == f"spark-ckpt rollback {storage.location} --id 5"  # the checkpoint of batch 3
    rollbacks.finish(storage, begun)
    assert only(examined(storage), "unfinished operations").status is Status.OK


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"batch_id": 99}'])
def test_an_unfinished_rollback_whose_marker_does_not_help(storage: LocalStorage, content: bytes) -> None:
    storage.write_atomic(rollbacks.marker(1), content)
    found = only(examined(storage), "unfinished operations")
    assert (found.status, found.error) == (Status.PROBLEM, None)
    assert found.command == f"spark-ckpt rollback {storage.location} --id ID"


def test_an_unfinished_import(storage: LocalStorage) -> None:
    marker = ImportMarker(3, "RocksDB", None, {})
    storage.write_atomic(MARKER, marker.encode())
    found = only(examined(storage), "unfinished operations")
    assert (found.status, found.data["operation"]) == (Status.WARNING, "import")


def test_an_unfinished_rescale(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path)
    assert only(examined(query.storage), "unfinished operations").status is Status.OK
    query.log.add_offsets(7, OFFSETS.with_shuffle_partitions(12))
    found = only(examined(query.storage), "unfinished operations")
    assert found.status is Status.WARNING
    assert found.command == f"spark-ckpt rescale {tmp_path} --partitions 12"


def test_a_batch_that_has_begun_is_no_rescale(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path)
    query.log.add_offsets(7, OFFSETS)
    assert only(examined(query.storage), "unfinished operations").status is Status.OK
