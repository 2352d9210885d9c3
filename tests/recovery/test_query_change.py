"""A start from state that means something else to the query."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from spark_ckpt.checkpoint.meaning import QueryMeaning
from spark_ckpt.completed import JobStatus, RecordFiles
from spark_ckpt.recovery.errors import QueryChangedError
from spark_ckpt.storage import LocalStorage
from tests.support.driver import Driver, load
from tests.support.meanings import function, meaning

SUM = meaning(functions=(function("sum(0.v)"),))
OTHER = meaning(functions=(function("sum(0.w)"),))


def claims(location: Path) -> list[int]:
    return sorted(RecordFiles(LocalStorage(location)).read_each())


def query(location: Path, *, means: QueryMeaning | None, **settings: str) -> Driver:
    return Driver(location, settings=settings, meaning=means)


def run(driver: Driver, *versions: int) -> None:
    """Runs batches, and stops the query."""
    for version in versions:
        if version > 1:
            driver.trigger(version)
            load(driver, LocalStorage(Path(driver.location)), version - 1)
        driver.batch(version)
    assert driver.job is not None
    driver.job.close(JobStatus.CANCELLED)


def stopped(location: Path, means: QueryMeaning | None = SUM) -> None:
    run(query(location, means=means), 1, 2)


def test_the_query_is_refused_before_its_claim(tmp_path: Path) -> None:
    stopped(tmp_path)
    before = claims(tmp_path)
    with pytest.raises(
        QueryChangedError, match=r"sum\(w\) in place of sum\(v\).*spark-ckpt evolve.*onQueryChange=warn"
    ):
        query(tmp_path, means=OTHER).trigger(3)
    assert claims(tmp_path) == before
    run(query(tmp_path, means=SUM), 3)


def test_a_setting_makes_it_a_warning_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stopped(tmp_path)
    with caplog.at_level(logging.WARNING):
        run(query(tmp_path, means=OTHER, onQueryChange="warn"), 3)
    assert "sum(w) in place of sum(v)" in caplog.text
    run(query(tmp_path, means=OTHER), 4)  # the new meaning is recorded


def test_without_a_recorded_meaning_any_query_starts(tmp_path: Path) -> None:
    stopped(tmp_path, means=None)
    run(query(tmp_path, means=OTHER), 3)


def test_a_run_without_a_meaning_keeps_the_recorded_one(tmp_path: Path) -> None:
    stopped(tmp_path)
    run(query(tmp_path, means=None), 3)
    with pytest.raises(QueryChangedError):
        query(tmp_path, means=OTHER).trigger(4)


def test_after_an_upgrade_of_spark_it_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stopped(tmp_path)
    upgraded = query(tmp_path, means=OTHER)
    made = upgraded.make_trigger
    upgraded.make_trigger = lambda version: replace(made(version), spark_version="4.3.0")  # type: ignore[method-assign]
    with caplog.at_level(logging.WARNING):
        run(upgraded, 3)
    assert "Spark was 4.2.0 before" in caplog.text
    assert "sum(w) in place of sum(v)" in caplog.text
