"""Errors of `_metadata` files, and of models that no file can hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_ckpt.errors import FormatError, SparkCkptError


class MetadataValueError(SparkCkptError, ValueError):
    """Value in the model that no `_metadata` file may contain: Flink would reject the file.

    Attributes:
        field: name of the offending field in the model.
        reason: description of the problem.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Loss:
    """Part of a checkpoint that a version of the file cannot hold.

    Args:
        field: dotted path of the part, such as `operator_states[2].subtask_states[0].input_channel_state`.
        what: human-readable name of the part.
        operator_id: id of its operator, in hexadecimal.
        subtask: index of its subtask; None for a part of the whole operator.
    """

    field: str
    what: str
    operator_id: str
    subtask: int | None = None


class MetadataLossError(MetadataValueError):
    """Checkpoint with state that the requested version of the file cannot hold. `field` names the first loss.

    Attributes:
        version: requested version.
        losses: all losses, in the order of the file.
    """

    def __init__(self, version: int, losses: Sequence[Loss]) -> None:
        super().__init__(
            losses[0].field, f"version {version} cannot hold {_explain_losses(losses)}. Write version 3 or later"
        )
        self.version = version
        self.losses = tuple(losses)


class MetadataFormatError(FormatError):
    """Bytes that are not a `_metadata` file, or only a part of one.

    Attributes:
        path: name of the file; `<bytes>` without a file.
        offset: byte position of the offending value, counted from the start of the file.
        field: dotted path of the offending value, such as `operator_states[2].subtask_states[0].managed_keyed_state`.
        reason: description of the problem.
    """


class UnsupportedMetadataVersionError(MetadataFormatError):
    """Version of a `_metadata` file, read or requested, outside 2 to 6.

    Attributes:
        version: unsupported version.
    """

    def __init__(self, path: str, version: int) -> None:
        super().__init__(path, 4, "version", _explain(version))
        self.version = version


class MetadataNotFoundError(SparkCkptError, FileNotFoundError):
    """Path without a `_metadata` file.

    Attributes:
        path: requested file or directory.
    """

    def __init__(self, path: str) -> None:
        super().__init__(f"no checkpoint metadata at {path}: name a _metadata file or the directory that holds one")
        self.path = path


class PathPrefixError(SparkCkptError, ValueError):
    """Path prefix that is not absolute.

    Attributes:
        prefix: given prefix.
    """

    def __init__(self, prefix: str) -> None:
        super().__init__(
            f"the prefix '{prefix}' is not absolute: give a path that starts with /, or a URL such as s3://bucket/dir"
        )
        self.prefix = prefix


class NothingToRelocateError(SparkCkptError, ValueError):
    """Prefix that no path of a checkpoint starts with.

    Attributes:
        prefix: given prefix.
        directories: common directory of the checkpoint's absolute paths, one per file system.
        schemes: other schemes with which the prefix does occur.
        relative: number of paths relative to the directory of `_metadata`, which need no new prefix.
    """

    def __init__(self, prefix: str, directories: Sequence[str], schemes: Sequence[str], relative: int) -> None:
        if schemes:
            reason = f"the paths have the scheme {' and '.join(schemes)}: give the prefix with it"
        elif directories:
            reason = "give a prefix of at least one path"
        elif relative:
            reason = "all paths are relative to the directory of _metadata, and stay valid if the files move with it"
        else:
            reason = "there are none"
        places = f"; the paths lie in {', '.join(directories)}" if directories else ""
        super().__init__(f"no path begins with {prefix}{places}: {reason}")
        self.prefix = prefix
        self.directories = tuple(directories)
        self.schemes = tuple(schemes)
        self.relative = relative


def _explain_losses(losses: Sequence[Loss]) -> str:
    subtasks: dict[tuple[str, str], list[int]] = {}
    for loss in losses:
        listed = subtasks.setdefault((loss.what, loss.operator_id), [])
        if loss.subtask is not None and loss.subtask not in listed[-1:]:
            listed.append(loss.subtask)
    return "; ".join(
        f"{what} (operator {', '.join([operator_id, *(f'subtask {index}' for index in listed)])})"
        for (what, operator_id), listed in subtasks.items()
    )


_NAMED = {1: "Flink 1.1 and 1.2", 7: "Flink with regional checkpoints, FLIP-600"}
"""Writers of unsupported versions (Flink: `SavepointV1Serializer`, `MetadataV7Serializer`)."""


def _explain(version: int) -> str:
    if version in _NAMED:
        return f"version {version} ({_NAMED[version]}) is not supported; versions 2 to 6 are"
    return f"unknown version {version}; versions 2 to 6 are supported"
