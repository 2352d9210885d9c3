"""A Python environment with spark-ckpt, packed by venv-pack for `spark-submit --archives`.

It is what `pip install spark-ckpt` makes, without the network: the package and its dependencies are copied from the
environment of the tests. PySpark is not among them; Spark sends its own to the containers.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.support.provider import REPOSITORY

PACKAGE = "spark_ckpt"

_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")
_NOT_NEEDED = shutil.ignore_patterns("__pycache__", "tests", "include", "*.pyc")
"""Parts that no program imports: PyArrow's tests and headers are two thirds of its files."""


def pack(folder: Path) -> Path:
    """Makes the environment in `folder` and returns its archive. Skips the test without venv-pack."""
    pytest.importorskip("venv_pack", reason="packing an environment needs venv-pack")
    environment = folder / "environment"
    _run(sys.executable, "-m", "venv", "--without-pip", str(environment))
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(environment)}))
    for name in dict.fromkeys(_required("spark-ckpt")):
        _install(name, packages)
    shutil.copytree(REPOSITORY / PACKAGE, packages / PACKAGE, ignore=_NOT_NEEDED)
    archive = folder / "environment.tar.gz"
    _run(sys.executable, "-m", "venv_pack", "-q", "-p", str(environment), "-o", str(archive), "--compress-level", "1")
    return archive


def _required(name: str) -> Iterator[str]:
    """The dependencies of a distribution and theirs, without those of extras."""
    for requirement in distribution(name).requires or []:
        match = _REQUIREMENT.match(requirement)
        if match and "extra ==" not in requirement:
            yield match.group()
            yield from _required(match.group())


def _install(name: str, packages: Path) -> None:
    files = distribution(name).files or []
    for top in dict.fromkeys(file.parts[0] for file in files):
        source = Path(str(distribution(name).locate_file(top)))
        if top == ".." or not source.exists() or (packages / top).exists():
            continue  # scripts of bin/, or bytecode that has not been compiled
        if source.is_dir():
            shutil.copytree(source, packages / top, ignore=_NOT_NEEDED)
        else:
            shutil.copy2(source, packages / top)


def _run(*command: str) -> None:
    run = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, f"{' '.join(command)}:\n{run.stdout}\n{run.stderr}"
