"""The site contains every page, and every link and anchor resolves."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, REPOSITORY
from tests.support.spark_version import DEFAULT


@pytest.mark.skipif(find_spec("mkdocs") is None, reason=f"mkdocs is in the environment of Spark {DEFAULT} only")
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    result = subprocess.run(build, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    site = tmp_path / "site"
    built = {path.parent.relative_to(site).as_posix() for path in site.rglob("index.html")}
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")}
    assert built == {page.removesuffix("index").rstrip("/") or "." for page in pages}
