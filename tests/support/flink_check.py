"""Flink's own loader as the judge of metadata files: one JVM run for any number of files.

verdicts = check([first, second])
assert_flink_agrees(location / "ckpt" / "chk-00000000000000000007")
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from spark_ckpt import metadata
from spark_ckpt.metadata.properties import decode
from tests.support.maven import build
from tests.support.metadata_report import report

MODULE = Path(__file__).parents[2] / "jvm-shim" / "flink-check"
MODULE_OF_1_10 = MODULE / "flink-1.10"
PACKAGE = "io.github.sparkckpt.flinkcheck"
HEAP = "-Xmx512m"
RUN_SECONDS = 1500


@dataclass(frozen=True)
class Verdict:
    """Flink's verdict on one file: its content and, on request, its rewritten form; or the reason for rejection."""

    path: Path
    metadata: dict[str, Any] | None
    bytes_consumed: int | None
    written: bytes | None
    exception: str | None
    message: str | None

    @property
    def loads(self) -> bool:
        return self.exception is None


@lru_cache
def class_path(module: Path = MODULE) -> str:
    """Class path of the check, built on first use. Skips the test without a JDK or Maven."""
    return f"{module / 'target' / 'classes'}:{build(module, 'classpath.txt').read_text().strip()}"


def check(paths: Iterable[Path], *, write: bool = False) -> dict[Path, Verdict]:
    """Loads each file, or the `_metadata` in each directory, with Flink; the verdicts are keyed by the paths as given.

    Args:
        paths: the files or directories.
        write: whether Flink also writes the loaded metadata: in the file's version, or in version 3 for version 2.
    """
    files = {path: path / metadata.METADATA_FILE_NAME if path.is_dir() else path for path in paths}
    lines = [json.loads(line) for line in _run(MODULE, "FlinkCheck", files.values(), *(["--write"] if write else []))]
    assert [line["path"] for line in lines] == [str(file) for file in files.values()]
    return {
        path: Verdict(
            path,
            line.get("metadata"),
            line.get("bytesConsumed"),
            base64.b64decode(line["written"]) if "written" in line else None,
            line.get("exception"),
            line.get("message"),
        )
        for path, line in zip(files, lines, strict=True)
    }


def rewritten_by_1_10(files: Sequence[Path]) -> dict[Path, bytes]:
    """Files of version 2 as loaded and rewritten by Flink 1.10, the last release that wrote that version."""
    lines = _run(MODULE_OF_1_10, "FlinkRewrite", files)
    return {file: base64.b64decode(line) for file, line in zip(files, lines, strict=True)}


def _run(module: Path, main_class: str, files: Iterable[Path], *arguments: str) -> list[bytes]:
    command = ["java", HEAP, "-XX:+UseSerialGC", "-cp", class_path(module), f"{PACKAGE}.{main_class}", *arguments]
    standard_input = "\n".join(map(str, files)).encode()
    run = subprocess.run(command, input=standard_input, capture_output=True, timeout=RUN_SECONDS)
    assert run.returncode == 0, run.stderr.decode()
    assert not run.stderr, run.stderr.decode()
    return run.stdout.splitlines()


def assert_flink_agrees(path: Path, verdict: Verdict | None = None) -> metadata.CheckpointMetadata:
    """Asserts that Flink loads the file and reads the same content as we do.

    Args:
        path: the file, or its directory.
        verdict: Flink's verdict on the file; by default Flink is run.

    Returns:
        The content that both read.
    """
    verdict = verdict or check([path])[path]
    assert verdict.loads, f"Flink refuses {path}: {verdict.exception}: {verdict.message}"
    ours = metadata.load(path)
    different = different_content(ours, verdict)
    assert not different, f"{path}:\n" + "\n".join(different)
    return ours


def different_content(ours: metadata.CheckpointMetadata, verdict: Verdict) -> list[str]:
    """Differences between Flink's reading and ours of a file that both load."""
    assert verdict.metadata is not None
    expected = report(ours)
    flinks = {key: verdict.metadata[key] for key in expected}
    properties = decode(base64.b64decode(verdict.metadata["properties"]))
    return [*_differences(flinks, expected, ""), *_differences(properties, decode(ours.properties), ".properties")]


def _differences(flinks: Any, ours: Any, where: str) -> list[str]:
    """Differences between the reports, except state handle ids missing from ours: Flink invents those while loading."""
    if isinstance(flinks, dict) and isinstance(ours, dict):
        invented = {"stateHandleId"} - ours.keys()
        if (keys := flinks.keys() - invented) != ours.keys():
            return [f"{where}: Flink has {sorted(keys)}, we have {sorted(ours)}"]
        return [found for key in ours for found in _differences(flinks[key], ours[key], f"{where}.{key}")]
    if isinstance(flinks, list) and isinstance(ours, list) and len(flinks) == len(ours):
        pairs = enumerate(zip(flinks, ours, strict=True))
        return [found for index, pair in pairs for found in _differences(*pair, f"{where}[{index}]")]
    return [] if flinks == ours else [f"{where}: Flink has {flinks!r}, we have {ours!r}"]
