from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.demo.layout import Batches, Layout, files_done, read_batches
from benchmarks.object_store import ObjectStore
from spark_ckpt.spark_files.logs import SparkLog
from spark_ckpt.storage import LocalStorage

OFFSETS = 'v1\n{"batchWatermarkMs":0,"conf":{}}\n{"logOffset":4}\n'


@pytest.fixture
def log(tmp_path: Path) -> SparkLog:
    return SparkLog(LocalStorage(tmp_path))


def test_a_location_without_logs_has_no_batches(log: SparkLog) -> None:
    batches = read_batches(log)
    assert batches == Batches(-1, -1)
    assert not batches.running
    assert files_done(log, batches.committed) == 0


def test_a_planned_batch_runs_until_it_is_committed(tmp_path: Path, log: SparkLog) -> None:
    for kind, names in (("offsets", ("9", "10", ".10.crc", "10.tmp")), ("commits", ("8", "9"))):
        (tmp_path / kind).mkdir()
        for name in names:
            (tmp_path / kind / name).write_text(OFFSETS)
    assert read_batches(log) == Batches(10, 9)
    assert read_batches(log).running
    (tmp_path / "commits" / "10").touch()
    assert not read_batches(log).running


def test_counts_the_files_behind_a_batch(tmp_path: Path, log: SparkLog) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "4").write_text(OFFSETS + "-\n")
    (tmp_path / "offsets" / "0").write_text("v1\n{}\n-\n-\n")
    assert files_done(log, 4) == 5
    assert files_done(log, 0) == 0


def test_counts_the_files_whose_rows_a_query_has_read_from_its_topics(tmp_path: Path, log: SparkLog) -> None:
    (tmp_path / "offsets").mkdir()
    for batch, (flights, weather) in enumerate([(4, 90), (5, 90), (10, 90)]):
        offsets = [
            json.dumps({"flights": {"0": flights, "1": flights}}),
            json.dumps({"weather": {"0": weather, "1": 0}}),
        ]
        (tmp_path / "offsets" / str(batch)).write_text("\n".join(["v1", "{}", *offsets]))
    assert [files_done(log, batch, (9, 10, 1)) for batch in (-1, 0, 1, 2)] == [0, 0, 1, 3]


def test_checkpoints_are_in_the_work_folder_unless_they_are_elsewhere(tmp_path: Path) -> None:
    assert Layout(tmp_path).checkpoint("aircraft") == str(tmp_path / "checkpoints" / "aircraft")
    Layout(tmp_path).storage("aircraft").write_atomic("metadata", b"x")
    assert (tmp_path / "checkpoints" / "aircraft" / "metadata").read_bytes() == b"x"
    assert Layout(tmp_path, "s3a://bucket/demo").checkpoint("aircraft") == "s3a://bucket/demo/aircraft"


def test_a_location_on_s3_is_found_by_the_settings_of_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ObjectStore(0) as store:
        for name in store.environment():
            monkeypatch.delenv(name, raising=False)
        storage = Layout(tmp_path, store.location("demo"), store.conf()).storage("aircraft")
        storage.write_atomic("offsets/4", (OFFSETS + "-\n").encode())
        log = SparkLog(storage)
        assert read_batches(log) == Batches(4, -1)
        assert files_done(log, 4) == 5
