"""The contract of a storage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from spark_ckpt.errors import StorageError
from spark_ckpt.redaction import redacted
from spark_ckpt.storage.errors import PathEscapeError

DIRECTORY_MARKER = ".directory"
"""Name of the empty file that `make_directory` writes where there are no directories."""


class CreateOutcome(Enum):
    """Outcome of an exclusive create."""

    WON = "won"
    """The file did not exist and has exactly the given bytes now."""
    LOST = "lost"
    """The file exists. An earlier try of the same call may have made it, if a layer below repeats requests."""
    UNKNOWN = "unknown"
    """The request may have been carried out, now or later. Read the file, or create it again with the same bytes."""


@dataclass(frozen=True, slots=True)
class CreateResult:
    """Outcome of an exclusive create.

    Args:
        outcome: how it ended.
        cause: of an unknown outcome, what went wrong.
    """

    outcome: CreateOutcome
    cause: BaseException | None = None


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file of a listing.

    Args:
        name: its name, without the directory.
        size: its bytes; 0 for a directory.
        is_directory: True if it is one. An object store has a directory where it has names below it.
        modified_ms: when it was last written, in milliseconds since 1970 UTC; None where the storage does not say.
    """

    name: str
    size: int
    is_directory: bool = False
    modified_ms: int | None = field(default=None, compare=False)


class Storage(ABC):
    """Files below one location. Names are relative to it, with `/` between their parts. Thread-safe.

    The guarantees are those that Delta's `LogStore` asks for, and the coordinator relies on no others:

    1. *Atomic visibility.* `write_atomic` and `create_exclusive` show a reader the whole file or none.
    2. *Mutual exclusion.* Of all `create_exclusive` of one name, in any process on any machine, one at most wins.
    3. *Consistent listing.* Once a create or write has returned, every later `list`, `read` and `exists` sees it.
    4. *Durability.* When `write_atomic`, `write_chunks` or `make_directory` has returned, or `create_exclusive` has
       won, a power loss takes neither the bytes of the file, nor its name, nor the name of a directory above it. Until
       then it leaves the file, or nothing, or a temporary file (`.tmp-...`) that is empty, cut short or whole. A file
       that was to be replaced is the old one or the new one.
    5. *Deletions are not durable.* A power loss may undo `delete`, `delete_all` and `remove_empty`, each by itself and
       in any order, unless `sync_deletions` has returned since. What refers to a file is deleted, and that deletion is
       synced, before the file is. So a file that comes back is an orphan.

    State files of executors are written past this contract, by Hadoop. On `file:` they are durable, name and bytes,
    before an acknowledgement names them; on HDFS they are closed (`docs/storage.md`).

    A file is never changed after it is there, so nothing here appends, renames or locks. What fails raises
    `StorageError` with the file in it, after the retries that the implementation finds right.
    """

    def __init__(self, location: str) -> None:
        self.location = redacted(location)
        """The location for a person: a path or URL without credentials."""

    @property
    def requests_are_slow(self) -> bool:
        """True if a request takes so long that saving one is worth a delay or a thread. Says nothing of guarantees."""
        return False

    @property
    def defers_deletions(self) -> bool:
        """True if what is not needed any more is deleted one checkpoint later: then that checkpoint proves that its
        driver is still the owner. Where it is deleted at once, the log is asked."""
        return False

    @property
    def writes_whole(self) -> bool:
        """True if a file that was written without an error is certain to be there with all its bytes."""
        return False

    def probe(self, directory: str) -> None:  # noqa: B027  (most storages need no proof)
        """Finds out whether the storage keeps to `create_exclusive`, by creating a file where there is one. Needed
        once before an exclusive create is relied upon.

        Args:
            directory: in which the file is created and deleted.

        Raises:
            ExclusiveCreateUnsupportedError: the create did not lose.
            StorageError: the file cannot be written at all, or the storage does not say how the create ended.
        """

    @abstractmethod
    def read(self, name: str) -> bytes:
        """All bytes of a file.

        Raises:
            StateFileNotFoundError: there is no such file.
            StorageError: it cannot be read.
        """

    def read_many(self, names: Sequence[str]) -> dict[str, bytes | StorageError]:
        """All bytes of several files, read side by side where a request takes long.

        Returns:
            By name the bytes of each file, or why it cannot be read.
        """
        return {name: self._read_or_error(name) for name in names}

    def _read_or_error(self, name: str) -> bytes | StorageError:
        try:
            return self.read(name)
        except StorageError as e:
            return e

    @abstractmethod
    def write_atomic(self, name: str, data: bytes) -> None:
        """Writes a file, in place of one that may be there; makes directories as needed. Durable on return.

        Raises:
            StorageError: it cannot be written, or it is unknown whether it was.
        """

    def write_chunks(self, name: str, chunks: Callable[[], Iterable[bytes]]) -> None:
        """Writes a file as `write_atomic` does, without holding all of it where the storage can.

        Args:
            name: of the file.
            chunks: its parts, from the first one on each time it is called. What they raise shows no file.

        Raises:
            StorageError: it cannot be written, or it is unknown whether it was.
        """
        self.write_atomic(name, b"".join(chunks()))

    @abstractmethod
    def create_exclusive(self, name: str, data: bytes) -> CreateResult:
        """Creates a file if there is none of that name; makes directories as needed. If won, durable on return.

        Returns:
            How it ended. `create_and_find` also finds out what a lost or unknown outcome means.

        Raises:
            StorageError: the file was certainly not created: no permission, no space, no connection at all.
            ExclusiveCreateUnsupportedError: this storage cannot do it.
        """

    @abstractmethod
    def list(self, directory: str) -> Sequence[FileInfo]:
        """The files and directories directly below a directory, in no particular order; none if there is none.

        Raises:
            StorageError: the directory cannot be listed.
        """

    @abstractmethod
    def delete(self, name: str) -> bool:
        """Deletes a file.

        Returns:
            True if there was one. Deleting what is not there is no error: a deletion may be repeated.

        Raises:
            StorageError: it cannot be deleted, or it is unknown whether it was.
        """

    def delete_all(self, names: Sequence[str]) -> None:
        """Deletes files, in as few requests as the storage can; those that are not there are no error.

        Raises:
            StorageError: one of them cannot be deleted, or it is unknown whether it was. The others were tried.
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
        """Makes the deletions of files directly below a directory durable, where they are not.

        Raises:
            StorageError: they may be undone.
        """

    @abstractmethod
    def size(self, name: str) -> int:
        """Number of bytes of a file.

        Raises:
            StateFileNotFoundError: there is no such file.
            StorageError: the storage does not say.
        """

    def exists(self, name: str) -> bool:
        """True if there is such a file.

        Raises:
            StorageError: the storage does not say.
        """
        try:
            self.size(name)
        except FileNotFoundError:
            return False
        return True

    def make_directory(self, directory: str) -> None:
        """Makes a directory that is listed. An object store has those that names lie below: there it gets a file.

        Raises:
            StorageError: it cannot be made.
        """
        self.write_atomic(f"{directory}/{DIRECTORY_MARKER}", b"")

    def first_link(self, directory: str) -> str | None:
        """Name of a symbolic link that is the directory, or lies below it; None where there are no links.

        Raises:
            StorageError: the directory cannot be listed.
        """
        return None

    def remove_empty(self, directory: str) -> None:  # noqa: B027  (most storages have no directories)
        """Removes a directory that has nothing in it, where there are directories. Never fails."""

    def read_range(self, name: str, offset: int, length: int) -> bytes:
        """A part of a file; fewer bytes if it ends before.

        Raises:
            StateFileNotFoundError: there is no such file.
            StorageError: it cannot be read.
        """
        return self.read(name)[offset : offset + length]

    def describe(self, name: str) -> str:
        """Path or URL of a file, for messages."""
        return f"{self.location.rstrip('/')}/{name}" if name else self.location

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r})"


def checked_name(name: str, within: str) -> str:
    """A name as it was given, if it stays below the location.

    Raises:
        PathEscapeError: it is absolute, has an empty part, `.` or `..`, or a NUL.
    """
    if not name or "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise PathEscapeError(name, within)
    return name
