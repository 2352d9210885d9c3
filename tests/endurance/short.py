"""The short form, in its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.endurance.samples import FIGURES
from tests.support.provider import REPOSITORY

BATCHES = 60
RUNS = 54
"""Number of runs; a third of them fills the log with the claims that it keeps."""


def run_short(folder: Path) -> list[str]:
    """Plays the short form.

    Returns:
        The count figures that grow.

    Raises:
        RuntimeError: it did not finish.
    """
    command = [sys.executable, "-m", "tests.endurance", "--json", f"--batches={BATCHES}", f"--runs={RUNS}"]
    done = subprocess.run(
        [*command, "--work", str(folder / "endurance")],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout.startswith("{"):
        raise RuntimeError(f"it ended with status {done.returncode}:\n{done.stderr[-4000:]}")
    verdicts = json.loads(done.stdout)["verdicts"]
    assert {verdict["key"] for verdict in verdicts} == set(FIGURES)
    return [
        f"{verdict['phase']}: {FIGURES[verdict['key']].name} grow from {verdict['middle']:g} to {verdict['last']:g}"
        for verdict in verdicts
        if FIGURES[verdict["key"]].is_exact and not verdict["is_flat"]
    ]
