"""Kills at every step: a storage whose process ends before a chosen change."""

from __future__ import annotations

from pathlib import Path

from spark_ckpt.storage import LocalStorage
from tests.storage.faulty import FaultyStorage

_CHANGES = ("write", "create", "delete")


class Killed(BaseException):
    """The process ended."""


class Steps:
    """Counts the changes of all its storages, and ends the process before one of them.

    Args:
        last: number of changes that happen; None for all.
    """

    def __init__(self, last: int | None = None) -> None:
        self.last = last
        self.done = 0

    def storage(self, location: Path) -> FaultyStorage:
        """A storage whose changes count."""
        storage = FaultyStorage(LocalStorage(location))
        storage.before = self._before
        return storage

    def _before(self, operation: str, name: str) -> None:
        if operation in _CHANGES:
            if self.done == self.last:
                raise Killed(f"before {operation} {name}")
            self.done += 1


def files_of(location: Path, *, without_ckpt: bool = False) -> dict[str, bytes]:
    """Content of every file below a location by name, except Hadoop's checksums of replaced entries."""
    found = {str(path.relative_to(location)): path for path in location.rglob("*") if path.is_file()}
    return {
        name: path.read_bytes()
        for name, path in found.items()
        if not (without_ckpt and name.startswith("ckpt/")) and not path.name.endswith(".crc")
    }
