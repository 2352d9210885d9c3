"""The machine on which the figures were taken."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark

from spark_ckpt import __version__

REPOSITORY = Path(__file__).resolve().parents[2]


@functools.cache
def facts() -> Mapping[str, Any]:
    """Cores, memory and software versions of this machine, and the measured commit."""
    return {
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "processor": _processor(),
        "system": platform.platform(),
        "java": _first_line("java", "-version"),
        "python": platform.python_version(),
        "spark": pyspark.__version__,
        "spark_ckpt": __version__,
        "commit": _first_line("git", "-C", str(REPOSITORY), "describe", "--always", "--dirty"),
    }


def load() -> float:
    """Load average over the last minute."""
    return round(os.getloadavg()[0], 2)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _first_line(*command: str) -> str:
    """First line that a program prints; empty if the program is missing."""
    try:
        found = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return next(iter((found.stdout + found.stderr).splitlines()), "")
