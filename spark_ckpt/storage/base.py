"""Contract of a storage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from spark_ckpt.errors import StorageError
from spark_ckpt.redaction import redacted
from spark_ckpt.storage.errors import PathEscapeError
from spark_ckpt.storage.request import Request

_T = TypeVar("_T")

DIRECTORY_MARKER = ".directory"
"""Name of the empty file that `make_directory` writes on storages without directories."""


class CreateOutcome(Enum):
    """Outcome of an exclusive create."""

    WON = "won"
    """The file did not exist before and now has exactly the given bytes."""
    LOST = "lost"
    """The file exists, perhaps by an earlier try of the same call, if a lower layer retries requests. It need not be
    durable (`make_durable`)."""
    REFUSED = "refused"
    """The request was refused for now: it has no effect, and never will. Try again."""
    UNKNOWN = "unknown"
    """The request may take effect, now or later. Read the file, or create it again with the same bytes."""


@dataclass(frozen=True, slots=True)
class CreateResult:
    """Outcome of an exclusive create.

    Args:
        outcome: the outcome.
        cause: the error behind a refused or unknown outcome, or behind a file that is not durable.
    """

    outcome: CreateOutcome
    cause: BaseException | None = None


@dataclass(frozen=True, slots=True)
class FileInfo:
    """Entry of a listing.

    Args:
        name: name without the directory.
        size: size in bytes; 0 for a directory.
        is_directory: True for a directory; on an object store, a prefix of other names.
        modified_ms: time of the last write in milliseconds since 1970 UTC; None if the storage does not say.
    """

    name: str
    size: int
    is_directory: bool = False
    modified_ms: int | None = field(default=None, compare=False)


class Storage(ABC):
    """Files below one location. Names are relative to it and separated by `/`. Thread-safe.

    The guarantees are those that Delta requires of a `LogStore`; the coordinator relies on no others:

    1. *Atomic visibility.* `write_atomic` and `create_exclusive` show a reader the whole file or none.
    2. *Mutual exclusion.* Among all `create_exclusive` calls for a name, in any process on any machine, at most one
       wins.
    3. *Consistent listing.* Once a create or write has returned, every later `list`, `read` and `exists` sees it.
    4. *Durability.* Once `write_atomic`, `write_chunks`, `make_durable` or `make_directory` has returned, or
       `create_exclusive` has won, the content of the file, its name, and the names of all directories above it survive
       a power loss. Before that, a power loss leaves the file, nothing, or a temporary file (`.tmp-...`) that is
       empty, truncated or whole.
       A file being replaced is either the old or the new one.
    5. *Deletions are not durable.* A power loss may undo `delete`, `delete_all` and `remove_empty`, individually and in
       any order, unless `sync_deletions` has returned since. References to a file are deleted, and that deletion is
       synced, before the file itself. A file that reappears is therefore an orphan.

    Executors write state files through Hadoop, outside this contract. On `file:` they are durable, name and content,
    before an acknowledgement names them; on HDFS they are only closed (`docs/storage.md`).

    Files are immutable, so there is no append, rename or lock. Failures raise a `StorageError` that names the file,
    after as many retries as the implementation deems appropriate.
    """

    def __init__(self, location: str) -> None:
        self.location = redacted(location)
        """Location for messages: a path or URL without credentials."""

    @property
    def requests_are_slow(self) -> bool:
        """True if avoiding a request is worth a delay or a thread. A performance hint only, not a guarantee."""
        return False

    @property
    def defers_deletions(self) -> bool:
        """True if obsolete files are deleted one checkpoint later, because that checkpoint proves that the driver still
        owns the location. Otherwise they are deleted at once, after a check of the log."""
        return False

    @property
    def writes_whole(self) -> bool:
        """True if a write that succeeds guarantees that the file exists with all its bytes."""
        return False

    @property
    def renames(self) -> bool:
        """True if Hadoop's file system for this storage renames atomically. Spark's `CheckpointFileManager` then makes
        a file appear by the rename of a temporary one."""
        return False

    def begin(self, call: Callable[[], _T]) -> Request[_T]:
        """Begins requests beside the caller, if they are slow; otherwise they run when their answer is needed.

        Args:
            call: the requests, on this storage.
        """
        return Request(call)

    def probe(self, directory: str) -> None:  # noqa: B027  (most storages need no proof)
        """Verifies that the storage honors `create_exclusive`, by an attempt to create an existing file, and by creates
        of one file at the same time. Required once before relying on exclusive creates.

        A probe is a screen, not a proof: a storage that lets two creates win now and then may pass.

        Args:
            directory: directory in which to create and delete files.

        Raises:
            ExclusiveCreateUnsupportedError: a create won that should have lost.
            StorageError: the file cannot be written, or the outcome of the create is unknown.
        """

    @abstractmethod
    def read(self, name: str) -> bytes:
        """All bytes of a file.

        Raises:
            StateFileNotFoundError: the file does not exist.
            StorageError: the file cannot be read.
        """

    def read_many(self, names: Sequence[str]) -> dict[str, bytes | StorageError]:
        """All bytes of several files, read concurrently if requests are slow.

        Returns:
            Content of each file by name, or the error that prevented reading it.
        """
        return {name: self._read_or_error(name) for name in names}

    def _read_or_error(self, name: str) -> bytes | StorageError:
        try:
            return self.read(name)
        except StorageError as e:
            return e

    @abstractmethod
    def write_atomic(self, name: str, data: bytes) -> None:
        """Writes a file and replaces any existing one; creates directories as needed. Durable on return.

        Raises:
            StorageError: the file cannot be written, or the outcome is unknown.
        """

    def write_chunks(self, name: str, chunks: Callable[[], Iterable[bytes]]) -> None:
        """Writes a file like `write_atomic`, but streams it if the storage can.

        Args:
            name: name of the file.
            chunks: returns the chunks of the file, from the first, on every call. If they raise, no file appears.

        Raises:
            StorageError: the file cannot be written, or the outcome is unknown.
        """
        self.write_atomic(name, b"".join(chunks()))

    @abstractmethod
    def create_exclusive(self, name: str, data: bytes) -> CreateResult:
        """Creates a file unless one of that name exists; creates directories as needed. If won, durable on return.

        Returns:
            Outcome of the create. `create_and_find` also resolves a lost or unknown one.

        Raises:
            StorageError: the file was certainly not created, and another try would fail too: no permission, no space.
            ExclusiveCreateUnsupportedError: the storage has no exclusive create.
        """

    def make_durable(self, name: str) -> None:  # noqa: B027  (most storages show durable files only)
        """Makes an existing file durable, as if it had just been written: its creator may have died, or failed,
        between the moment it became visible and that at which it was durable.

        Raises:
            StateFileNotFoundError: the file does not exist.
            StorageError: the file may not survive a power loss.
        """

    @abstractmethod
    def list(self, directory: str) -> Sequence[FileInfo]:
        """Files and directories directly below a directory, in no particular order; empty if it does not exist.

        Raises:
            StorageError: the directory cannot be listed.
        """

    @abstractmethod
    def delete(self, name: str) -> bool:
        """Deletes a file.

        Returns:
            True if the file existed. Deleting a missing file is no error: a deletion may be retried.

        Raises:
            StorageError: the file cannot be deleted, or the outcome is unknown.
        """

    def delete_all(self, names: Sequence[str]) -> None:
        """Deletes files in as few requests as possible; missing files are ignored.

        Raises:
            StorageError: a file cannot be deleted, or the outcome is unknown. All others were attempted.
        """
        failure: StorageError | None = None
        for name in names:
            try:
                self.delete(name)
            except StorageError as e:  # noqa: PERF203
                failure = failure or e
        if failure is not None:
            raise failure

    def sync_deletions(self, directory: str) -> None:  # noqa: B027  (most storages lose none)
        """Makes deletions of files directly below a directory durable, unless they already are.

        Raises:
            StorageError: the deletions may be undone.
        """

    @abstractmethod
    def size(self, name: str) -> int:
        """Number of bytes of a file.

        Raises:
            StateFileNotFoundError: the file does not exist.
            StorageError: the storage does not say.
        """

    def exists(self, name: str) -> bool:
        """True if the file exists.

        Raises:
            StorageError: the storage does not say.
        """
        try:
            self.size(name)
        except FileNotFoundError:
            return False
        return True

    def make_directory(self, directory: str) -> None:
        """Creates a directory that appears in listings. An object store has no empty directories: there, the directory
        gets an empty file.

        Raises:
            StorageError: the directory cannot be created.
        """
        self.write_atomic(f"{directory}/{DIRECTORY_MARKER}", b"")

    def first_link(self, directory: str) -> str | None:
        """Name of a symbolic link: the directory itself or one below it; None if there is none.

        Raises:
            StorageError: the directory cannot be listed.
        """
        return None

    def remove_empty(self, directory: str) -> None:  # noqa: B027  (most storages have no directories)
        """Removes an empty directory, if the storage has directories. Never fails."""

    def read_range(self, name: str, offset: int, length: int) -> bytes:
        """Range of a file; fewer bytes, or none, if the file ends earlier.

        Raises:
            StateFileNotFoundError: the file does not exist.
            StorageError: the file cannot be read.
        """
        return self.read(name)[offset : offset + length]

    def free_bytes(self) -> int | None:
        """Free bytes for new files; None if the storage does not say."""
        return None

    def describe(self, name: str) -> str:
        """Path or URL of a file, for messages."""
        return f"{self.location.rstrip('/')}/{name}" if name else self.location

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r})"


def checked_name(name: str, within: str) -> str:
    """The given name, if it stays below the location.

    Raises:
        PathEscapeError: the name is absolute, or contains an empty part, `.`, `..` or a NUL.
    """
    if not name or "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise PathEscapeError(name, within)
    return name
