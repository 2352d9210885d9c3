"""Errors of RocksDB's files."""

from __future__ import annotations

from spark_ckpt.errors import FormatError, SparkCkptError


class RocksDbFormatError(FormatError):
    """Bytes that are not RocksDB's, or were changed after they were written.

    Attributes:
        path: name of the file.
        offset: byte offset of the offending value from the start.
        field: name of the offending value.
        reason: description of the problem.
    """


class UnsupportedRocksDbError(SparkCkptError):
    """A file uses a feature of RocksDB that this reader does not know. Flink's default options use none of them.

    Attributes:
        path: name of the file.
        feature: the feature.
    """

    def __init__(self, path: str, feature: str) -> None:
        super().__init__(f"{path}: {feature} is not supported by this reader of RocksDB's files")
        self.path = path
        self.feature = feature


class MissingTableError(SparkCkptError):
    """MANIFEST names a table that is not among the files.

    Attributes:
        manifest: name of the MANIFEST file.
        table: name of the missing file.
    """

    def __init__(self, manifest: str, table: str) -> None:
        super().__init__(f"{manifest} names {table}, which is not among the files of the checkpoint")
        self.manifest = manifest
        self.table = table
