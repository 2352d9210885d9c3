"""Storage on Hadoop file systems, reached through the Spark driver: HDFS, and schemes without their own storage."""

from __future__ import annotations

import contextlib
import posixpath
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Protocol

from fsspec import AbstractFileSystem

from spark_ckpt.storage.base import CreateOutcome, CreateResult, checked_name
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


class ExclusiveWay(Enum):
    """How a file is created exclusively on a Hadoop file system."""

    RENAME = "rename"
    """By the rename of a temporary file, which the server refuses if the target exists."""
    CONDITIONAL = "conditional"
    """By a create on the condition that there is no file when it is closed, as of S3A since Hadoop 3.4.2."""
    NO_OVERWRITE = "no_overwrite"
    """By a create that does not overwrite, which is exclusive and shows the file when it is closed."""


_NAMENODE_SCHEMES = ("hdfs", "viewfs", "webhdfs", "swebhdfs")

_WAYS = (
    ("org.apache.hadoop.hdfs.", ExclusiveWay.RENAME),
    ("org.apache.hadoop.fs.azurebfs.", ExclusiveWay.RENAME),  # the request has the condition that there is no target
    ("com.google.cloud.hadoop.fs.gcs.", ExclusiveWay.NO_OVERWRITE),
)
"""Ways by the packages of file systems. Renames of S3A and of Google's connector are a look and a copy: up to all of 16
renames at once to one target have succeeded."""


@dataclass(frozen=True, slots=True)
class HadoopFileSystemKind:
    """A Hadoop file system, as the driver describes it.

    Args:
        class_name: name of its class.
        is_conditional: True if it can create a file on the condition that there is none.
    """

    class_name: str
    is_conditional: bool

    @property
    def way(self) -> ExclusiveWay | None:
        """How it creates files exclusively; None if nothing is known."""
        if self.is_conditional:
            return ExclusiveWay.CONDITIONAL
        return next((way for package, way in _WAYS if self.class_name.startswith(package)), None)


class HadoopStorage(FsspecStorage):
    """Files below a location on a Hadoop file system.

    *Exclusive create.* On HDFS, a file is written under a temporary name and renamed with `FileContext.rename` without
    `OVERWRITE`. The NameNode renames atomically under its lock, and answers a retried request with the first response
    (`FSNamesystem.renameTo`, `RetryCache`): only one of several drivers wins, and a reader sees the whole file or none.
    `create` without `OVERWRITE` is exclusive as well there, but exposes the file while it is empty. Other file systems
    create in their own way (`ExclusiveWay`). On those of which nothing is known, files are renamed too, and `probe`
    fails: an object store that copies and deletes lets several drivers win.

    *Durability.* A file is synced (`hsync`) before it is closed and renamed: its content is then on the disks of all
    DataNodes with a replica, and its name is in the NameNode's edit log. A file that is only closed is in the memory of
    those machines, and is lost if all of them lose power at once. If streams cannot sync, a closed file counts as
    durable.

    Args:
        calls: executor of the operations.
        location: the location in Hadoop's form.
    """

    def __init__(self, calls: HadoopCalls, location: str) -> None:
        super().__init__(HadoopFileSystem(calls, location), location, location)

    @property
    def renames(self) -> bool:
        """True on HDFS, whose NameNode renames under its lock."""
        return self.location.startswith(("hdfs:", "viewfs:", "webhdfs:", "swebhdfs:"))

    def probe(self, directory: str) -> None:
        """Attempts to create an existing file, and unless a NameNode decides, several at once.

        Raises:
            ExclusiveCreateUnsupportedError: a create won that should have lost, or nothing is known of the file system.
        """
        if self._fs.is_on_namenode:
            self._probe_in_sequence(directory)
            return
        kind: HadoopFileSystemKind = self._retry(directory, "create", lambda: self._fs.kind)
        if kind.way is None:
            raise self._not_exclusive(
                f"nothing is known of creates and renames of {kind.class_name}, and many file systems look for a file "
                "and then write it"
            )
        super().probe(directory)

    def _failed_create(self, name: str, error: Exception) -> CreateResult:
        if isinstance(error, _NotBegunError):
            return CreateResult(CreateOutcome.REFUSED, error.__cause__)
        return super()._failed_create(name, error)

    def write_chunks(self, name: str, chunks: Callable[[], Iterable[bytes]]) -> None:
        """Writes a file in chunks and replaces any existing one."""
        path = f"{self._root}/{checked_name(name, self.location)}"
        self._retry(name, "write", lambda: self._fs.pipe_chunks(path, chunks()))

    def remove_empty(self, directory: str) -> None:
        """Removes an empty directory."""
        with contextlib.suppress(OSError):
            self._fs.rmdir(f"{self._root}/{checked_name(directory, self.location)}")


class _NotBegunError(OSError):
    """A file was certainly not created, because the step that shows it was not begun. Its cause says why."""


class HadoopFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Subset of fsspec's interface used by `FsspecStorage`. Takes Hadoop paths with their scheme. Caches nothing.

    Args:
        calls: executor of the operations.
        location: path on the file system.
    """

    protocol = "hadoop"
    cachable = False

    def __init__(self, calls: HadoopCalls, location: str) -> None:
        super().__init__()
        self._calls = calls
        self._location = location
        self.is_on_namenode = location.partition(":")[0].lower() in _NAMENODE_SCHEMES
        """True if a NameNode decides which of several renames wins."""

    @cached_property
    def kind(self) -> HadoopFileSystemKind:
        """What the driver says of the file system.

        Raises:
            OSError: the driver cannot open it.
        """
        fields, _payload = self._calls.ask("file_system", self._location)
        return HadoopFileSystemKind(str(fields["class"]), bool(fields["conditional_create"]))

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:  # noqa: ANN401
        """Bytes of a file from `start` (default: 0) to `end` (exclusive) or the end of the file, if that is earlier."""
        parts: list[bytes | memoryview] = []
        at = start or 0
        while end is None or at < end:
            length = FRAME_BYTES if end is None else min(FRAME_BYTES, end - at)
            _fields, part = self._calls.ask("read", path, offset=at, length=length)
            parts.append(part)
            at += len(part)
            if len(part) < length:
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
        if mode != "create":
            self._put(path, parts, overwrite=True)
            return
        with _beginning():
            way = ExclusiveWay.RENAME if self.is_on_namenode else self.kind.way or ExclusiveWay.RENAME
        if way is ExclusiveWay.RENAME:
            self._put(path, parts, overwrite=False)
        else:
            self._write(path, parts, exclusive=way.value, upload=uuid.uuid4().hex)

    def pipe_chunks(self, path: str, chunks: Iterable[bytes]) -> None:
        """Writes a file from chunks of at most `FRAME_BYTES` each, and replaces any existing one.

        Raises:
            OSError: the file cannot be written, or the outcome is unknown.
        """
        self._put(path, chunks, overwrite=True)

    def _put(self, path: str, parts: Iterable[bytes | memoryview], *, overwrite: bool) -> None:
        temporary = f"{posixpath.dirname(path)}/{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
        try:
            with contextlib.nullcontext() if overwrite else _beginning():
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

    def _write(self, path: str, parts: Iterable[bytes | memoryview], **how: str) -> None:
        # The last call closes the file, so each part is held back until the next one, or the end, is known.
        rest = iter(parts)
        part, is_first = next(rest, b""), True
        for following in rest:
            self._calls.ask("write", path, part, first=is_first, last=False, **how)
            part, is_first = following, False
        self._calls.ask("write", path, part, first=is_first, last=True, **how)

    def _rename(self, temporary: str, path: str, overwrite: bool) -> None:
        try:
            self._calls.ask("rename", temporary, target=path, overwrite=overwrite)
        except FileNotFoundError as e:
            # If the file system's client retries requests, an earlier try of this call may have moved the file.
            raise HadoopError(path, type(e).__name__, f"its temporary file disappeared: {e}") from e


@contextmanager
def _beginning() -> Iterator[None]:
    """Marks the errors of steps before a file can appear. Those of missing rights or directories say so themselves."""
    try:
        yield
    except (PermissionError, FileNotFoundError):
        raise
    except OSError as e:
        raise _NotBegunError(str(e)) from e


def _entry(directory: str, status: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": f"{directory}/{status['name']}",
        "size": status["size"],
        "type": "directory" if status["directory"] else "file",
        "modified": status["modified_ms"] / 1000,
    }
