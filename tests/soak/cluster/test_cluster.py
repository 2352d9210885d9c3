from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.provider import REPOSITORY


@pytest.mark.spark
@pytest.mark.slow
def test_queries_stay_in_order_on_a_cluster_whose_merges_and_bases_are_interrupted(tmp_path: Path) -> None:
    """The short form of `make soak-cluster`, as a driver of its own."""
    command = [sys.executable, "-m", "tests.soak.cluster", "--short", "--work", str(tmp_path), "--seed", "0"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=1700)
    log = tmp_path / "driver.log"
    tail = log.read_text(errors="replace")[-4000:] if log.exists() else ""
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{tail}"
