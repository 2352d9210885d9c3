"""Storage on an fsspec file system: S3 through s3fs, and memory for tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, TypeVar

from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.errors import (
    DriverGoneError,
    ExclusiveCreateUnsupportedError,
    HadoopError,
    SparkCkptError,
    StateFileNotFoundError,
    StorageError,
)
from spark_ckpt.storage.base import CreateOutcome, CreateResult, FileInfo, Storage, checked_name

_T = TypeVar("_T")

_RETRIES = 5
_FIRST_PAUSE_SECONDS = 0.2
"""A request that is refused, as S3 does when there are too many, has 6 s to be heard; one that waits for an answer
until the client gives up (10 s on S3) takes a minute. The JVM waits longer for the coordinator (`bridge.timeout`)."""

_CONDITION_FAILED = ("PreconditionFailed", "412")
_NOT_IMPLEMENTED = ("NotImplemented", "501")
"""Error codes of S3. Where an answer has no body, the HTTP status stands for it."""

_WAY_OUT = (
    "If the storage is slow or refuses so many requests, wait for it, or give it fewer to do; else see that its "
    "address and the credentials are right. Then try again"
)

# Exclusive only among the threads of this process, which is where a memory file system lives.
_MEMORY_LOCK = threading.Lock()


class FsspecStorage(Storage):
    """Files below a path of an fsspec file system on which a file appears whole when it is put.

    The file system's own `mode="create"` creates exclusively; on S3 that is a conditional put. Some servers ignore the
    condition without a word, so `probe` must be called once before an exclusive create is relied upon.

    Args:
        fs: an fsspec file system.
        root: path on it.
        location: the location for messages; without credentials.
        clock: for the pauses between retries.
    """

    def __init__(self, fs: Any, root: str, location: str, clock: Clock | None = None) -> None:  # noqa: ANN401
        super().__init__(location)
        self._fs = fs
        self._root = root.rstrip("/")
        self._clock = clock or SystemClock()
        self._is_memory = "memory" in _protocols(fs)
        self._is_s3 = "s3" in _protocols(fs)

    @property
    def is_remote(self) -> bool:
        """It is, unless it is the memory of this process."""
        return not self._is_memory

    @property
    def writes_whole(self) -> bool:
        """S3 does: an object appears with all of the bytes that its request said it has, or not at all."""
        return self._is_s3

    def read(self, name: str) -> bytes:
        """All bytes of a file."""
        path = self._path(name)
        return bytes(self._retry(name, "read", lambda: self._fs.cat_file(path)))

    def read_range(self, name: str, offset: int, length: int) -> bytes:
        """A part of a file."""
        path = self._path(name)
        return bytes(self._retry(name, "read", lambda: self._fs.cat_file(path, start=offset, end=offset + length)))

    def write_atomic(self, name: str, data: bytes) -> None:
        """Writes a file, in place of one that may be there."""
        path = self._path(name)
        self._retry(name, "write", lambda: self._fs.pipe_file(path, data))

    def write_chunks(self, name: str, chunks: Callable[[], Iterable[bytes]]) -> None:
        """Writes a file in parts, in place of one that may be there; on S3 as a multipart upload."""
        if self._is_memory:
            super().write_chunks(name, chunks)
            return
        path = self._path(name)

        def write() -> None:
            # Without this, fsspec would show what there is of it when the file is closed after an error.
            file = self._fs.open(path, "wb", autocommit=False)
            try:
                with file:
                    file.writelines(chunks())
            except BaseException:
                file.discard()
                raise
            file.commit()

        self._retry(name, "write", write)

    def create_exclusive(self, name: str, data: bytes) -> CreateResult:
        """Creates a file if there is none of that name."""
        path = self._path(name)
        try:
            if self._is_memory:
                with _MEMORY_LOCK:
                    self._fs.pipe_file(path, data, mode="create")
            else:
                self._fs.pipe_file(path, data, mode="create")
        except FileExistsError:
            return CreateResult(CreateOutcome.LOST)
        except (PermissionError, FileNotFoundError) as e:
            raise StorageError(self.describe(name), "create", e) from e
        except (NotImplementedError, TypeError) as e:
            raise ExclusiveCreateUnsupportedError(self.describe(name), str(e)) from e
        except Exception as e:  # whatever the client raises, the request may have left
            code = _s3_code(e)
            if code in _CONDITION_FAILED:  # s3fs says that a file exists only if S3 has named the condition
                return CreateResult(CreateOutcome.LOST)
            if code in _NOT_IMPLEMENTED:
                raise ExclusiveCreateUnsupportedError(self.describe(name), str(e)) from e
            return CreateResult(CreateOutcome.UNKNOWN, e)
        return CreateResult(CreateOutcome.WON)

    def list(self, directory: str) -> Sequence[FileInfo]:
        """The files and directories directly below a directory."""
        path = self._path(directory) if directory else self._root
        try:
            entries = self._retry(directory, "list", lambda: self._fresh_listing(path))
        except FileNotFoundError:
            return []
        return [
            FileInfo(name, int(entry.get("size") or 0), entry["type"] == "directory", _modified_ms(entry))
            for entry in entries
            if (name := str(entry["name"]).rstrip("/").rpartition("/")[2]) and str(entry["name"]).rstrip("/") != path
        ]

    def delete(self, name: str) -> bool:
        """Deletes a file. An object store does not say whether there was one: then it counts as there."""
        path = self._path(name)
        try:
            self._retry(name, "delete", lambda: self._fs.rm_file(path))
        except FileNotFoundError:
            return False
        return True

    def delete_all(self, names: Sequence[str]) -> None:
        """Deletes files; on S3 a thousand with one request, which says nothing of a file that it could not delete."""
        if not self._is_s3:
            super().delete_all(names)
        elif names:
            paths = [self._path(name) for name in names]
            self._retry(names[0], "delete", lambda: self._fs.rm(paths))

    def size(self, name: str) -> int:
        """Number of bytes of a file."""
        path = self._path(name)

        def ask() -> int:
            self._fs.invalidate_cache(path)
            info = self._fs.info(path)
            if info["type"] == "directory":
                raise FileNotFoundError(path)
            return int(info["size"])

        return self._retry(name, "read", ask)

    def probe(self, name: str) -> None:
        """Finds out whether the storage keeps to `create_exclusive`, by creating a file where there is one.

        Args:
            name: of a file that does not exist; deleted again.

        Raises:
            ExclusiveCreateUnsupportedError: the create did not lose.
            StorageError: the file cannot be written at all, or the storage does not say how the create ended.
        """

        def create() -> CreateOutcome:
            result = self.create_exclusive(name, b"2")
            if result.cause is not None:
                raise result.cause
            return result.outcome

        self.write_atomic(name, b"1")
        try:
            outcome = self._retry(name, "create", create)
        finally:
            self.delete(name)
        if outcome is not CreateOutcome.LOST:
            raise ExclusiveCreateUnsupportedError(self.location, "it replaced a file that was there")

    def _path(self, name: str) -> str:
        return f"{self._root}/{checked_name(name, self.location)}"

    def _fresh_listing(self, path: str) -> Sequence[Mapping[str, Any]]:
        self._fs.invalidate_cache(path)
        found: Sequence[Mapping[str, Any]] = self._fs.ls(path, detail=True)
        return found

    def _retry(self, name: str, operation: str, call: Callable[[], _T]) -> _T:
        pause = _FIRST_PAUSE_SECONDS
        for attempt in range(_RETRIES + 1):
            try:
                return call()
            except (PermissionError, DriverGoneError) as e:  # noqa: PERF203
                raise StorageError(self.describe(name), operation, e) from e
            except FileNotFoundError as e:
                raise StateFileNotFoundError(self.describe(name)) from e
            except Exception as e:  # clients raise their libraries' errors as well as OSError
                if isinstance(e, SparkCkptError) and not isinstance(e, HadoopError):
                    raise  # of another storage, from which this one is fed
                if attempt == _RETRIES:
                    reason = f"{e} ({attempt + 1} tries). {_WAY_OUT}"
                    raise StorageError(self.describe(name), operation, reason) from e
                self._clock.sleep(pause)
                pause *= 2
        raise AssertionError("unreachable")


def _modified_ms(entry: Mapping[str, Any]) -> int | None:
    """When a file was written. fsspec leaves the name of that field to each file system, and its type."""
    if (milliseconds := entry.get("modificationTime")) is not None:  # WebHDFS
        return int(milliseconds)
    for field in ("LastModified", "last_modified", "mtime", "modified", "created"):
        value = entry.get(field)
        if isinstance(value, datetime):
            return int((value if value.tzinfo else value.replace(tzinfo=timezone.utc)).timestamp() * 1000)
        if isinstance(value, int | float):
            return int(value * 1000)
    return None


def _s3_code(error: Exception) -> str | None:
    """The code of S3's answer that s3fs has made an error of its own from (`botocore.exceptions.ClientError`)."""
    response = getattr(error.__cause__, "response", None)
    return str(response["Error"].get("Code")) if response else None


def _protocols(fs: Any) -> tuple[str, ...]:  # noqa: ANN401
    protocol = fs.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)
