"""Maven modules used only by tests, built on demand."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

BUILD_SECONDS = 900


def build(module: Path, product: str, *options: str, goal: str = "package") -> Path:
    """Builds the module with Maven if the product is missing or older than a source.

    Skips the test without a JDK or Maven.

    Args:
        module: the directory with the `pom.xml`.
        product: name below `target` of a file that the build produces.
        options: options of Maven that select this product.
        goal: phase or goal of Maven that makes it.

    Returns:
        The path of the product.
    """
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"{module.name} needs {program}")
    # Parallel test processes may want the same module: the second one finds it built.
    with (module / "pom.xml").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _built(module, product, [*options, goal])


def _built(module: Path, product: str, arguments: Sequence[str]) -> Path:
    built = module / "target" / product
    sources = [module / "pom.xml", *(source for source in module.glob("src/main/**/*") if source.is_file())]
    if not built.exists() or any(source.stat().st_mtime > built.stat().st_mtime for source in sources):
        command = ["mvn", "-q", "-B", *arguments]
        run = subprocess.run(command, cwd=module, capture_output=True, text=True, timeout=BUILD_SECONDS)
        assert run.returncode == 0, f"cannot build {module.name}:\n{run.stdout}\n{run.stderr}"
        built.touch()  # Maven does not rewrite an unchanged product
    return built
