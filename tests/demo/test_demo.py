from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import s3fs

from benchmarks.demo.layout import Layout
from benchmarks.demo.queries import QUERIES
from benchmarks.demo.session import REPOSITORY
from spark_ckpt.location.find import CheckpointLocation
from tests.support.cli import run as run_command
from tests.support.invariants import assert_invariants
from tests.support.provider import provider_under_test

pytestmark = [pytest.mark.spark, pytest.mark.slow]


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY)}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=REPOSITORY,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=1500,
    )


@pytest.mark.long
def test_a_short_run_is_equal_and_the_judge_is_not_blind(tmp_path: Path) -> None:
    provider = provider_under_test().name.removesuffix("-changelog")
    result = run(
        "benchmarks.demo", "--work", str(tmp_path), "--provider", provider, "--kills", "1", "--days-per-file", "92"
    )
    assert result.returncode == 0, result.stdout[-4000:]
    assert "1 kills in the middle of a batch" in result.stdout

    # One more flight in the input than the stream has read: the judge must report it for every affected result.
    layout = Layout(tmp_path)
    flight = pq.read_table(layout.flights / "0000.parquet").slice(100, 1)
    pq.write_table(flight, layout.flights / "again.parquet")
    result = run("benchmarks.demo.compare", "--work", str(tmp_path), "--result", str(layout.verdicts))
    assert result.returncode == 0, result.stderr[-4000:]
    verdicts = {verdict["query"]: verdict for verdict in json.loads(layout.verdicts.read_text())}
    found = {query: (verdict["missing"], verdict["surplus"]) for query, verdict in verdicts.items()}
    assert found == {"aircraft": (1, 1), "weather": (1, 0), "routes": (0, 0)}


@pytest.mark.long
def test_a_short_run_whose_queries_change_is_equal(tmp_path: Path) -> None:
    result = run("benchmarks.demo", "--work", str(tmp_path), "--evolve", "--kills", "1", "--days-per-file", "92")
    assert result.returncode == 0, result.stdout[-4000:]
    assert "1 kills in the middle of a batch" in result.stdout
    words = " ".join(result.stdout.split())
    assert "THEN air_time END): begins without input" in words
    assert words.count("begins at its own start") == len(QUERIES)


@pytest.mark.long
def test_a_short_run_on_s3_is_equal_and_leaves_its_server_up(
    s3a: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The final output suffices to use the checkpoints from another shell."""
    command = [sys.executable, "-m", "benchmarks.demo", "--s3", "--serve", "--work", str(tmp_path)]
    command += ["--kills", "1", "--days-per-file", "122"]
    lines: list[str] = []
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as demo:
        try:
            assert demo.stdout is not None
            for line in demo.stdout:
                lines.append(line.strip())
                if lines[-1].startswith("spark-ckpt "):
                    break
            output = "\n".join(lines)[-4000:]
            (result,) = [line for line in lines if line.startswith("1 kills in the middle of a batch")] or [output]
            assert result.endswith(": equal, to the row"), result
            variables = [
                word.split("=", 1) for line in lines if line.startswith("export ") for word in line.split()[1:]
            ]
            for name, value in variables:
                monkeypatch.setenv(name, value)
            s3fs.S3FileSystem.clear_instance_cache()  # cached instances hold the environment of another test
            root, _, inspected = lines[-1].split()[-1].rpartition("/")
            assert inspected in [query.name for query in QUERIES]
            for query in QUERIES:
                location = f"{root}/{query.name}"
                checkpoints = run_command("list", location, "--json").json["checkpoints"]
                assert (
                    assert_invariants(CheckpointLocation.open(location).of_query()).checkpoints == len(checkpoints) >= 3
                )
                assert not Path(Layout(tmp_path).checkpoint(query.name)).exists()
        finally:
            demo.send_signal(signal.SIGTERM)
    assert demo.returncode == 128 + signal.SIGTERM
