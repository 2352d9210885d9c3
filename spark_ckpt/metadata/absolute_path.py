"""Absolute paths and URLs of files, independent of their spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_ABSOLUTE = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/]*))?(/.*)?", re.DOTALL)


class AbsolutePath(NamedTuple):
    """Absolute path, parsed as `org.apache.flink.core.fs.Path` parses it.

    `file:/x`, `file:///x` and `/x` are equal, and `//`, `.` and `..` are resolved. Nothing is percent-encoded.

    Args:
        scheme: scheme of the file system; `file` for the local one.
        authority: bucket or host; empty for a local file.
        components: names from the root down.
    """

    scheme: str
    authority: str
    components: tuple[str, ...]

    @classmethod
    def of(cls, path: str) -> AbsolutePath | None:
        """Path from a text; None if the text is not an absolute path."""
        match = _ABSOLUTE.fullmatch(path)
        if match is None or not (match[2] or match[3]):
            return None
        scheme = (match[1] or "").lower()
        authority = "" if scheme == "file" else match[2] or ""
        return cls(scheme or "file", authority, _resolved((match[3] or "").split("/")))

    @property
    def parent(self) -> AbsolutePath:
        """Parent directory."""
        return self._replace(components=self.components[:-1])

    def below(self, path: str) -> AbsolutePath:
        """Absolute path of a path relative to this one. With `..` it may lie outside this one."""
        return self._replace(components=_resolved((*self.components, *path.split("/"))))

    def holds(self, other: AbsolutePath) -> bool:
        """True if the other path equals this one or lies below it."""
        return self[:2] == other[:2] and self.components == other.components[: len(self.components)]

    def __str__(self) -> str:
        path = "/".join(("", *self.components))
        return path or "/" if self.scheme == "file" else f"{self.scheme}://{self.authority}{path}"


def _resolved(components: Iterable[str]) -> tuple[str, ...]:
    resolved: list[str] = []
    for component in components:
        if component == "..":
            del resolved[-1:]
        elif component not in ("", "."):
            resolved.append(component)
    return tuple(resolved)
