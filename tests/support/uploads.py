"""Copies of local directories on other file systems."""

from __future__ import annotations

from pathlib import Path

import fsspec


def copy(directory: str | Path, place: str, pattern: str = "**/*") -> None:
    """Copies the files of a local directory."""
    for path in Path(directory).glob(pattern):
        if path.is_file():
            with fsspec.open(f"{place}/{path.relative_to(directory)}", "wb") as file:
                file.write(path.read_bytes())
