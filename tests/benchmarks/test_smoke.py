from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.provider import REPOSITORY
from tests.support.spark_version import DEFAULT, MINOR

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(MINOR != DEFAULT, reason=f"the floor provider is compiled for Spark {DEFAULT}, this is {MINOR}"),
]


def bench(folder: Path, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.stores", "--json", "--results", str(folder / "results")]
    command += ["--work", str(folder / "work"), "--rounds", "1", "--batches", "2", "--scale", "0.001", "--heap", "512m"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.long
def test_measures_ours_and_the_floor_and_goes_on_where_it_was(tmp_path: Path) -> None:
    found = bench(tmp_path, "--only", "count-1", "--providers", "ckpt", "floor")
    figures = {(one["provider"], one["measure"]): one for one in found["figures"]}
    for provider in ("ckpt", "floor"):
        assert figures[provider, "batch_ms"]["count"] == 2
        assert figures[provider, "batch_ms"]["median"] >= figures[provider, "batch_ms"]["low"] > 0
    assert found["machine"]["spark"].startswith(MINOR)
    assert list((tmp_path / "work").iterdir()) == [tmp_path / "work" / "input"]

    lines = (tmp_path / "results" / "runs.jsonl").read_text().splitlines()
    assert [json.loads(line)["rows"] for line in lines] == [1000, 1000]
    again = bench(tmp_path, "--only", "count-1", "--providers", "ckpt", "floor")
    assert again["figures"] == found["figures"]
    assert (tmp_path / "results" / "runs.jsonl").read_text().splitlines() == lines


@pytest.mark.long
def test_a_short_run_has_batches_a_restart_and_a_start_in_another_jvm(tmp_path: Path) -> None:
    found = bench(tmp_path, "--only", "short", "--providers", "ckpt")
    counts = {one["measure"]: one["count"] for one in found["figures"]}
    assert [counts[name] for name in ("batch_ms", "state_ms", "restart_ms", "fresh_ms")] == [2, 2, 1, 1]


@pytest.mark.long
def test_nexmark_gives_the_batch_answer_for_events_of_a_topic(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.nexmark", "--json", "--kafka", "--only", "q8", "--providers", "ckpt"]
    command += ["--events", "2000", "--warmups", "2", "--measured", "3", "--rounds", "1", "--heap", "1g"]
    command += ["--results", str(tmp_path / "results"), "--work", str(tmp_path / "work")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    counts = {one["measure"]: one["count"] for one in found["figures"]}
    assert (counts["batch_ms"], counts["restart_ms"]) == (3, 1)
    assert found["machine"]["feed"] == "kafka"
    answers = [json.loads(line)["answer"] for line in (tmp_path / "results" / "runs.jsonl").read_text().splitlines()]
    assert answers[0] == answers[1] != []
