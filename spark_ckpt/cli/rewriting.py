"""What `convert` and `relocate` have in common: a new `_metadata` file, made of an existing one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_ckpt.cli.summary import count
from spark_ckpt.cli.target import Target, directory_of
from spark_ckpt.locations.file_system import are_one_directory
from spark_ckpt.locations.location import FoundCheckpoint
from spark_ckpt.metadata import CheckpointMetadata, dumps, relative_paths
from spark_ckpt.metadata.properties import CheckpointProperties, decode


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A new `_metadata` file.

    Args:
        source: the checkpoint it was made of.
        path: the new file, as a path or URL.
        metadata: what is in it.
        size: its bytes.
        is_written: whether it was written; not if the user only asked what would be.
        relative: paths in it that count from its directory.
        warnings: what the user should know before using it.
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
        """The properties of the source, which only a file of version 4 has a place for."""
        return decode(self.source.metadata.properties)


def rewrite(source: FoundCheckpoint, target: str, metadata: CheckpointMetadata, *, dry_run: bool) -> Rewriting:
    """Writes `metadata` as a file of its version.

    Args:
        source: the checkpoint it was made of.
        target: where to, as `Target` takes it.
        metadata: what to write.
        dry_run: whether to check everything and write nothing.

    Raises:
        MetadataValueError: no file can hold a value in it.
        TargetExistsError: the file is there already.
        StorageError: it cannot be written.
    """
    new = Target(target)
    content = dumps(metadata, metadata.version)
    if dry_run:
        new.check_absent()
    else:
        new.write(content)
    relative = tuple(relative_paths(metadata))
    warnings = _warnings(relative, directory_of(source.path), new.directory)
    return Rewriting(source, new.path, metadata, len(content), not dry_run, relative, warnings)


def _warnings(relative: Sequence[str], old: str, new: str) -> tuple[str, ...]:
    if not relative or are_one_directory(old, new):
        return ()
    paths = f"{count(len(relative), 'path')}, such as {relative[0]}, count from the directory of the file"
    return (f"{paths}: copy those state files too, so that they lie to {new} as they lie to {old}",)
