"""Storage in a directory of this machine, or of a mount that has hard links."""

from __future__ import annotations

import contextlib
import errno
import os
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from spark_ckpt.errors import SparkCkptError, StateFileNotFoundError, StorageError
from spark_ckpt.storage.base import CreateOutcome, CreateResult, FileInfo, Storage, checked_name
from spark_ckpt.storage.errors import ExclusiveCreateUnsupportedError

TEMPORARY_PREFIX = ".tmp-"
"""Prefix of the names of files that are being written. `list` leaves them out until they are an hour old: then a crash
has left them behind."""

_LEFT_BEHIND_SECONDS = 3600

_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS, errno.EXDEV}


class LocalStorage(Storage):
    """Files of a directory.

    A file is written under a temporary name, made durable, and then shown: by `os.replace`, or by `os.link` where it
    must not exist. Then its directory is synced, and the names of directories that this storage has not synced before:
    without its directory a file is lost. Linking is the only exclusive create of a whole file that POSIX has: opening
    with `O_EXCL` shows a part of it, and asking before writing excludes no other process.

    Args:
        root: the directory; made when the first file is written.
        durable: True if a file must survive a crash of the machine, not only of the process.
    """

    def __init__(self, root: str | os.PathLike[str], durable: bool = True) -> None:
        self._root = Path(os.path.abspath(root))
        self._durable = durable
        self._settled: set[Path] = set()  # directories whose own names are synced
        self._made: set[Path] = set()  # directories made here whose names are not
        super().__init__(str(self._root))

    def read(self, name: str) -> bytes:
        """All bytes of a file."""
        path = self._path(name)
        try:
            return path.read_bytes()
        except OSError as e:
            raise self._error(path, "read", e) from e

    def read_range(self, name: str, offset: int, length: int) -> bytes:
        """A part of a file."""
        path = self._path(name)
        try:
            with path.open("rb") as file:
                file.seek(offset)
                return file.read(length)
        except OSError as e:
            raise self._error(path, "read", e) from e

    def write_atomic(self, name: str, data: bytes) -> None:
        """Writes a file, in place of one that may be there."""
        self.write_chunks(name, lambda: (data,))

    def write_chunks(self, name: str, chunks: Callable[[], Iterable[bytes]]) -> None:
        """Writes a file in parts, in place of one that may be there."""
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
        """Creates a file if there is none of that name."""
        path = self._path(name)
        temporary = self._write_temporary(path, (data,))
        try:
            return self._link(temporary, path)
        finally:
            _remove_quietly(temporary)

    def list(self, directory: str) -> Sequence[FileInfo]:
        """The files and directories directly below a directory."""
        path = self._path(directory) if directory else self._root
        found = []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    try:
                        info = entry.stat()
                    except FileNotFoundError:
                        continue  # deleted since the directory was read
                    if entry.name.startswith(TEMPORARY_PREFIX) and info.st_mtime > time.time() - _LEFT_BEHIND_SECONDS:
                        continue
                    is_directory = entry.is_dir()
                    size = 0 if is_directory else info.st_size
                    found.append(FileInfo(entry.name, size, is_directory, info.st_mtime_ns // 1_000_000))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as e:
            raise self._error(path, "list", e) from e
        return found

    def delete(self, name: str) -> bool:
        """Deletes a file, and the checksum file that Hadoop may have put beside it."""
        path = self._path(name)
        try:
            path.unlink()
            found = True
        except (FileNotFoundError, NotADirectoryError):
            found = False
        except OSError as e:
            raise self._error(path, "delete", e) from e
        _remove_quietly(path.with_name(f".{path.name}.crc"))
        return found

    def sync_deletions(self, directory: str) -> None:
        """Makes the deletions of files directly below a directory durable."""
        path = self._path(directory)
        if not self._durable:
            return
        try:
            _sync_directory(path)
        except FileNotFoundError:
            return  # nothing was deleted there
        except OSError as e:
            raise self._error(path, "sync", e) from e

    def first_link(self, directory: str) -> str | None:
        """Name of a symbolic link that is the directory, or lies below it."""
        path = self._path(directory)
        try:
            found = path if path.is_symlink() else _first_link_below(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as e:
            raise self._error(path, "list", e) from e
        return None if found is None else found.relative_to(self._root).as_posix()

    def make_directory(self, directory: str) -> None:
        """Makes a directory."""
        path = self._path(directory)
        try:
            self._make(path)
            self._settle(path)
        except OSError as e:
            raise self._error(path, "create", e) from e

    def remove_empty(self, directory: str) -> None:
        """Removes a directory that has nothing in it."""
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
            # Over NFS a repeated request is told "exists" of its own link; the number of links tells the truth.
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
            return CreateResult(CreateOutcome.UNKNOWN, e)
        return CreateResult(CreateOutcome.WON)

    def _make(self, directory: Path) -> None:
        """Makes a directory and those above it. Their names are synced with the next file in it."""
        for path in (directory, *directory.parents):
            if path.exists():
                break
            self._settled.discard(path)
            self._made.add(path)
        directory.mkdir(parents=True, exist_ok=True)

    def _settle(self, directory: Path) -> None:
        """Makes the names in a directory durable, and the name of the directory itself.

        A directory's own name is synced once by each storage, whichever process has made it: an executor may have, or a
        driver that died before it had synced it.
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
            with contextlib.suppress(FileNotFoundError):  # removed since it was listed
                if (found := _first_link_below(Path(entry.path))) is not None:
                    return found
    return None
