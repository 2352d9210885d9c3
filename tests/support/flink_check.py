"""Flink's own loader as the judge of metadata files: one JVM run for as many files as one likes.

verdicts = check([first, second])
assert_flink_agrees(location / "ckpt" / "chk-00000000000000000007")
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt import metadata
from tests.support.metadata_report import report

MODULE = Path(__file__).parents[2] / "jvm-shim" / "flink-check"
MAIN_CLASS = "io.github.sparkckpt.flinkcheck.FlinkCheck"
BUILD_SECONDS = 900
RUN_SECONDS = 300


@dataclass(frozen=True)
class Verdict:
    """What Flink said of one file: what it read, or why it refused."""

    path: Path
    metadata: dict[str, Any] | None
    bytes_consumed: int | None
    exception: str | None
    message: str | None

    @property
    def loads(self) -> bool:
        return self.exception is None


@lru_cache(maxsize=1)
def class_path() -> str:
    """The class path of the check, built where that has not been done. Without a JDK or Maven the test is skipped."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"the Flink check needs {program}")
    built = MODULE / "target" / "classpath.txt"
    sources = [MODULE / "pom.xml", *MODULE.glob("src/main/java/**/*.java")]
    if not built.exists() or any(source.stat().st_mtime > built.stat().st_mtime for source in sources):
        command = ["mvn", "-q", "-B", "package"]
        build = subprocess.run(command, cwd=MODULE, capture_output=True, text=True, timeout=BUILD_SECONDS)
        assert build.returncode == 0, f"cannot build the Flink check:\n{build.stdout}\n{build.stderr}"
        built.touch()  # Maven leaves it alone if nothing in it has changed
    return f"{MODULE / 'target' / 'classes'}:{built.read_text().strip()}"


def check(paths: Iterable[Path]) -> dict[Path, Verdict]:
    """Has Flink load each file, or the `_metadata` in each directory; the verdicts are under the paths as given."""
    files = {path: path / metadata.METADATA_FILE_NAME if path.is_dir() else path for path in paths}
    command = ["java", "-Xmx1g", "-XX:+UseSerialGC", "-cp", class_path(), MAIN_CLASS]
    standard_input = "\n".join(map(str, files.values())).encode()
    run = subprocess.run(command, input=standard_input, capture_output=True, timeout=RUN_SECONDS)
    assert run.returncode == 0, run.stderr.decode()
    # Only a line feed ends a line here: names may hold other characters that Python's text mode takes for an end.
    lines = [json.loads(line) for line in run.stdout.split(b"\n") if line]
    assert [line["path"] for line in lines] == [str(file) for file in files.values()]
    return {
        path: Verdict(path, line.get("metadata"), line.get("bytesConsumed"), line.get("exception"), line.get("message"))
        for path, line in zip(files, lines, strict=True)
    }


def assert_flink_agrees(path: Path, verdict: Verdict | None = None) -> metadata.CheckpointMetadata:
    """Asserts that Flink loads the file and reads in it what we read.

    Args:
        path: the file, or its directory.
        verdict: what Flink said of it; without it Flink is asked.

    Returns:
        What both read.
    """
    verdict = verdict or check([path])[path]
    assert verdict.loads, f"Flink refuses {path}: {verdict.exception}: {verdict.message}"
    assert verdict.metadata is not None
    ours = metadata.load(path)
    expected = report(ours)
    different = differences({key: verdict.metadata[key] for key in expected}, expected, "")
    assert not different, f"{path}:\n" + "\n".join(different)
    return ours


def differences(flinks: Any, ours: Any, where: str) -> list[str]:
    """Where the reports differ. A state handle id that ours lacks is none: Flink invents those while loading."""
    if isinstance(flinks, dict) and isinstance(ours, dict):
        invented = {"stateHandleId"} - ours.keys()
        if (keys := flinks.keys() - invented) != ours.keys():
            return [f"{where}: Flink has {sorted(keys)}, we have {sorted(ours)}"]
        return [found for key in ours for found in differences(flinks[key], ours[key], f"{where}.{key}")]
    if isinstance(flinks, list) and isinstance(ours, list) and len(flinks) == len(ours):
        pairs = enumerate(zip(flinks, ours, strict=True))
        return [found for index, pair in pairs for found in differences(*pair, f"{where}[{index}]")]
    return [] if flinks == ours else [f"{where}: Flink has {flinks!r}, we have {ours!r}"]
