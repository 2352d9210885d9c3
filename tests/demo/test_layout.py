from __future__ import annotations

from pathlib import Path

from benchmarks.demo.layout import Batches, files_done, read_batches

OFFSETS = 'v1\n{"batchWatermarkMs":0,"conf":{}}\n{"logOffset":4}\n'


def test_a_location_without_logs_has_no_batches(tmp_path: Path) -> None:
    batches = read_batches(tmp_path)
    assert batches == Batches(-1, -1)
    assert not batches.running
    assert files_done(tmp_path, batches.committed) == 0


def test_a_planned_batch_runs_until_it_is_committed(tmp_path: Path) -> None:
    for log, names in (("offsets", ("9", "10", ".10.crc", "10.tmp")), ("commits", ("8", "9"))):
        (tmp_path / log).mkdir()
        for name in names:
            (tmp_path / log / name).write_text(OFFSETS)
    assert read_batches(tmp_path) == Batches(10, 9)
    assert read_batches(tmp_path).running
    (tmp_path / "commits" / "10").touch()
    assert not read_batches(tmp_path).running


def test_counts_the_files_behind_a_batch(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "4").write_text(OFFSETS + "-\n")
    (tmp_path / "offsets" / "0").write_text("v1\n{}\n-\n-\n")
    assert files_done(tmp_path, 4) == 5
    assert files_done(tmp_path, 0) == 0
