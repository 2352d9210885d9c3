"""A small file system in memory that can be full or read-only, for root on Linux."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

FILLER = "filler"


class SmallDisk:
    """A mounted tmpfs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self) -> None:
        """Uses up the remaining space."""
        with (self.folder / FILLER).open("ab", buffering=0) as filler:
            for size in (1 << 16, 1 << 12, 1):
                with suppress(OSError):
                    while filler.write(b"x" * size):
                        pass

    def free(self) -> None:
        """Releases the space."""
        (self.folder / FILLER).unlink()

    def read_only(self, on: bool) -> None:
        """Makes the file system read-only, or writable again."""
        self._mount(f"remount,{'ro' if on else 'rw'}")

    def _mount(self, options: str) -> None:
        command = ["mount", "-t", "tmpfs", "-o", options, "spark-ckpt-test", str(self.folder)]
        subprocess.run(command, check=True, capture_output=True)


@contextmanager
def small_disk(folder: Path, size: str = "4m") -> Iterator[SmallDisk]:
    """Mounts a tmpfs of `size` over `folder`, whose files it hides; skips the test where mounting is not permitted."""
    folder.mkdir(parents=True, exist_ok=True)
    disk = SmallDisk(folder)
    try:
        disk._mount(f"size={size}")
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a file system that can be full needs the right to mount a tmpfs: {error}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
