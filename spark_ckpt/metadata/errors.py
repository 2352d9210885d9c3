"""What can be wrong with a `_metadata` file, or with a description that is to become one."""

from __future__ import annotations

from spark_ckpt.errors import SparkCkptError


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


class MetadataFormatError(SparkCkptError, ValueError):
    """Bytes that are no `_metadata` file, or not a whole one.

    Attributes:
        path: name of the file, or `<bytes>` where there is none.
        offset: byte position of the offending value, counted from the start of the file.
        field: dotted path of the offending value, such as `operator_states[2].subtask_states[0].managed_keyed_state`.
        reason: what is wrong at that place.
    """

    def __init__(self, path: str, offset: int, field: str, reason: str) -> None:
        super().__init__(f"{path}: {reason} (byte {offset}, {field})")
        self.path = path
        self.offset = offset
        self.field = field
        self.reason = reason


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


def _explain(version: int) -> str:
    if version in (5, 6):
        releases = "Flink 2.0" if version == 5 else "Flink 2.1 and later"
        return f"version {version} ({releases}) is not supported, versions 2, 3 and 4 are"
    if version == 1:
        return "version 1 (Flink 1.1 and 1.2) is not supported, versions 2, 3 and 4 are"
    return f"version {version} is unknown, versions 2, 3 and 4 are supported"
