"""Releases of Flink beside which ours is measured, each with a build of the job."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.stores.machine import REPOSITORY

MODULE = REPOSITORY / "jvm-shim" / "flink-bench"
"""The Maven module of the job."""


@dataclass(frozen=True)
class Release:
    """A line of Flink.

    Args:
        line: its minor version.
        options: options of Maven that build the job for it.
    """

    line: str
    options: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Folder with the jar of the job, and with the class path that Maven wrote beside it."""
        return MODULE / "target" / self.line

    @property
    def class_path(self) -> str:
        """Class path of the job and of Flink."""
        flink = (self.folder / "classpath.txt").read_text(encoding="utf-8").strip()
        return f"{self.folder / 'flink-bench.jar'}{os.pathsep}{flink}"


DEFAULT = Release("2.1")
RELEASES: Mapping[str, Release] = {one.line: one for one in (DEFAULT, Release("1.20", ("-Pflink-1.20",)))}
"""Releases by their line."""
