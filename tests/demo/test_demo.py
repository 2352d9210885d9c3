from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.demo.layout import Layout
from benchmarks.demo.session import REPOSITORY
from tests.support.provider import provider_under_test

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=500
    )


def test_a_short_run_is_equal_and_the_judge_is_not_blind(tmp_path: Path) -> None:
    provider = provider_under_test().name.removesuffix("-changelog")
    result = run(
        "benchmarks.demo", "--work", str(tmp_path), "--provider", provider, "--kills", "1", "--days-per-file", "92"
    )
    assert result.returncode == 0, result.stdout[-4000:]
    assert "1 kills in the middle of a batch" in result.stdout

    # One more flight in the input than the stream has seen: the judge has to find it in every result it belongs to.
    layout = Layout(tmp_path)
    flight = pq.read_table(layout.flights / "0000.parquet").slice(100, 1)
    pq.write_table(flight, layout.flights / "again.parquet")
    result = run("benchmarks.demo.compare", "--work", str(tmp_path), "--result", str(layout.verdicts))
    assert result.returncode == 0, result.stderr[-4000:]
    verdicts = {verdict["query"]: verdict for verdict in json.loads(layout.verdicts.read_text())}
    found = {query: (verdict["missing"], verdict["surplus"]) for query, verdict in verdicts.items()}
    assert found == {"aircraft": (1, 1), "weather": (1, 0), "routes": (0, 0)}
