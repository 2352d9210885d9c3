"""Single damages to Spark's own files in a checkpoint location, made one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from spark_ckpt.spark_files.logs import QUERY, SOURCES, STATE, BatchLog

FILES = (QUERY, BatchLog.OFFSETS.value, BatchLog.COMMITS.value, SOURCES, STATE)
"""Spark's part of a location: one file and four directories."""


def delete(file: Path) -> None:
    """Deletes a file."""
    file.unlink()


def empty(file: Path) -> None:
    """Leaves nothing of the content of a file, as a power loss may."""
    file.write_bytes(b"")


def cut(file: Path) -> None:
    """Cuts a file in half."""
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def change(file: Path, at: int | None = None) -> None:
    """Changes a bit of a file's byte, by default of the one in the middle."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2 if at is None else at] ^= 1
    file.write_bytes(bytes(content))


@dataclass(frozen=True)
class FileDamage:
    """A damage to one file.

    Args:
        name: name of the file, relative to the location.
        kind: what happens to it.
        at: byte to change; None for the one in the middle.
    """

    name: str
    kind: str
    at: int | None = None

    def apply(self, location: Path) -> None:
        """Damages a location."""
        file = location / self.name
        if self.kind == "changed":
            change(file, self.at)
        else:
            _KINDS[self.kind](file)

    def __str__(self) -> str:
        place = "" if self.at is None else f" at {self.at}"
        return f"{self.name} {self.kind}{place}"


_KINDS: dict[str, Callable[[Path], None]] = {"deleted": delete, "emptied": empty, "cut": cut}


def files_of_spark(location: Path) -> list[str]:
    """Spark's files in a location, relative to it, without checksum files."""
    there = [file for part in FILES for file in [location / part, *(location / part).rglob("*")] if file.is_file()]
    return sorted(file.relative_to(location).as_posix() for file in there if not file.name.startswith("."))


def single_damages(location: Path) -> Iterator[FileDamage]:
    """Each damage to each of Spark's files in a location."""
    for name in files_of_spark(location):
        yield FileDamage(name, "deleted")
        if (location / name).stat().st_size:
            yield FileDamage(name, "emptied")
            yield FileDamage(name, "cut")
            yield FileDamage(name, "changed")
