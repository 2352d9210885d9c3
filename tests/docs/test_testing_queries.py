"""The tests on the page about tests, run by pytest in a folder of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, REPOSITORY, blocks

PAGE = DOCS / "testing-queries.md"


@pytest.mark.spark
def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    for block in blocks(PAGE, "python"):
        name = block.splitlines()[0].removeprefix("# ")
        assert name.endswith(".py")
        (tmp_path / name).write_text(block)
    path = os.pathsep.join([str(REPOSITORY), str(tmp_path)])
    environment = {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "3 passed" in done.stdout
