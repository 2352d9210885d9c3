"""Storage on Hadoop file systems, reached through the Spark driver: HDFS, and schemes without their own storage."""

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
"""Maximum bytes of file content per message."""


KINDS: Mapping[str, type[OSError]] = {
    "missing": FileNotFoundError,
    "exists": FileExistsError,
    "denied": PermissionError,
}
"""Python's exception class for each kind of error; kind `other` has none."""


def failure_of(path: str, header: Mapping[str, Any]) -> OSError:
    """The exception for an error reply of the JVM (docs/protocol.md, section 1.6).

    Args:
        path: path of the request.
        header: `error`, `message` and `kind` of the reply.
    """
    failure = HadoopError(path, str(header["error"]), str(header["message"]))
    kind = KINDS.get(header["kind"])
    return failure if kind is None else kind(str(failure))


class HadoopCalls(Protocol):
    """Calls to Hadoop's `FileContext`, local or remote."""

    def ask(
        self, operation: str, path: str, payload: bytes | memoryview = b"", **fields: object
    ) -> tuple[Mapping[str, Any], bytes | memoryview]:
        """Executes an operation on a path; returns the fields and the payload of the response.

        Raises:
            FileNotFoundError, FileExistsError, PermissionError: as their names say.
            OSError: any other failure.
        """
        ...


class HadoopStorage(FsspecStorage):
    """Files below a location on a Hadoop file system.

    *Exclusive create.* A file is written under a temporary name and renamed with `FileContext.rename` without
    `OVERWRITE`. On HDFS, the NameNode renames atomically under its lock, and answers a retried request with the first
    response (`FSNamesystem.renameTo`, `RetryCache`): only one of several drivers wins, and a reader sees the whole file
    or none. `create` without `OVERWRITE` is exclusive as well, but exposes the file while it is empty. On other
    schemes, the guarantee is only as strong as their rename; an object store that copies and deletes gives none.

    *Durability.* A file is synced (`hsync`) before it is closed and renamed: its content is then on the disks of all
    DataNodes with a replica, and its name is in the NameNode's edit log. A file that is only closed is in the memory of
    those machines, and is lost if all of them lose power at once. If streams cannot sync, a closed file counts as
    durable.

    Args:
        calls: executor of the operations.
        location: the location in Hadoop's form.
    """

    def __init__(self, calls: HadoopCalls, location: str) -> None:
        super().__init__(HadoopFileSystem(calls), location, location)

    @property
    def renames(self) -> bool:
        """True on HDFS, whose NameNode renames under its lock."""
        return self.location.startswith(("hdfs:", "viewfs:"))

    def write_chunks(self, name: str, chunks: Callable[[], Iterable[bytes]]) -> None:
        """Writes a file in chunks and replaces any existing one."""
        path = f"{self._root}/{checked_name(name, self.location)}"
        self._retry(name, "write", lambda: self._fs.pipe_chunks(path, chunks()))

    def remove_empty(self, directory: str) -> None:
        """Removes an empty directory."""
        with contextlib.suppress(OSError):
            self._fs.rmdir(f"{self._root}/{checked_name(directory, self.location)}")


class HadoopFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Subset of fsspec's interface used by `FsspecStorage`. Takes Hadoop paths with their scheme. Caches nothing.

    Args:
        calls: executor of the operations.
    """

    protocol = "hadoop"
    cachable = False

    def __init__(self, calls: HadoopCalls) -> None:
        super().__init__()
        self._calls = calls

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:  # noqa: ANN401
        """Bytes of a file from `start` (default: 0) to `end` (exclusive) or the end of the file, if that is earlier."""
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
        """Writes a file; with mode `create`, only if it does not exist.

        Raises:
            FileExistsError: the file exists, with mode `create`.
            OSError: the file cannot be written, or the outcome is unknown.
        """
        view = memoryview(value)
        parts = (view[start : start + FRAME_BYTES] for start in range(0, len(view), FRAME_BYTES))
        self._put(path, parts, overwrite=mode != "create")

    def pipe_chunks(self, path: str, chunks: Iterable[bytes]) -> None:
        """Writes a file from chunks of at most `FRAME_BYTES` each, and replaces any existing one.

        Raises:
            OSError: the file cannot be written, or the outcome is unknown.
        """
        self._put(path, chunks, overwrite=True)

    def _put(self, path: str, parts: Iterable[bytes | memoryview], *, overwrite: bool) -> None:
        temporary = f"{posixpath.dirname(path)}/{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
        try:
            self._write(temporary, parts)
            self._rename(temporary, path, overwrite=overwrite)
        except BaseException:
            # The response to the rename may be lost, or its request still in flight: then it finds nothing to rename.
            with contextlib.suppress(OSError):
                self._calls.ask("delete", temporary)
            raise

    def ls(self, path: str, detail: bool = True, **_: Any) -> Sequence[Any]:  # noqa: ANN401
        """Entries directly below a directory."""
        fields, _payload = self._calls.ask("list", path)
        entries = [_entry(path, status) for status in fields["files"]]
        return entries if detail else [entry["name"] for entry in entries]

    def info(self, path: str, **_: Any) -> dict[str, Any]:  # noqa: ANN401
        """Entry of a file or directory."""
        status, _payload = self._calls.ask("status", path)
        return _entry(posixpath.dirname(path), status)

    def rm_file(self, path: str) -> None:
        """Deletes a file.

        Raises:
            FileNotFoundError: the file does not exist.
        """
        fields, _ = self._calls.ask("delete", path)
        if not fields["deleted"]:
            raise FileNotFoundError(path)

    def rmdir(self, path: str) -> None:
        """Deletes an empty directory."""
        self._calls.ask("delete", path)  # never recursive

    def _write(self, path: str, parts: Iterable[bytes | memoryview]) -> None:
        # The last call closes the file, so each part is held back until the next one, or the end, is known.
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
            # If the file system's client retries requests, an earlier try of this call may have moved the file.
            raise HadoopError(path, type(e).__name__, f"its temporary file disappeared: {e}") from e


def _entry(directory: str, status: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": f"{directory}/{status['name']}",
        "size": status["size"],
        "type": "directory" if status["directory"] else "file",
        "modified": status["modified_ms"] / 1000,
    }
