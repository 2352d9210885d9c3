"""Where files are: absolute paths and URLs, whichever way they are spelled."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_ABSOLUTE = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/]*))?(/.*)?", re.DOTALL)


class Place(NamedTuple):
    """What an absolute path names, as `org.apache.flink.core.fs.Path` takes it.

    `file:/x`, `file:///x` and `/x` are one place, and `//`, `.` and `..` are resolved. Nothing is percent-encoded.

    Args:
        scheme: of the file system, `file` for a local one.
        authority: the bucket or host; empty for a local file.
        components: names from the root down.
    """

    scheme: str
    authority: str
    components: tuple[str, ...]

    @classmethod
    def of(cls, path: str) -> Place | None:
        """The place, or None if the path is not absolute."""
        match = _ABSOLUTE.fullmatch(path)
        if match is None or not (match[2] or match[3]):
            return None
        scheme = (match[1] or "").lower()
        authority = "" if scheme == "file" else match[2] or ""
        return cls(scheme or "file", authority, _resolved((match[3] or "").split("/")))

    @property
    def parent(self) -> Place:
        """The directory above."""
        return self._replace(components=self.components[:-1])

    def below(self, path: str) -> Place:
        """The place that a relative path names from here. It may climb above this one."""
        return self._replace(components=_resolved((*self.components, *path.split("/"))))

    def holds(self, other: Place) -> bool:
        """Whether the other place is this one, or lies below it."""
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
