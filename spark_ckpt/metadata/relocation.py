"""Relocation of state files: replaces a prefix of the absolute paths in a checkpoint's handles.

Paths relative to the directory of `_metadata` do not change. They stay valid if the files move along with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from spark_ckpt.metadata.absolute_path import AbsolutePath
from spark_ckpt.metadata.errors import NothingToRelocateError, PathPrefixError
from spark_ckpt.metadata.handles import (
    FileMergingOperatorStreamStateHandle,
    FileStateHandle,
    RelativeFileStateHandle,
    SegmentFileStateHandle,
)
from spark_ckpt.metadata.model import CheckpointMetadata
from spark_ckpt.metadata.traversal import parts_of, with_parts


@dataclass(frozen=True, slots=True)
class Relocation:
    """Result of `relocate`. A path is listed once per occurrence in the file.

    Args:
        metadata: checkpoint with the new paths.
        rewritten: pairs of old and new path.
        left_alone: absolute paths without the old prefix.
        relative: paths relative to the directory of `_metadata`.
    """

    metadata: CheckpointMetadata
    rewritten: tuple[tuple[str, str], ...]
    left_alone: tuple[str, ...]
    relative: tuple[str, ...]


_PATH_FIELDS: dict[type, tuple[str, ...]] = {
    FileStateHandle: ("file_path",),
    SegmentFileStateHandle: ("file_path",),
    FileMergingOperatorStreamStateHandle: ("task_owned_dir", "shared_dir"),
}


def relocate(metadata: CheckpointMetadata, old_prefix: str, new_prefix: str) -> Relocation:
    """Checkpoint with rewritten paths of its state files.

    A prefix consists of whole path components: `s3://b/a` is not a prefix of `s3://b/ab`. Paths compare as in
    `org.apache.flink.core.fs.Path`: `file:/x`, `file:///x` and `/x` are equal, `s3://b/x` and `s3a://b/x` are not, and
    `//`, `.` and `..` are resolved.

    Args:
        metadata: checkpoint.
        old_prefix: previous location of the files: an absolute path, or a URL.
        new_prefix: new location of the files. New paths start with its exact spelling.

    Raises:
        PathPrefixError: a prefix is not absolute.
        NothingToRelocateError: no path has the old prefix.
    """
    old = _prefix(old_prefix)
    _prefix(new_prefix)
    rewritten: list[tuple[str, str]] = []
    left_alone: list[str] = []

    def moved(path: str) -> str:
        absolute = AbsolutePath.of(path)
        if absolute is None or not old.holds(absolute):
            left_alone.append(path)
            return path
        below = "/".join(absolute.components[len(old.components) :])
        new = f"{new_prefix.rstrip('/')}/{below}" if below else new_prefix
        rewritten.append((path, new))
        return new

    result = with_parts(metadata, _on_paths(moved))
    relative = tuple(relative_paths(metadata))
    if not rewritten:
        absolutes = {absolute for path in left_alone if (absolute := AbsolutePath.of(path))}
        schemes = tuple(sorted({p.scheme for p in absolutes if old._replace(scheme=p.scheme).holds(p)}))
        raise NothingToRelocateError(old_prefix, _directories(absolutes), schemes, len(relative))
    return Relocation(result, tuple(rewritten), tuple(left_alone), relative)


def relative_paths(metadata: CheckpointMetadata) -> Iterable[str]:
    """Paths relative to the directory of `_metadata`, once per occurrence in the file."""
    return (part.relative_path for part in parts_of(metadata) if isinstance(part, RelativeFileStateHandle))


def _on_paths(change: Callable[[str], str]) -> Callable[[Any], Any]:
    def on_paths(part: Any) -> Any:  # noqa: ANN401
        names = _PATH_FIELDS.get(type(part), ())
        return replace(part, **{name: change(getattr(part, name)) for name in names}) if names else part

    return on_paths


def _prefix(text: str) -> AbsolutePath:
    if (absolute := AbsolutePath.of(text)) is None:
        raise PathPrefixError(text)
    return absolute


def _directories(absolutes: Iterable[AbsolutePath]) -> tuple[str, ...]:
    """Deepest common directory of the places on each file system."""
    deepest: dict[tuple[str, str], tuple[str, ...]] = {}
    for absolute in absolutes:
        parent = absolute.components[:-1]
        known = deepest.setdefault((absolute.scheme, absolute.authority), parent)
        common = takewhile(lambda pair: pair[0] == pair[1], zip(known, parent, strict=False))
        deepest[absolute.scheme, absolute.authority] = tuple(component for component, _ in common)
    return tuple(sorted(str(AbsolutePath(*system, components)) for system, components in deepest.items()))
