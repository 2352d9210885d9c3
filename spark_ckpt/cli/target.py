"""The new `_metadata` file that a command writes: whole or not at all, and never in place of another file."""

from __future__ import annotations

from spark_ckpt.errors import ExclusiveCreateUnsupportedError, StorageError
from spark_ckpt.locations.errors import TargetExistsError
from spark_ckpt.locations.file_system import storage_at
from spark_ckpt.metadata import METADATA_FILE_NAME
from spark_ckpt.storage import create_or_find


class Target:
    """A file to be written.

    Args:
        place: the file, if its name begins with `_metadata`; else the directory that is to hold a `_metadata`. A local
            path or any URL that fsspec serves.

    Raises:
        S3fsNotFoundError: it is on S3, and s3fs is not installed.
        HadoopNotFoundError: it is on HDFS, and there is no Hadoop client that works here.
        StorageError: fsspec does not serve such a URL.
    """

    def __init__(self, place: str) -> None:
        is_file = place.rpartition("/")[2].startswith(METADATA_FILE_NAME)
        self.path = place if is_file else f"{place.rstrip('/')}/{METADATA_FILE_NAME}"
        """The file, as a path or URL."""
        self.directory = directory_of(self.path)
        """The directory of the file, as a path or URL."""
        self._name = self.path.rpartition("/")[2]
        self._storage = storage_at(self.directory)

    def check_absent(self) -> None:
        """Finds out whether the file can be new.

        Raises:
            TargetExistsError: it is there already.
            StorageError: the storage does not say.
        """
        if self._storage.exists(self._name):
            raise TargetExistsError(self.path)

    def write(self, content: bytes) -> None:
        """Writes the file; makes directories as needed.

        Raises:
            TargetExistsError: it is there already, and was not touched.
            StorageError: it could not be written, or the storage does not say whether it was.
        """
        self.check_absent()
        try:
            is_written = create_or_find(self._storage, self._name, content)
        except ExclusiveCreateUnsupportedError as e:
            reason = "this storage cannot create a file only where there is none. Write it elsewhere, and copy it"
            raise StorageError(self.path, "create", reason) from e
        if not is_written:
            raise TargetExistsError(self.path)


def directory_of(path: str) -> str:
    """The directory of a file, as a path or URL."""
    directory, slash, _ = path.rpartition("/")
    return directory or slash or "."
