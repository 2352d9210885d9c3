"""Storage in which some directories are read elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from spark_ckpt.storage.base import CreateResult, FileInfo, Storage
from spark_ckpt.storage.request import Request

_T = TypeVar("_T")


class RedirectedStorage(Storage):
    """The files of another storage, with other directories in place of some at its top.

    Args:
        inner: the storage.
        directories: directory to use, by the one that it replaces.
    """

    def __init__(self, inner: Storage, directories: Mapping[str, str]) -> None:
        super().__init__(inner.location)
        self._inner = inner
        self._directories = dict(directories)

    @property
    def requests_are_slow(self) -> bool:
        """As of the inner storage."""
        return self._inner.requests_are_slow

    @property
    def writes_whole(self) -> bool:
        """As of the inner storage."""
        return self._inner.writes_whole

    @property
    def renames(self) -> bool:
        """As of the inner storage."""
        return self._inner.renames

    def begin(self, call: Callable[[], _T]) -> Request[_T]:
        """Begins requests as the inner storage does."""
        return self._inner.begin(call)

    def read(self, name: str) -> bytes:
        """All bytes of a file."""
        return self._inner.read(self._name(name))

    def write_atomic(self, name: str, data: bytes) -> None:
        """Writes a file."""
        self._inner.write_atomic(self._name(name), data)

    def create_exclusive(self, name: str, data: bytes) -> CreateResult:
        """Creates a file unless one of that name exists."""
        return self._inner.create_exclusive(self._name(name), data)

    def list(self, directory: str) -> Sequence[FileInfo]:
        """Files and directories directly below a directory."""
        return self._inner.list(self._name(directory))

    def delete(self, name: str) -> bool:
        """Deletes a file."""
        return self._inner.delete(self._name(name))

    def size(self, name: str) -> int:
        """Number of bytes of a file."""
        return self._inner.size(self._name(name))

    def first_link(self, directory: str) -> str | None:
        """Name of a symbolic link: the directory itself or one below it."""
        return self._inner.first_link(self._name(directory))

    def read_range(self, name: str, offset: int, length: int) -> bytes:
        """Range of a file."""
        return self._inner.read_range(self._name(name), offset, length)

    def describe(self, name: str) -> str:
        """Path or URL of the file that is used."""
        return self._inner.describe(self._name(name))

    def _name(self, name: str) -> str:
        top, slash, rest = name.partition("/")
        return f"{self._directories.get(top, top)}{slash}{rest}"
