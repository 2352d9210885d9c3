"""A rewritten `_metadata` file, for `convert` and `relocate`."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from spark_ckpt.cli.formatting import plain, readable_by
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import Json, JsonObject, describe_required_release
from spark_ckpt.errors import StorageError
from spark_ckpt.figures import count, human_size
from spark_ckpt.location.errors import TargetExistsError
from spark_ckpt.location.file_system import are_one_directory, storage_at
from spark_ckpt.location.find import FoundCheckpoint
from spark_ckpt.metadata import METADATA_FILE_NAME, CheckpointMetadata, dumps, relative_paths
from spark_ckpt.metadata.properties import CheckpointProperties, decode
from spark_ckpt.storage import create_or_find
from spark_ckpt.storage.errors import ExclusiveCreateUnsupportedError

_T = TypeVar("_T")

_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A new `_metadata` file.

    Args:
        source: the source checkpoint.
        path: the new file, as a path or URL.
        metadata: its content.
        size: its bytes.
        is_written: False after a dry run.
        relative: its paths relative to its directory.
        warnings: warnings to the user.
    """

    source: FoundCheckpoint
    path: str
    metadata: CheckpointMetadata
    size: int
    is_written: bool
    relative: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def source_properties(self) -> CheckpointProperties | None:
        """The properties of the source. Only version 4 can store them."""
        return decode(self.source.metadata.properties)


@dataclass(frozen=True, slots=True)
class RewriteResult(Result, ABC):
    """Common part of the results of `convert` and `relocate`.

    Args:
        rewriting: the new file.
    """

    rewriting: Rewriting

    def messages(self) -> Iterator[str]:
        """The warnings."""
        for warning in self.rewriting.warnings:
            yield f"Warning: {plain(warning)}"

    def file_json(self, name: str, **values: object) -> JsonObject:
        """Object of a definition, with the fields of the new file."""
        rewriting, metadata = self.rewriting, self.rewriting.metadata
        return described(
            name,
            rewriting,
            metadata,
            source=rewriting.source.path,
            source_version=rewriting.source.metadata.version,
            target=rewriting.path,
            required_release=describe_required_release(metadata),
            relative=paths_json(rewriting.relative),
            **values,
        )

    def file_lines(self) -> Iterator[str]:
        """Lines on the new file."""
        rewriting, metadata = self.rewriting, self.rewriting.metadata
        yield (
            f"{'wrote' if rewriting.is_written else 'would write'} {plain(rewriting.path)}: checkpoint "
            f"{metadata.checkpoint_id}, metadata version {metadata.version}, {human_size(rewriting.size)}"
        )
        yield readable_by(metadata)


def paths_json(paths: Sequence[str]) -> Json:
    """The number of paths, and a few examples."""
    return {"count": len(paths), "examples": [*different(paths)]}


def different(items: Iterable[_T]) -> list[_T]:
    """The first few distinct items."""
    return list(islice(dict.fromkeys(items), _EXAMPLES))


def rewrite(source: FoundCheckpoint, target: str, metadata: CheckpointMetadata, *, dry_run: bool) -> Rewriting:
    """Writes `metadata` to a file of its version.

    Args:
        source: the source checkpoint.
        target: the destination (see `Target`).
        metadata: the content.
        dry_run: True to check everything and write nothing.

    Raises:
        MetadataValueError: the metadata has a value that no file can hold.
        TargetExistsError: the file exists already.
        StorageError: the file cannot be written.
    """
    new = Target(target)
    content = dumps(metadata, metadata.version)
    if dry_run:
        new.check_absent()
    else:
        new.write(content)
    relative = tuple(relative_paths(metadata))
    warnings = _warnings(relative, _directory_of(source.path), new.directory)
    return Rewriting(source, new.path, metadata, len(content), not dry_run, relative, warnings)


def _warnings(relative: Sequence[str], old: str, new: str) -> tuple[str, ...]:
    if not relative or are_one_directory(old, new):
        return ()
    paths = f"{count(len(relative), 'path')}, such as {relative[0]}, {'is' if len(relative) == 1 else 'are'} relative"
    return (f"{paths} to the directory of the file: copy these state files from {old} to the same paths in {new}",)


class Target:
    """The destination of a new `_metadata` file. It is written in full or not at all, and never overwritten.

    Args:
        path: the file, if its name begins with `_metadata`; else its directory. A local path or any URL that fsspec
            supports.

    Raises:
        S3fsNotFoundError: it is on S3, and s3fs is not installed.
        HadoopNotFoundError: it is on HDFS, and no working Hadoop client was found.
        StorageError: fsspec does not support the URL.
    """

    def __init__(self, path: str) -> None:
        is_file = path.rpartition("/")[2].startswith(METADATA_FILE_NAME)
        self.path = path if is_file else f"{path.rstrip('/')}/{METADATA_FILE_NAME}"
        """The file, as a path or URL."""
        self.directory = _directory_of(self.path)
        """The directory of the file, as a path or URL."""
        self._name = self.path.rpartition("/")[2]
        self._storage = storage_at(self.directory)

    def check_absent(self) -> None:
        """Checks that the file does not exist.

        Raises:
            TargetExistsError: it exists.
            StorageError: the storage does not answer.
        """
        if self._storage.exists(self._name):
            raise TargetExistsError(self.path)

    def write(self, content: bytes) -> None:
        """Writes the file; creates directories as needed.

        Raises:
            TargetExistsError: it exists already and stays unchanged.
            StorageError: it cannot be written, or the outcome is unknown.
        """
        self.check_absent()
        try:
            is_written = create_or_find(self._storage, self._name, content)
        except ExclusiveCreateUnsupportedError as e:
            reason = "this storage has no exclusive create. Write the file elsewhere and copy it"
            raise StorageError(self.path, "create", reason) from e
        if not is_written:
            raise TargetExistsError(self.path)


def _directory_of(path: str) -> str:
    directory, slash, _ = path.rpartition("/")
    return directory or slash or "."
