"""Allowed paths of a checkpoint's files."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from spark_ckpt.flink.streams.errors import StateFileOutsideError
from spark_ckpt.metadata.absolute_path import AbsolutePath

_SAME_STORAGE = {"s3a": "s3", "s3n": "s3"}
_CHECKPOINT_DIRECTORY = re.compile(r"chk-[0-9]+")


class CheckpointPaths:
    """Allowed paths of one checkpoint's files.

    The storage of a checkpoint is the directory of its job, the parent of `chk-<n>`, because `shared` and `taskowned`
    next to it have files of several checkpoints. The storage of a savepoint, or of any other directory with a
    `_metadata`, is the directory itself. Symbolic links of local files are resolved before the comparison.

    Args:
        metadata: `_metadata` file, as a path or URL.
        also: other allowed directories.
        allow_outside: True to allow any path.
    """

    def __init__(self, metadata: str, also: Sequence[str] = (), *, allow_outside: bool = False) -> None:
        self._directory = _path_of(metadata).parent
        name = self._directory.components[-1:]
        in_job = bool(name) and _CHECKPOINT_DIRECTORY.fullmatch(name[0])
        self._roots = (self._directory.parent if in_job else self._directory, *map(_path_of, also))
        self._allow_outside = allow_outside

    def of_relative(self, path: str) -> AbsolutePath:
        """Absolute path of a path relative to the directory of `_metadata`.

        Raises:
            StateFileOutsideError: the path is outside the checkpoint's storage.
        """
        return self._checked(self._directory.below(path))

    def of_absolute(self, path: str) -> AbsolutePath:
        """Absolute path of a path or URL.

        Raises:
            StateFileOutsideError: the path is outside the checkpoint's storage.
        """
        return self._checked(_path_of(path))

    def _checked(self, path: AbsolutePath) -> AbsolutePath:
        if not self._allow_outside:
            target = _without_links(path)
            if not any(_without_links(root).holds(target) for root in self._roots):
                raise StateFileOutsideError(str(path), tuple(map(str, self._roots)))
        return path


def _path_of(text: str) -> AbsolutePath:
    # Paths from a user may be relative to the working directory. abspath keeps two leading slashes.
    path = AbsolutePath.of(text) if ":" in text else None
    path = path or AbsolutePath("file", "", ()).below(os.path.abspath(text))
    return path._replace(scheme=_SAME_STORAGE.get(path.scheme, path.scheme))


def _without_links(path: AbsolutePath) -> AbsolutePath:
    # A path with a NUL is not a file name. Opening it reports that.
    if path.scheme != "file" or "\0" in str(path):
        return path
    return AbsolutePath("file", "", ()).below(os.path.realpath(str(path)))
