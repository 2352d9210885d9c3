"""Stored locations of queries with the providers of several releases of Spark."""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

LOCATIONS = Path(__file__).parent / "locations"
PLACE = "/import-location"
"""Placeholder in the stored files for the folder in which the query ran: Spark writes absolute paths."""

EXPECTED = "expected.json"
"""Member with the output of every batch, those after the stop included."""


@dataclass(frozen=True)
class Stored:
    """A stored location.

    Args:
        path: the archive.
    """

    path: Path

    @property
    def release(self) -> str:
        """Release of Spark that wrote it."""
        return self.path.parent.name

    @property
    def query(self) -> str:
        """Name of the query."""
        return self.path.stem.partition("--")[0]

    @property
    def provider(self) -> str:
        """Short name of the provider."""
        return self.path.stem.partition("--")[2]

    def __str__(self) -> str:
        return f"{self.release}-{self.path.stem}"

    def extract_to(self, folder: Path) -> Path:
        """Extracts the files as `folder/location`, adapts their paths, and makes them old; returns the location."""
        location = folder / "location"
        with zipfile.ZipFile(self.path) as archive:
            for member in archive.infolist():
                if member.filename == EXPECTED:
                    continue
                path = location / member.filename
                if member.is_dir():
                    path.mkdir(parents=True, exist_ok=True)
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(member).replace(PLACE.encode(), str(folder).encode()))
        for path in location.rglob("*"):
            os.utime(path, (1_700_000_000, 1_700_000_000))
        return location

    def expected(self) -> dict[int, list[str]]:
        """Output rows of each batch."""
        with zipfile.ZipFile(self.path) as archive:
            return {int(batch): rows for batch, rows in json.loads(archive.read(EXPECTED)).items()}


def stored_locations() -> list[Stored]:
    """All stored locations, oldest release first."""
    releases = sorted(LOCATIONS.iterdir(), key=lambda path: tuple(map(int, path.name.split("."))))
    return [Stored(path) for release in releases for path in sorted(release.glob("*.zip"))]
