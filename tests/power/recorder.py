"""A record of a process's changes to a directory, made by looking at the directory before each call that changes it.

Python's audit hooks announce each write, link and rename, whichever function makes it. Only `os.fsync` and
`os.fdatasync` have to be replaced.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

Inode: TypeAlias = int

_CHANGES = ("open", "os.link", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")


@dataclass(frozen=True, slots=True)
class Entry:
    """A directory entry now refers to another file or directory, or to none."""

    directory: Inode
    name: str
    target: Inode | None


@dataclass(frozen=True, slots=True)
class Made:
    """A directory exists, possibly without a name that leads to it yet."""

    directory: Inode


@dataclass(frozen=True, slots=True)
class Content:
    """A file has these bytes."""

    file: Inode
    data: bytes


@dataclass(frozen=True, slots=True)
class Synced:
    """A file's content, or a directory's set of names, survives a power loss from here on."""

    inode: Inode


@dataclass(frozen=True, slots=True)
class Mark:
    """A promise made by the process to others."""

    label: str
    value: int


Operation: TypeAlias = Entry | Made | Content | Synced | Mark


@dataclass
class Recorder:
    """Records changes to a directory.

    Args:
        root: the directory, which must exist and must survive a power loss.
    """

    root: Path
    operations: list[Operation] = field(default_factory=list)
    _inodes: dict[tuple[int, int], Inode] = field(default_factory=dict)
    _kept: list[Any] = field(default_factory=list)
    _entries: dict[tuple[Inode, str], Inode] = field(default_factory=dict)
    _contents: dict[Inode, tuple[int, int]] = field(default_factory=dict)
    _directories: set[Inode] = field(default_factory=set)
    _is_looking: bool = False

    ROOT = 0

    def mark(self, label: str, value: int) -> None:
        """Records a promise."""
        self._look()
        self.operations.append(Mark(label, value))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Records the changes made within this context, on all threads."""
        active = [True]

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if active[0] and event in _CHANGES and not self._is_looking and self._concerns(event, arguments):
                self._look()

        info = os.stat(self.root)
        self._inodes[info.st_dev, info.st_ino] = self.ROOT
        sys.addaudithook(hook)  # permanent; does nothing after this context
        try:
            with patch("os.fsync", self._fsync), patch("os.fdatasync", self._fsync):
                yield
                self._look()
        finally:
            active[0] = False
            for descriptor in self._kept:
                os.close(descriptor)
            self._kept.clear()

    def _concerns(self, event: str, arguments: tuple[Any, ...]) -> bool:
        if event == "open":
            path, _, flags = arguments
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
            return bool(writes) and isinstance(path, (str, os.PathLike)) and self._is_inside(path)
        return any(isinstance(path, (str, os.PathLike)) and self._is_inside(path) for path in arguments)

    def _is_inside(self, path: str | os.PathLike[str]) -> bool:
        return os.path.abspath(path).startswith(str(self.root))

    def _fsync(self, file: Any) -> None:
        """Replaces `os.fsync`: nothing is lost here."""
        descriptor = file if isinstance(file, int) else file.fileno()
        self._look()
        info = os.fstat(descriptor)
        inode = self._inodes.get((info.st_dev, info.st_ino))
        if inode is not None:
            self.operations.append(Synced(inode))

    def _look(self) -> None:
        """Records the differences from the previous look."""
        self._is_looking = True
        try:
            there: dict[tuple[Inode, str], Inode] = {}
            self._look_into(self.root, self.ROOT, there)
            for key in [key for key in self._entries if key not in there]:
                self.operations.append(Entry(*key, None))
            for key, target in there.items():
                if self._entries.get(key) != target:
                    self.operations.append(Entry(*key, target))
            self._entries = there
        finally:
            self._is_looking = False

    def _look_into(self, path: Path, directory: Inode, there: dict[tuple[Inode, str], Inode]) -> None:
        for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
            info = entry.stat(follow_symlinks=False)
            inode = self._inode(entry.path, info)
            there[directory, entry.name] = inode
            if entry.is_dir(follow_symlinks=False):
                if inode not in self._directories:
                    self._directories.add(inode)
                    self.operations.append(Made(inode))
                self._look_into(Path(entry.path), inode, there)
            elif self._contents.get(inode) != (info.st_size, info.st_mtime_ns):
                self._contents[inode] = info.st_size, info.st_mtime_ns
                self.operations.append(Content(inode, Path(entry.path).read_bytes()))

    def _inode(self, path: str, info: os.stat_result) -> Inode:
        """Our own inode number: the file system reuses those of deleted files, unless they are held open."""
        key = info.st_dev, info.st_ino
        if key not in self._inodes:
            self._inodes[key] = len(self._inodes)
            self._kept.append(os.open(path, os.O_RDONLY))
        return self._inodes[key]
