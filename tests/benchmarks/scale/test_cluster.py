from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.provider import REPOSITORY

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]


def test_a_join_runs_on_a_cluster(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.scale", "--json", "--partitions", "--queries", "--work", str(tmp_path)]
    command += ["--on-cluster", "3", "--batches", "2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr[-4000:]
    (found,) = json.loads(done.stdout)["cluster"]
    assert (found["executors"], found["partitions"], found["stores"]) == (4, 3, 12)
    assert all(found[name] > 0 for name in ("batch_cpu_ms", "batch_ms", "memory_bytes"))
