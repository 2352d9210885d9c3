"""Export to Flink of a location: its checkpoint, driver and arguments. Other tests beside it judge the rows."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import spark_ckpt
from spark_ckpt.completed import ClaimRecord, RecordFiles, encode_record
from spark_ckpt.completed.processes import identity_of
from spark_ckpt.flink.export.operator_id import operator_id_of
from spark_ckpt.location.errors import CheckpointNotFoundError, LocationInUseError, NotCommittedError
from spark_ckpt.operations.errors import TargetNotEmptyError
from spark_ckpt.operations.savepoint import take_savepoint
from spark_ckpt.spark_files.logs import BatchLog
from spark_ckpt.storage import LocalStorage
from tests.docs.made_up import COMMITS, make_totals

LAST = COMMITS + 1
"""Id of the newest checkpoint."""


@pytest.fixture
def location(tmp_path: Path) -> Path:
    """Location of a stopped query."""
    make_totals(tmp_path / "q", "user")
    return tmp_path / "q"


def export(location: Path, target: Path, **options: Any) -> Any:
    return spark_ckpt.export_savepoint(location, target, **{"key": "string", "uid": "totals", **options})


def rows(place: Path) -> int:
    return len(spark_ckpt.read_state(place).to_pandas())


def test_the_newest_checkpoint(location: Path, tmp_path: Path) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in location.rglob("*"))
    exported = export(location, tmp_path / "s")
    assert (exported.checkpoint_id, exported.batch_id) == (LAST, LAST - 2)
    assert (exported.uid, exported.operator_id) == ("totals", operator_id_of("totals").hex())
    assert exported.states[0].rows == rows(location) == rows(tmp_path / "s")
    assert before == sorted((path, path.stat().st_mtime_ns) for path in location.rglob("*"))


def test_an_earlier_checkpoint(location: Path, tmp_path: Path) -> None:
    assert export(location, tmp_path / "s", id=5).checkpoint_id == 5
    assert export(location / "ckpt" / "chk-6", tmp_path / "t").checkpoint_id == 6
    with pytest.raises(CheckpointNotFoundError):
        export(location, tmp_path / "u", id=99)


def test_a_batch_that_spark_has_not_committed(location: Path, tmp_path: Path) -> None:
    (location / BatchLog.COMMITS.value / str(LAST - 2)).unlink()
    assert export(location, tmp_path / "s").checkpoint_id == LAST - 1
    with pytest.raises(NotCommittedError):
        export(location, tmp_path / "t", id=LAST)


def test_a_savepoint_of_the_query(location: Path, tmp_path: Path) -> None:
    take_savepoint(LocalStorage(location), LocalStorage(tmp_path / "savepoint"))
    exported = export(tmp_path / "savepoint", tmp_path / "s")
    assert exported.checkpoint_id == LAST
    assert rows(tmp_path / "s") == rows(location)


def test_a_running_driver(location: Path, tmp_path: Path) -> None:
    records = RecordFiles(LocalStorage(location))
    claim = next(record for record in records.read_all().values() if isinstance(record, ClaimRecord))
    own = replace(
        claim,
        id=LAST + 1,
        generation=claim.generation + 1,
        owner=replace(claim.owner, pid=os.getpid(), run_id="run"),
        seen=None,
        process=identity_of(os.getpid()),
    )
    LocalStorage(location).write_atomic(records.name(LAST + 1), encode_record(own))
    with pytest.raises(LocationInUseError):
        export(location, tmp_path / "s")
    assert not (tmp_path / "s").exists()
    assert export(location, tmp_path / "s", force=True).checkpoint_id == LAST


def test_a_target_with_files(location: Path, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "file").touch()
    with pytest.raises(TargetNotEmptyError):
        export(location, tmp_path / "s")


def test_an_operator_by_its_id(location: Path, tmp_path: Path) -> None:
    for number, operator_id in enumerate((bytes(range(16)), bytes(range(16)).hex())):
        exported = export(location, tmp_path / str(number), uid=None, operator_id=operator_id)
        assert (exported.uid, exported.operator_id) == (None, bytes(range(16)).hex())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"uid": None}, "give the uid of the operator in the Flink job, or its id"),
        ({"operator_id": bytes(16)}, "and not both"),
        ({"uid": None, "operator_id": bytes(15)}, "an operator id has 16 bytes, not 15"),
        ({"max_parallelism": 0}, "a max parallelism of 0 is not within 1 to 32768"),
        ({"key": "double"}, "'double' is not a valid KeyForm"),
        ({"value": "tuple"}, "'tuple' is not a valid ValueForm"),
    ],
)
def test_wrong_arguments(location: Path, tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        export(location, tmp_path / "s", **options)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("max_parallelism", [1, 128, 129, 1 << 15])
def test_max_parallelism(location: Path, tmp_path: Path, max_parallelism: int) -> None:
    """From 129 on, key groups have two bytes in front of the keys."""
    exported = export(location, tmp_path / "s", max_parallelism=max_parallelism)
    assert exported.max_parallelism == max_parallelism
    assert exported.files == min(2, max_parallelism) + 1
    assert rows(tmp_path / "s") == rows(location)
