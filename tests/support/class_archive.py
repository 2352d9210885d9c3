"""Class-data sharing for the Spark JVMs of tests: half of a short driver's time goes to parsing and verifying classes.

    python -m tests.support.class_archive

writes the archive of this environment (`make` does so before the tests). The JVM ignores an archive of other jars.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"
"""Variable with the options of each driver's JVM that `spark-submit` or PySpark starts."""

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""Options of JVMs that live for seconds or minutes. By default, the code cache of the first compiler alone has 48 MiB:
a session that runs many queries fills it, and a thread is then busy making room."""

_WITH_ARCHIVE = f"-XX:SharedArchiveFile={ARCHIVE} -Xlog:disable -Xlog:all=error:stderr"
"""Without the warnings about another class path."""


def quick_start() -> str:
    """JVM options of drivers and executors in tests: with the archive, where there is one."""
    return f"{QUICK_START} {_WITH_ARCHIVE}" if ARCHIVE.exists() else QUICK_START


def start_drivers_quickly() -> None:
    """Gives these options to each driver that this process or its children start."""
    os.environ.setdefault(SUBMIT_OPTIONS, quick_start())


def write_archive() -> None:
    """Writes the archive from the classes that a short streaming query loads.

    Raises:
        subprocess.CalledProcessError: the query failed; its output is in the message.
    """
    unfinished = ARCHIVE.with_suffix(f".{os.getpid()}")
    environment = os.environ | {SUBMIT_OPTIONS: f"{QUICK_START} -XX:ArchiveClassesAtExit={unfinished} -Xlog:disable"}
    command = [sys.executable, "-m", "tests.support.archived_query"]
    try:
        subprocess.run(command, env=environment, check=True)
        unfinished.replace(ARCHIVE)
    finally:
        unfinished.unlink(missing_ok=True)


if __name__ == "__main__":
    write_archive()
