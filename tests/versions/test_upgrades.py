"""A query continues under the next Spark minor version, and under the one before, to the batch answer."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from spark_ckpt.operations.verify import verify
from spark_ckpt.storage import LocalStorage
from tests.golden.locations import merged
from tests.golden.queries import CHECKPOINT
from tests.support.provider import REPOSITORY
from tests.support.sinks import assert_same_rows
from tests.support.spark_version import ALL, order, python_of
from tests.versions.driver import BY_NAME, Report

PATIENCE = 1500

NAMES = ("files", "inline-with-state-ids", "join", "join-in-column-families", "transform-with-state")
LONG = ("files", "join-in-column-families")
"""Queries whose state others have too."""

Reports = dict[str, list[Report]]
"""Reports of each query, in the order in which the Sparks ran it."""

UP, DOWN = ALL, ALL[::-1]


def run_chain(folder: Path, minors: list[str], names: Sequence[str]) -> Reports:
    """Runs queries under one Spark after the other; each Spark gets its part of the input."""
    chains = {name: [m for m in minors if order(m) >= order(BY_NAME[name].since)] for name in names}
    reports: Reports = {name: [] for name in names}
    for minor in minors:
        out = folder / f"{minor}.json"
        command = [str(python_of(minor)), "-m", "tests.versions.driver"]
        command += ["--folder", str(folder), "--reports", str(out)]
        for name, chain in chains.items():
            if minor in chain:
                (folder / name).mkdir(parents=True, exist_ok=True)
                command += ["--query", f"{name}:{chain.index(minor)}:{len(chain)}"]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK")}
        done = subprocess.run(
            command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        for name, fields in json.loads(out.read_text()).items():
            reports[name].append(Report(**fields))
    return reports


@pytest.fixture(
    scope="module", params=[pytest.param(UP, id="upgrade"), pytest.param(DOWN, id="downgrade", marks=pytest.mark.long)]
)
def chain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reports]:
    """Folder and reports of the selected queries after all Sparks have run them."""
    folder = tmp_path_factory.mktemp("chain")
    tests = [item for item in request.session.items if isinstance(item, pytest.Function)]
    selected = {test.callspec.params["name"] for test in tests if test.function is test_continues_to_the_batch_answer}
    return folder, run_chain(folder, request.param, [name for name in NAMES if name in selected])


@pytest.mark.xdist_group("upgrades")
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in NAMES])
def test_continues_to_the_batch_answer(name: str, chain: tuple[Path, Reports]) -> None:
    folder, reports = chain
    outputs: dict[int, list[list[str]]] = {}
    answer: list[list[str]] = []
    sparks = [report.spark for report in reports[name]]
    for report in reports[name]:
        assert report.error is None, f"{name} with Spark {report.spark}, of {sparks}: {report.error}"
        assert report.output is not None and report.answer is not None
        answer = report.answer
        assert set(report.output) > set(map(str, outputs)), f"Spark {report.spark} did not run a batch"
        outputs = {int(batch): rows for batch, rows in report.output.items()}
    assert_same_rows(merged(BY_NAME[name], outputs), [tuple(row) for row in answer])
    assert report.state, "Spark's state reader found no rows"
    checked = verify(LocalStorage(folder / name / CHECKPOINT), everything=True)
    assert checked.is_whole, checked
