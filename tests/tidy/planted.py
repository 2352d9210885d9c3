"""Repositories for tests of the checks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def made(root: Path, sources: Mapping[str, str]) -> Path:
    """Repository with some sources, by path."""
    for path, text in sources.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root
