"""This release reads the golden locations of earlier releases, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.operations.restore import restore
from spark_ckpt.operations.verify import verify
from spark_ckpt.storage import LocalStorage
from tests.golden.locations import Golden, golden_locations, state_rows
from tests.golden.queries import CHECKPOINT, SAVEPOINT
from tests.support.cli import run

GOLDEN = golden_locations()


@pytest.mark.parametrize("golden", GOLDEN, ids=str)
def test_is_whole_and_has_the_rows_that_were_written(golden: Golden, tmp_path: Path) -> None:
    location = golden.copy_to(tmp_path)
    if golden.query.root == SAVEPOINT:
        restore(LocalStorage(location), LocalStorage(tmp_path / CHECKPOINT))
        location = tmp_path / CHECKPOINT
    report = verify(LocalStorage(location))
    assert report.is_whole, report
    assert state_rows(golden.query, location) == golden.summary["state"]
    assert all(golden.summary["state"]), "a table without rows proves nothing"


@pytest.mark.parametrize("golden", GOLDEN, ids=str)
def test_is_listed_and_inspected(golden: Golden, tmp_path: Path) -> None:
    location = golden.copy_to(tmp_path)
    if golden.query.root == CHECKPOINT:
        assert run("list", location, "--json").json["checkpoints"]
    assert run("inspect", location, "--streams", "--json").json["operator_states"]
