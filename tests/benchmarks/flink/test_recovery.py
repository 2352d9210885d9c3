"""Kills and restarts of a program that has checkpoints."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.flink.recovery import SYSTEMS, Subject, flink, recovery_seconds, spark
from benchmarks.flink.releases import DEFAULT
from benchmarks.nexmark.generator import Stream, prepare
from benchmarks.nexmark.running import PARTITIONS
from benchmarks.stores.plan import turned
from benchmarks.stores.runner import RunFailedError
from tests.support.cli import run

COUNTS = """
import os, sys, threading
folder, last = sys.argv[1], int(sys.argv[2])
while (number := len(os.listdir(folder))) <= last:
    threading.Event().wait(0.02)
    open(os.path.join(folder, str(number)), "x").close()
"""
"""A program that makes numbered files in a folder, and ends after the last one."""


def counting(folder: Path, log: Path, last: int) -> Subject:
    folder.mkdir()
    command = [sys.executable, "-c", COUNTS, str(folder), str(last)]
    return Subject(lambda: command, lambda: len(list(folder.iterdir())) - 1, log)


def test_a_program_is_killed_and_continues(tmp_path: Path) -> None:
    subject = counting(tmp_path / "files", tmp_path / "log", last=10_000)
    assert recovery_seconds(subject, enough=3) > 0
    newest = subject.newest()
    assert newest > 3
    assert subject.newest() == newest, "the second run is killed as well"


def test_what_is_done_between_makes_no_checkpoint_that_counts(tmp_path: Path) -> None:
    """As a rescale does, which adds a batch."""
    subject = counting(tmp_path / "files", tmp_path / "log", last=10_000)
    added: list[int] = []

    def between() -> None:
        added.append(subject.newest() + 1)
        (tmp_path / "files" / str(added[0])).touch()

    assert recovery_seconds(replace(subject, between=between), enough=3) > 0
    assert subject.newest() > added[0]


def test_a_program_that_ends_early_is_an_error_with_the_end_of_its_log(tmp_path: Path) -> None:
    subject = counting(tmp_path / "files", tmp_path / "log", last=2)
    with pytest.raises(RunFailedError, match="no checkpoint 5"):
        recovery_seconds(subject, enough=5)


def test_each_round_begins_with_another_system() -> None:
    rounds = [turned(SYSTEMS, number) for number in range(len(SYSTEMS) + 1)]
    assert [systems[0] for systems in rounds] == [*SYSTEMS, SYSTEMS[0]]
    assert all(sorted(systems) == sorted(SYSTEMS) for systems in rounds)


def settings_of(command: Sequence[str]) -> dict[str, str]:
    lines = Path(command[-1]).read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_flink_continues_from_its_newest_complete_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.flink.releases.MODULE", tmp_path)
    DEFAULT.folder.mkdir(parents=True)
    (DEFAULT.folder / "classpath.txt").write_text("a.jar")
    subject = flink("q17", "flink-hashmap", tmp_path, 3, "1g", tmp_path, tmp_path / "log")
    assert subject.newest() == -1
    assert "flink.execution.state-recovery.path" not in settings_of(subject.command())
    for number, name in ((9, "_metadata"), (10, "_metadata"), (11, "of-a-checkpoint-that-is-not-complete")):
        folder = tmp_path / "checkpoints" / "job" / f"chk-{number}"
        folder.mkdir(parents=True)
        (folder / name).touch()
    assert subject.newest() == 10
    found = settings_of(subject.command())
    assert found["flink.execution.state-recovery.path"] == (tmp_path / "checkpoints/job/chk-10").as_uri()
    assert found["checked"] == ""
    more = flink("q17", "flink-hashmap", tmp_path, 3, "1g", tmp_path, tmp_path / "log", doubles=True)
    assert int(settings_of(more.command())["parallelism"]) == 2 * int(found["parallelism"])


@pytest.mark.spark
@pytest.mark.long
def test_a_query_of_spark_continues_after_a_kill(tmp_path: Path) -> None:
    feed = prepare(tmp_path / "input", Stream(1000, 60, 100, seed=3))
    subject = spark("q17", "ckpt", feed, "512m", tmp_path, tmp_path / "log")
    assert recovery_seconds(subject, enough=2) > 0
    assert subject.newest() > 2


@pytest.mark.spark
@pytest.mark.long
def test_a_query_of_spark_continues_with_twice_as_many_partitions(tmp_path: Path) -> None:
    feed = prepare(tmp_path / "input", Stream(1000, 8, 100, seed=3))
    subject = spark("q17", "ckpt", feed, "512m", tmp_path, tmp_path / "log", doubles=True)
    assert recovery_seconds(subject, enough=3) > 0
    states = run("inspect", tmp_path / "checkpoint", "--json").json["operator_states"]
    assert {one["parallelism"] for one in states if one["source"] is None} == {2 * PARTITIONS}
