"""Storage on fsspec file systems, including the memory file system for tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import Any, TypeVar

from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.errors import SparkCkptError, StateFileNotFoundError, StorageError
from spark_ckpt.storage.base import CreateOutcome, CreateResult, FileInfo, Storage, checked_name
from spark_ckpt.storage.errors import DriverGoneError, ExclusiveCreateUnsupportedError, HadoopError
from spark_ckpt.storage.probing import ROUNDS, SEVERAL_WON, probe_names, several_won
from spark_ckpt.storage.request import Request

_T = TypeVar("_T")

_WRITES = ("write", "create")

_RETRIES = 5
_FIRST_PAUSE_SECONDS = 0.2
"""First pause between tries; doubles with each. A rejected request, as when S3 throttles, is retried for 6 s; one that
runs into the client's read timeout each time (10 s on S3) fails after a minute. The JVM waits longer for the
coordinator (`bridge.timeout`)."""

READERS = 64
"""Maximum number of files read concurrently: with default settings, the log is read at a start in one round."""

_WAY_OUT = (
    "If the storage is slow or throttles requests, wait or reduce the load; otherwise check its "
    "address and credentials. Then try again"
)


class FsspecStorage(Storage):
    """Files below a path of an fsspec file system that makes a file visible only as a whole.

    Paths are literal, so only fsspec methods that do not expand patterns are called: `rm_file` instead of `rm`,
    `cat_file` instead of `cat`, `pipe_file` instead of `pipe`.

    The file system's own `mode="create"` provides the exclusive create; on S3 that is a conditional put.

    Args:
        fs: fsspec file system.
        root: path on the file system.
        location: the location for messages, without credentials.
        clock: clock for the pauses between retries.
    """

    def __init__(self, fs: Any, root: str, location: str, clock: Clock | None = None) -> None:  # noqa: ANN401
        super().__init__(location)
        self._fs = fs
        self._root = root.rstrip("/")
        self._clock = clock or SystemClock()

    @property
    def requests_are_slow(self) -> bool:
        """True: requests cross a network."""
        return True

    @property
    def defers_deletions(self) -> bool:
        """True: saves the requests that would prove ownership."""
        return True

    def begin(self, call: Callable[[], _T]) -> Request[_T]:
        """Begins requests on another thread."""
        request = Request(call)
        if self.requests_are_slow:
            request.start()
        return request

    def read(self, name: str) -> bytes:
        """All bytes of a file."""
        path = self._path(name)
        return bytes(self._retry(name, "read", lambda: self._fs.cat_file(path)))

    def read_range(self, name: str, offset: int, length: int) -> bytes:
        """Range of a file."""
        path = self._path(name)
        if length <= 0:  # HTTP has no empty range
            self.size(name)
            return b""

        def read() -> bytes:
            try:
                return bytes(self._fs.cat_file(path, start=offset, end=offset + length))
            except Exception as e:
                if self._is_past_end(e):
                    return b""
                raise

        return self._retry(name, "read", read)

    def read_many(self, names: Sequence[str]) -> dict[str, bytes | StorageError]:
        """All bytes of several files."""
        if len(names) < 2:
            return super().read_many(names)
        with ThreadPoolExecutor(min(READERS, len(names)), "spark-ckpt-reader") as readers:
            return dict(zip(names, readers.map(self._read_or_error, names), strict=True))

    def write_atomic(self, name: str, data: bytes) -> None:
        """Writes a file and replaces any existing one."""
        path = self._path(name)
        self._retry(name, "write", lambda: self._fs.pipe_file(path, data))

    def write_chunks(self, name: str, chunks: Callable[[], Iterable[bytes]]) -> None:
        """Writes a file in chunks and replaces any existing one; on S3 as a multipart upload."""
        path = self._path(name)

        def write() -> None:
            # With autocommit, fsspec would publish a partial file when it is closed after an error.
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
        """Creates a file unless one of that name exists. Retries while it is refused, but not without an answer."""
        result = self._create_once(name, data)
        for attempt in range(_RETRIES):
            if result.outcome is not CreateOutcome.REFUSED:
                break
            self._clock.sleep(_FIRST_PAUSE_SECONDS * 2**attempt)
            result = self._create_once(name, data)
        return result

    def _create_once(self, name: str, data: bytes) -> CreateResult:
        path = self._path(name)
        try:
            self._fs.pipe_file(path, data, mode="create")
        except Exception as e:
            return self._not_created(name, e)
        return CreateResult(CreateOutcome.WON)

    def _not_created(self, name: str, error: Exception) -> CreateResult:
        """Outcome of an exclusive create that raised an error."""
        if isinstance(error, FileExistsError):
            return CreateResult(CreateOutcome.LOST)
        if isinstance(error, (PermissionError, FileNotFoundError)):
            raise StorageError(self.describe(name), "create", error) from error
        if isinstance(error, (NotImplementedError, TypeError)):
            raise ExclusiveCreateUnsupportedError(self.describe(name), str(error)) from error
        return self._failed_create(name, error)  # the request may have been sent

    def list(self, directory: str) -> Sequence[FileInfo]:
        """Files and directories directly below a directory."""
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
        """Deletes a file. An object store does not report whether it existed: then it counts as deleted."""
        path = self._path(name)
        try:
            self._retry(name, "delete", lambda: self._fs.rm_file(path))
        except FileNotFoundError:
            return False
        return True

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

    def probe(self, directory: str) -> None:
        """Attempts to create an existing file, and to create files several times at once.

        Some servers silently ignore the condition of a conditional put. Others check it before they write, so that
        concurrent creates all succeed. About as long as four requests in sequence.
        """
        second, overlapping, *raced = names = probe_names(directory, 2 + ROUNDS)
        overlap = Request(lambda: self._overlapping_creates_won(overlapping))
        race = Request(lambda: several_won(self, raced))
        try:
            overlap.start()
            race.start()
            self._probe_second_create(second)
            if overlap.result():
                raise self._not_exclusive("a create that began before another one and ended after it succeeded, too")
            if race.result():
                raise self._not_exclusive(SEVERAL_WON)
        finally:
            for request in (overlap, race):
                request.wait()
            self.delete_all(names)

    def _probe_in_sequence(self, directory: str) -> None:
        (name,) = probe_names(directory, 1)
        try:
            self._probe_second_create(name)
        finally:
            self.delete(name)

    def _probe_second_create(self, name: str) -> None:
        def create() -> CreateOutcome:
            result = self._create_once(name, b"2")
            if result.cause is not None:
                raise result.cause
            return result.outcome

        self.write_atomic(name, b"1")
        if self._retry(name, "create", create) is not CreateOutcome.LOST:
            raise self._not_exclusive("it replaced an existing file")

    def _not_exclusive(self, reason: str) -> ExclusiveCreateUnsupportedError:
        return ExclusiveCreateUnsupportedError(self.location, reason, is_writable=True)

    def _overlapping_creates_won(self, name: str) -> bool:
        """True if two creates of a file both succeed if one begins before the other and ends after it. False if this
        storage cannot hold a request back."""
        return False

    def _is_past_end(self, error: Exception) -> bool:
        """True if a range was refused because the file ends before it."""
        # Google's client names the HTTP status `code`, Azure's `status_code`, aiohttp `status`.
        return any(getattr(error, name, None) in (416, "416") for name in ("code", "status_code", "status"))

    def _is_final(self, error: Exception) -> bool:
        """True if another try would fail with the same error."""
        return isinstance(error, (PermissionError, DriverGoneError))

    def _failed_create(self, name: str, error: Exception) -> CreateResult:
        """Outcome of an exclusive create whose request may have been sent."""
        return CreateResult(CreateOutcome.UNKNOWN, error)

    def _path(self, name: str) -> str:
        return f"{self._root}/{checked_name(name, self.location)}"

    def _fresh_listing(self, path: str) -> Sequence[Mapping[str, Any]]:
        self._fs.invalidate_cache(path)
        result: Sequence[Mapping[str, Any]] = self._fs.ls(path, detail=True)
        return result

    def _retry(self, name: str, operation: str, call: Callable[[], _T]) -> _T:
        pause = _FIRST_PAUSE_SECONDS
        for attempt in range(_RETRIES + 1):
            try:
                return call()
            except StateFileNotFoundError:  # noqa: PERF203
                raise  # from another storage, the source of a copy
            except FileNotFoundError as e:
                if operation in _WRITES:
                    raise StorageError(self.describe(name), operation, f"no such bucket or directory ({e})") from e
                raise StateFileNotFoundError(self.describe(name)) from e
            except Exception as e:  # clients raise their libraries' errors as well as OSError
                if self._is_final(e):
                    raise StorageError(self.describe(name), operation, e) from e
                if isinstance(e, SparkCkptError) and not isinstance(e, HadoopError):
                    raise  # from another storage, the source of a copy
                if attempt == _RETRIES:
                    reason = f"{e} ({attempt + 1} tries). {_WAY_OUT}"
                    raise StorageError(self.describe(name), operation, reason) from e
                self._clock.sleep(pause)
                pause *= 2
        raise AssertionError("unreachable")


def _modified_ms(entry: Mapping[str, Any]) -> int | None:
    """Time of the last write in milliseconds. fsspec file systems differ in the field's name and type."""
    if (milliseconds := entry.get("modificationTime")) is not None:  # WebHDFS
        return int(milliseconds)
    for field in ("LastModified", "last_modified", "mtime", "modified", "created"):
        value = entry.get(field)
        if isinstance(value, datetime):
            return int((value if value.tzinfo else value.replace(tzinfo=timezone.utc)).timestamp() * 1000)
        if isinstance(value, int | float):
            return int(value * 1000)
    return None


class MemoryStorage(FsspecStorage):
    """Files in memory of this process."""

    # A memory file system lives in one process, so an exclusive create only has to exclude other threads.
    _lock = threading.Lock()

    @property
    def requests_are_slow(self) -> bool:
        """False."""
        return False

    @property
    def defers_deletions(self) -> bool:
        """False."""
        return False

    def read_many(self, names: Sequence[str]) -> dict[str, bytes | StorageError]:
        """All bytes of several files, one after another."""
        return Storage.read_many(self, names)

    def write_chunks(self, name: str, chunks: Callable[[], Iterable[bytes]]) -> None:
        """Writes a file like `write_atomic`."""
        Storage.write_chunks(self, name, chunks)

    def probe(self, directory: str) -> None:
        """Attempts to create an existing file: no other process could race for it."""
        self._probe_in_sequence(directory)

    def _create_once(self, name: str, data: bytes) -> CreateResult:
        with self._lock:
            return super()._create_once(name, data)
