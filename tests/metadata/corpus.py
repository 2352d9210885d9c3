"""Metadata files in `vectors/`, with Flink's verdict on each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parent / "vectors"


@dataclass(frozen=True)
class Vector:
    """Metadata file of the corpus."""

    directory: Path

    def __str__(self) -> str:
        return self.directory.name

    @property
    def path(self) -> Path:
        return self.directory / "_metadata"

    @property
    def content(self) -> bytes:
        return self.path.read_bytes()

    @property
    def version(self) -> int:
        return int.from_bytes(self.content[4:8], "big", signed=True)

    @property
    def dump(self) -> dict[str, Any]:
        dump: dict[str, Any] = json.loads((self.directory / "dump.json").read_text())
        return dump

    @property
    def loads(self) -> bool:
        """True if Flink loads the file."""
        verdict = self.directory / "verdict.json"
        return not verdict.exists() or bool(json.loads(verdict.read_text())["loads"])


def _vectors(kind: str) -> list[Vector]:
    return [Vector(directory) for directory in sorted((VECTORS / kind).iterdir())]


FLINK = [vector for vector in _vectors("flink") if vector.version <= 4]
NEWER_FLINK = [vector for vector in _vectors("flink") if vector.version > 4]
MUTANTS = _vectors("mutants")
