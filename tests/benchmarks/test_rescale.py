from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.provider import REPOSITORY
from tests.support.spark_version import since

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def bench(folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.rescale", "--json", "--results", str(folder / "results")]
    command += ["--work", str(folder / "work"), "--keys", "1000", "--partitions", "12", "--rounds", "1"]
    done = subprocess.run([*command, "--heap", "1g"], capture_output=True, text=True, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.long
@since("4.2", "a repartition of its own to compare with")
def test_measures_ours_and_sparks_own_and_goes_on_where_it_was(tmp_path: Path) -> None:
    found = bench(tmp_path)
    figures = {(one["provider"], one["measure"]): one["median"] for one in found["figures"]}
    assert set(figures) == {(p, m) for p in ("ckpt", "rocksdb") for m in ("rescale_ms", "written_bytes")}
    assert min(figures.values()) > 0
    lines = (tmp_path / "results" / "runs.jsonl").read_text().splitlines()
    assert [json.loads(line)["rows"] for line in lines] == [1000, 1000], "a row was lost on the way"
    assert (tmp_path / "results" / "to-12.png").stat().st_size > 0
    assert bench(tmp_path)["figures"] == found["figures"]
    assert (tmp_path / "results" / "runs.jsonl").read_text().splitlines() == lines
