"""Storage on Hadoop's file systems, as the Spark driver reaches them: HDFS, and schemes that have no other storage."""

from __future__ import annotations

import contextlib
import posixpath
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from fsspec import AbstractFileSystem

from spark_ckpt.storage.base import checked_name
from spark_ckpt.storage.errors import HadoopError
from spark_ckpt.storage.local import TEMPORARY_PREFIX
from spark_ckpt.storage.remote import FsspecStorage

FRAME_BYTES = 16 << 20
"""Bytes of a file that travel in one message."""


class HadoopCalls(Protocol):
    """Calls of Hadoop's `FileContext`, wherever that runs."""

    def ask(
        self, operation: str, path: str, payload: bytes | memoryview = b"", **fields: object
    ) -> tuple[Mapping[str, Any], bytes | memoryview]:
        """One operation on one path; returns the fields and the bytes of the answer.

        Raises:
            FileNotFoundError, FileExistsError, PermissionError: as the names say.
            OSError: whatever else goes wrong.
        """
        ...


class HadoopStorage(FsspecStorage):
    """Files below a location that Hadoop serves.

    *Exclusive create.* A file is written under a temporary name and renamed, by `FileContext.rename` without
    `OVERWRITE`. On HDFS the NameNode does that in one step under its lock, and repeats the first answer to a request
    that its client repeats (`FSNamesystem.renameTo`, `RetryCache`): of several drivers one wins, and a reader sees the
    whole file or none. `create` without `OVERWRITE` is exclusive as well, but shows the file while it is empty. On
    another scheme the guarantee is as good as its rename; an object store that copies and deletes gives none.

    *Durable.* A file is synced (`hsync`) before it is closed and renamed: its bytes are then on the disks of all
    DataNodes that have a replica, and its name is in the NameNode's edit log. A file that is only closed is in the
    memory of those machines: if the power of all of them fails at once, it is lost. Where streams cannot sync, a file
    counts as durable when it is closed.

    Args:
        calls: who carries out the operations.
        location: as Hadoop writes it.
    """

    def __init__(self, calls: HadoopCalls, location: str) -> None:
        super().__init__(HadoopFileSystem(calls), location, location)

    def write_chunks(self, name: str, chunks: Callable[[], Iterable[bytes]]) -> None:
        """Writes a file in parts, in place of one that may be there."""
        path = f"{self._root}/{checked_name(name, self.location)}"
        self._retry(name, "write", lambda: self._fs.pipe_chunks(path, chunks()))

    def remove_empty(self, directory: str) -> None:
        """Removes a directory that has nothing in it."""
        with contextlib.suppress(OSError):
            self._fs.rmdir(f"{self._root}/{checked_name(directory, self.location)}")


class HadoopFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """The part of fsspec's interface that `FsspecStorage` uses. Paths are Hadoop's, with their scheme. No cache.

    Args:
        calls: who carries out the operations.
    """

    protocol = "hadoop"
    cachable = False

    def __init__(self, calls: HadoopCalls) -> None:
        super().__init__()
        self._calls = calls

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:  # noqa: ANN401
        """The bytes of a file from `start`, 0 unless given, to before `end`, if it does not end before."""
        parts: list[bytes | memoryview] = []
        at = start or 0
        while end is None or at < end:
            wanted = FRAME_BYTES if end is None else min(FRAME_BYTES, end - at)
            _fields, part = self._calls.ask("read", path, offset=at, length=wanted)
            parts.append(part)
            at += len(part)
            if len(part) < wanted:
                break
        return b"".join(parts)

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:  # noqa: ANN401
        """Makes a file of these bytes; in mode `create` only where there is none.

        Raises:
            FileExistsError: there is one, in mode `create`.
            OSError: it cannot be written, or it is unknown whether it was.
        """
        view = memoryview(value)
        parts = (view[start : start + FRAME_BYTES] for start in range(0, len(view), FRAME_BYTES))
        self._put(path, parts, overwrite=mode != "create")

    def pipe_chunks(self, path: str, chunks: Iterable[bytes]) -> None:
        """Makes a file of these parts, of `FRAME_BYTES` at most, in place of one that may be there.

        Raises:
            OSError: it cannot be written, or it is unknown whether it was.
        """
        self._put(path, chunks, overwrite=True)

    def _put(self, path: str, parts: Iterable[bytes | memoryview], *, overwrite: bool) -> None:
        temporary = f"{posixpath.dirname(path)}/{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
        try:
            self._write(temporary, parts)
            self._rename(temporary, path, overwrite=overwrite)
        except BaseException:
            # The answer to the rename may be lost, and the request still on its way: then it finds nothing.
            with contextlib.suppress(OSError):
                self._calls.ask("delete", temporary)
            raise

    def ls(self, path: str, detail: bool = True, **_: Any) -> Sequence[Any]:  # noqa: ANN401
        """The entries directly below a directory."""
        fields, _payload = self._calls.ask("list", path)
        entries = [_entry(path, status) for status in fields["files"]]
        return entries if detail else [entry["name"] for entry in entries]

    def info(self, path: str, **_: Any) -> dict[str, Any]:  # noqa: ANN401
        """A file or directory."""
        status, _payload = self._calls.ask("status", path)
        return _entry(posixpath.dirname(path), status)

    def rm_file(self, path: str) -> None:
        """Deletes a file.

        Raises:
            FileNotFoundError: there is none.
        """
        fields, _ = self._calls.ask("delete", path)
        if not fields["deleted"]:
            raise FileNotFoundError(path)

    def rmdir(self, path: str) -> None:
        """Deletes a directory that has nothing in it."""
        self._calls.ask("delete", path)  # which is never recursive

    def _write(self, path: str, parts: Iterable[bytes | memoryview]) -> None:
        # The last call closes the file, so each part waits until it is known whether another one follows.
        rest = iter(parts)
        part, is_first = next(rest, b""), True
        for following in rest:
            self._calls.ask("write", path, part, first=is_first, last=False)
            part, is_first = following, False
        self._calls.ask("write", path, part, first=is_first, last=True)

    def _rename(self, temporary: str, path: str, overwrite: bool) -> None:
        try:
            self._calls.ask("rename", temporary, target=path, overwrite=overwrite)
        except FileNotFoundError as e:
            # An earlier try of this call may have moved it, where the file system's client repeats requests.
            raise HadoopError(path, type(e).__name__, f"its temporary file has vanished: {e}") from e


def _entry(directory: str, status: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": f"{directory}/{status['name']}",
        "size": status["size"],
        "type": "directory" if status["directory"] else "file",
        "modified": status["modified_ms"] / 1000,
    }
