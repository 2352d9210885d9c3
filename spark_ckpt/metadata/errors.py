"""Errors of `_metadata` files and of models that cannot be written as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_ckpt.errors import FormatError, SparkCkptError


class MetadataValueError(SparkCkptError, ValueError):
    """A part of the model holds values that no `_metadata` file may hold: Flink would refuse to load it.

    Attributes:
        field: name of the offending field, as in the model.
        reason: what is wrong with it.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Loss:
    """Something of a checkpoint that a version of the file has no place for.

    Args:
        field: dotted path of it, such as `operator_states[2].subtask_states[0].input_channel_state`.
        what: what it is, for a person.
        operator_id: the operator it belongs to, hexadecimal.
        subtask: index of the subtask it belongs to; None if it is the operator's.
    """

    field: str
    what: str
    operator_id: str
    subtask: int | None = None


class MetadataLossError(MetadataValueError):
    """A checkpoint has state that the version of the file to be written has no place for. `field` is the first.

    Attributes:
        version: that version.
        losses: all of it, in the order of the file.
    """

    def __init__(self, version: int, losses: Sequence[Loss]) -> None:
        super().__init__(
            losses[0].field, f"version {version} has no place for {_explain_losses(losses)}. Write version 3 or later"
        )
        self.version = version
        self.losses = tuple(losses)


class MetadataFormatError(FormatError):
    """Bytes that are no `_metadata` file, or not a whole one.

    Attributes:
        path: name of the file, or `<bytes>` where there is none.
        offset: byte position of the offending value, counted from the start of the file.
        field: dotted path of the offending value, such as `operator_states[2].subtask_states[0].managed_keyed_state`.
        reason: what is wrong at that place.
    """


class UnsupportedMetadataVersionError(MetadataFormatError):
    """A `_metadata` file of a version outside 2 to 4, or a request to write one outside 2 to 4.

    Attributes:
        version: the version that the file names.
    """

    def __init__(self, path: str, version: int) -> None:
        super().__init__(path, 4, "version", _explain(version))
        self.version = version


class MetadataNotFoundError(SparkCkptError, FileNotFoundError):
    """There is no `_metadata` file at the place named.

    Attributes:
        path: the file or directory that was asked for.
    """

    def __init__(self, path: str) -> None:
        super().__init__(f"no checkpoint metadata at {path}: name a _metadata file or the directory that holds one")
        self.path = path


class PathPrefixError(SparkCkptError, ValueError):
    """A prefix of paths that is not absolute.

    Attributes:
        prefix: what was given.
    """

    def __init__(self, prefix: str) -> None:
        super().__init__(
            f"the prefix '{prefix}' is not absolute: name a path from / on, or a URL such as s3://bucket/dir"
        )
        self.prefix = prefix


class NothingToRelocateError(SparkCkptError, ValueError):
    """No path of a checkpoint begins with a prefix.

    Attributes:
        prefix: the prefix.
        directories: where the absolute paths of the checkpoint lie: one directory for each file system.
        schemes: schemes under which the prefix does occur.
        relative: number of paths that count from the directory of `_metadata`, and need no new prefix.
    """

    def __init__(self, prefix: str, directories: Sequence[str], schemes: Sequence[str], relative: int) -> None:
        if schemes:
            reason = f"it occurs with the scheme {' and '.join(schemes)}, which is another one: name it as the paths do"
        elif directories:
            reason = "name a prefix that occurs"
        elif relative:
            reason = "all count from the directory of _metadata, and stay right if the files move along"
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


def _explain(version: int) -> str:
    if version in (5, 6):
        releases = "Flink 2.0" if version == 5 else "Flink 2.1 and later"
        return f"version {version} ({releases}) is not supported, versions 2, 3 and 4 are"
    if version == 1:
        return "version 1 (Flink 1.1 and 1.2) is not supported, versions 2, 3 and 4 are"
    return f"version {version} is unknown, versions 2, 3 and 4 are supported"
