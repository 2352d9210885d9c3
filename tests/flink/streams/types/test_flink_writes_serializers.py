"""Real Flink still writes the bytes that the other tests compare with."""

from __future__ import annotations

import subprocess

from tests.flink.streams.types.flink_serializers import FILE
from tests.support.flink_check import HEAP, MODULE, PACKAGE, RUN_SECONDS, class_path


def test_flink_writes_the_dump() -> None:
    command = [
        "java",
        HEAP,
        "-XX:+UseSerialGC",
        "-Duser.timezone=UTC",
        "-cp",
        class_path(MODULE / "serializers"),
        f"{PACKAGE}.FlinkSerializers",
    ]
    run = subprocess.run(command, capture_output=True, timeout=RUN_SECONDS, text=True, encoding="utf-8")
    assert run.returncode == 0, run.stderr
    # Save a new dump on purpose only: files of older releases have the bytes of today's.
    assert run.stdout.splitlines() == FILE.read_text(encoding="utf-8").splitlines()
