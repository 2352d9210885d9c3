"""A jar of another Spark minor version, given with --jars, is refused by name in the first line of the error."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from spark_ckpt.jars import FIRST_RELEASES, jar_path
from tests.support.processes import JOBS
from tests.support.provider import REPOSITORY
from tests.support.spark_version import ALL, MINOR

PLACE = ALL.index(MINOR)
NEIGHBOURS = [ALL[place] for place in (PLACE - 1, PLACE + 1) if 0 <= place < len(ALL)]


@pytest.mark.core
@pytest.mark.parametrize("extensions", ["yes", pytest.param("no", marks=pytest.mark.long)])
@pytest.mark.parametrize("minor", NEIGHBOURS)
def test_the_first_line_names_both_versions(minor: str, extensions: str, tmp_path: Path) -> None:
    jar = jar_path(FIRST_RELEASES[minor])
    command = [sys.executable, str(JOBS / "wrong_jar.py"), str(jar), extensions, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=1500)
    found = re.search(r"^FIRST LINE: (.*)$", done.stdout, re.MULTILINE)
    assert found, done.stdout[-2000:] + done.stderr[-4000:]
    assert f"this spark-ckpt jar is for Spark {minor}, but Spark {pyspark.__version__} is running" in found.group(1)
    assert "spark_ckpt.jar_path()" in found.group(1)
    assert not (tmp_path / "checkpoint" / "ckpt").exists()
