"""Storage in a local directory, or on a mount with hard links."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from spark_ckpt.errors import SparkCkptError, StateFileNotFoundError, StorageError
from spark_ckpt.storage.base import CreateOutcome, CreateResult, FileInfo, Storage, checked_name
from spark_ckpt.storage.errors import ExclusiveCreateUnsupportedError

TEMPORARY_PREFIX = ".tmp-"
"""Name prefix of files being written. `list` hides them for an hour; older ones were left behind by a crash."""

_MAX_TEMPORARY_SECONDS = 3600

_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS, errno.EXDEV}


class LocalStorage(Storage):
    """Files in a directory.

    A file is written under a temporary name, synced, and then published: with `os.replace`, or with `os.link` if it
    must not exist yet. Then its directory is synced, and the names of all directories that this storage has not synced
    before, because a file is lost without its directory. Linking is POSIX's only exclusive create of a whole file:
    opening with `O_EXCL` exposes a partial file, and checking before writing does not exclude other processes.

    Args:
        root: the directory; created with the first file.
        durable: True if files must survive a crash of the machine, not only of the process.
    """

    def __init__(self, root: str | os.PathLike[str], durable: bool = True) -> None:
        self._root = Path(os.path.abspath(root))
        self._durable = durable
        self._settled: set[Path] = set()  # directories whose names are synced in their parents
        self._made: set[Path] = set()  # directories created here whose names are not yet synced
        super().__init__(str(self._root))

    @property
    def renames(self) -> bool:
        """True."""
        return True

    def read(self, name: str) -> bytes:
        """All bytes of a file."""
        path = self._path(name)
        try:
            return path.read_bytes()
        except OSError as e:
            raise self._error(path, "read", e) from e

    def read_range(self, name: str, offset: int, length: int) -> bytes:
        """Range of a file."""
        path = self._path(name)
        try:
            with path.open("rb") as file:
                file.seek(offset)
                return file.read(length)
        except OSError as e:
            raise self._error(path, "read", e) from e

    def write_atomic(self, name: str, data: bytes) -> None:
        """Writes a file and replaces any existing one."""
        self.write_chunks(name, lambda: (data,))

    def write_chunks(self, name: str, chunks: Callable[[], Iterable[bytes]]) -> None:
        """Writes a file in chunks and replaces any existing one."""
        path = self._path(name)
        temporary = self._write_temporary(path, chunks())
        try:
            os.replace(temporary, path)
            self._settle(path.parent)
        except OSError as e:
            raise self._error(path, "write", e) from e
        finally:
            _remove_quietly(temporary)

    def create_exclusive(self, name: str, data: bytes) -> CreateResult:
        """Creates a file unless one of that name exists."""
        path = self._path(name)
        temporary = self._write_temporary(path, (data,))
        try:
            return self._link(temporary, path)
        finally:
            _remove_quietly(temporary)

    def make_durable(self, name: str) -> None:
        """Syncs a file and its name."""
        path = self._path(name)
        if not self._durable:
            return
        try:
            with path.open("rb") as file:
                os.fsync(file.fileno())
        except OSError as e:
            raise self._error(path, "read", e) from e
        try:
            self._settle(path.parent)
        except OSError as e:
            raise self._error(path, "sync", e) from e

    def list(self, directory: str) -> Sequence[FileInfo]:
        """Files and directories directly below a directory."""
        path = self._path(directory) if directory else self._root
        result = []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    try:
                        info = entry.stat()
                    except FileNotFoundError:
                        continue  # deleted after the directory was read
                    if entry.name.startswith(TEMPORARY_PREFIX) and info.st_mtime > time.time() - _MAX_TEMPORARY_SECONDS:
                        continue
                    is_directory = entry.is_dir()
                    size = 0 if is_directory else info.st_size
                    result.append(FileInfo(entry.name, size, is_directory, info.st_mtime_ns // 1_000_000))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as e:
            raise self._error(path, "list", e) from e
        return result

    def delete(self, name: str) -> bool:
        """Deletes a file and its checksum file, if Hadoop wrote one."""
        path = self._path(name)
        try:
            path.unlink()
            result = True
        except (FileNotFoundError, NotADirectoryError):
            result = False
        except OSError as e:
            raise self._error(path, "delete", e) from e
        _remove_quietly(path.with_name(f".{path.name}.crc"))
        return result

    def sync_deletions(self, directory: str) -> None:
        """Makes deletions of files directly below a directory durable."""
        path = self._path(directory) if directory else self._root
        if not self._durable:
            return
        try:
            _sync_directory(path)
        except FileNotFoundError:
            return  # nothing was deleted there
        except OSError as e:
            raise self._error(path, "sync", e) from e

    def free_bytes(self) -> int | None:
        """Free bytes of the file system, for this user."""
        try:
            return shutil.disk_usage(self._root).free
        except OSError as e:
            raise self._error(self._root, "read", e) from e

    def first_link(self, directory: str) -> str | None:
        """Name of a symbolic link: the directory itself or one below it."""
        path = self._path(directory)
        try:
            found = path if path.is_symlink() else _first_link_below(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as e:
            raise self._error(path, "list", e) from e
        return None if found is None else found.relative_to(self._root).as_posix()

    def make_directory(self, directory: str) -> None:
        """Creates a directory."""
        path = self._path(directory)
        try:
            self._make(path)
            self._settle(path)
        except OSError as e:
            raise self._error(path, "create", e) from e

    def remove_empty(self, directory: str) -> None:
        """Removes an empty directory."""
        path = self._path(directory)
        self._settled.discard(path)
        with contextlib.suppress(OSError):
            path.rmdir()

    def size(self, name: str) -> int:
        """Number of bytes of a file."""
        path = self._path(name)
        try:
            return path.stat().st_size
        except OSError as e:
            raise self._error(path, "read", e) from e

    def _path(self, name: str) -> Path:
        return self._root / checked_name(name, self.location)

    def _write_temporary(self, path: Path, chunks: Iterable[bytes]) -> Path:
        temporary = path.with_name(f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}")
        try:
            file = self._open(temporary)
            with file:
                file.writelines(chunks)
                file.flush()
                if self._durable:
                    os.fsync(file.fileno())
        except SparkCkptError:
            _remove_quietly(temporary)
            raise
        except OSError as e:
            _remove_quietly(temporary)
            raise self._error(path, "write", e) from e
        return temporary

    def _open(self, path: Path) -> BinaryIO:
        try:
            return path.open("xb")
        except FileNotFoundError:
            self._make(path.parent)
            return path.open("xb")

    def _link(self, temporary: Path, path: Path) -> CreateResult:
        try:
            os.link(temporary, path)
        except FileExistsError:
            # On NFS, a retried request gets "exists" for its own link; the link count tells the difference.
            if os.stat(temporary).st_nlink < 2:
                return CreateResult(CreateOutcome.LOST)
        except OSError as e:
            if e.errno in _NO_HARD_LINKS:
                raise ExclusiveCreateUnsupportedError(str(path), f"no hard links: {e}") from e
            if e.errno in (errno.EIO, errno.ETIMEDOUT, errno.ESTALE, errno.EINTR):
                return CreateResult(CreateOutcome.UNKNOWN, e)
            raise self._error(path, "create", e) from e
        try:
            self._settle(path.parent)
        except OSError as e:
            # Other processes may already rely on the file, so it stays.
            return CreateResult(CreateOutcome.LOST, e)
        return CreateResult(CreateOutcome.WON)

    def _make(self, directory: Path) -> None:
        """Creates a directory and its parents. Their names are synced with the next file in it."""
        for path in (directory, *directory.parents):
            if path.exists():
                break
            self._settled.discard(path)
            self._made.add(path)
        directory.mkdir(parents=True, exist_ok=True)

    def _settle(self, directory: Path) -> None:
        """Makes the names in a directory durable, and the name of the directory itself.

        Each storage syncs a directory's own name once, even if another process created it: an executor, or a driver
        that died before it synced the name.
        """
        if not self._durable:
            return
        _sync_directory(directory)
        for path in (directory, *directory.parents):
            is_below = path != self._root and path.is_relative_to(self._root)
            if path in self._settled or not (is_below or path in self._made):
                break
            _sync_directory(path.parent)
            self._settled.add(path)
            self._made.discard(path)

    def _error(self, path: Path, operation: str, cause: OSError) -> StorageError:
        if isinstance(cause, FileNotFoundError) and operation == "read":
            return StateFileNotFoundError(str(path))
        return StorageError(str(path), operation, cause.strerror or cause)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_quietly(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _first_link_below(path: Path) -> Path | None:
    with os.scandir(path) as entries:
        below = list(entries)
    for entry in below:
        if entry.is_symlink():
            return Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(FileNotFoundError):  # removed after the listing
                if (result := _first_link_below(Path(entry.path))) is not None:
                    return result
    return None
