from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.stores.results import Record, ResultFolder
from tests.benchmarks.records import record


def test_a_record_comes_back_as_it_was() -> None:
    one = record("join", "hdfs", 2, rows=7, load=1.5, batch_ms=[1, 2.5])
    assert Record.of_json(one.to_json()) == one


def test_a_run_comes_back_equal_and_hashes_alike() -> None:
    """A resumed plan recognizes the runs that are already done."""
    one = record("coordinator", "ckpt", coordinator_ms=[1.0])
    assert {Record.of_json(one.to_json()).run} == {one.run}


def test_keeps_records_in_their_order(tmp_path: Path) -> None:
    records = [record("count-1", provider, batch_ms=[1.0]) for provider in ("hdfs", "ckpt")]
    folder = ResultFolder(tmp_path / "a" / "b")
    assert folder.records() == []
    for one in records:
        folder.append(one)
    assert ResultFolder(tmp_path / "a" / "b").records() == records


def test_logs_of_runs_are_apart(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path)
    one = record("count-1", "ckpt").run
    logs = {folder.log(run) for run in (one, replace(one, round=1), replace(one, provider="hdfs"))}
    assert len(logs) == 3
    assert all(log.parent.is_dir() for log in logs)
