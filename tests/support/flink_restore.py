"""Real Flink as the judge of savepoints that we write: jobs that read and restore them, many in one JVM.

answers = ask([{"do": "restore", "savepoint": str(path), "uid": "counts", "key": "string", "keys": ["a"], ...}])

`jvm-shim/flink-check/restore` says what a request has.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.support.maven import build

MODULE = Path(__file__).parents[2] / "jvm-shim" / "flink-check" / "restore"
MAIN_CLASS = "io.github.sparkckpt.flinkcheck.restore.RestoreCheck"
OLDEST, NEWEST = "1.20", "2.1"
"""Lines of Flink."""
PROFILES: dict[str, tuple[str, ...]] = {OLDEST: (), NEWEST: ("-Pflink-2",)}
HEAP = "-Xmx1200m"
RUN_SECONDS = 1500
OPEN_PACKAGES = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.lang.ref", "java.util", "java.util.concurrent"),
    *("java.util.concurrent.atomic", "java.io", "java.net", "java.nio", "java.text", "java.time", "java.math"),
    "sun.nio.ch",
)
"""Packages into which Flink reflects (its `env.java.opts.all`)."""


@dataclass(frozen=True)
class Answer:
    """Flink's answer to a request: rows, or the stack trace of the failure."""

    request: dict[str, Any]
    rows: list[str] | None
    exception: str | None

    @property
    def parsed(self) -> list[Any]:
        """Rows that are JSON."""
        assert self.rows is not None, f"{self.request}:\n{self.exception}"
        return [json.loads(row) for row in self.rows]


@lru_cache
def class_path(line: str = OLDEST) -> str:
    """Class path of a line, built on first use. Skips the test without a JDK or Maven."""
    jars = build(MODULE, f"{line}/classpath.txt", *PROFILES[line]).read_text().strip()
    return f"{MODULE / 'target' / line / 'classes'}:{jars}"


def ask(requests: Sequence[dict[str, Any]], line: str = OLDEST) -> list[Answer]:
    """Answers to requests, from one JVM with a line of Flink."""
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPEN_PACKAGES]
    command = ["java", HEAP, "-XX:+UseSerialGC", *opens, "-cp", class_path(line), MAIN_CLASS]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    run = subprocess.run(command, input=lines.encode(), capture_output=True, timeout=RUN_SECONDS)
    answers = [json.loads(answer) for answer in run.stdout.splitlines()]
    assert len(answers) == len(requests), run.stderr.decode()
    return [
        Answer(request, answer.get("rows"), answer.get("exception"))
        for request, answer in zip(requests, answers, strict=True)
    ]
