"""Storages of a session: Hadoop's file systems through its JVM, with its settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spark_ckpt.driver_jvm.objects import state_transfer
from spark_ckpt.storage import Storage, resolve
from spark_ckpt.storage.errors import UnsupportedSchemeError
from spark_ckpt.storage.hadoop import failure_of
from spark_ckpt.storage.resolve import SUPPORTED_SCHEMES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def storage_of(spark: SparkSession, location: str) -> Storage:
    """Storage of a location, with the session's Hadoop settings.

    Args:
        spark: a classic session with the jar of spark-ckpt.
        location: path or URL. `s3://` stands for `s3a://` unless the session has another file system for it; a path
            without a scheme is on Hadoop's default file system.

    Raises:
        UnsupportedSchemeError: Hadoop has no file system for the scheme.
        S3fsNotFoundError: the location is on S3, and s3fs is not installed.
        SettingError: a setting of the file system is invalid.
    """
    session: Any = spark
    return resolve(*address_of(spark, location), SessionFiles(state_transfer(session).files(session._jsparkSession)))


def address_of(spark: SparkSession, location: str) -> tuple[str, Mapping[str, str]]:
    """A location in Hadoop's form, and the session's settings of its file system, which may be secret.

    Raises:
        UnsupportedSchemeError: Hadoop has no file system for the scheme.
    """
    session: Any = spark
    found = json.loads(state_transfer(session).locate(session._jsparkSession, location))
    if "error" in found:
        raise UnsupportedSchemeError(location, location.partition(":")[0], SUPPORTED_SCHEMES)
    return found["location"], found["settings"]


class SessionFiles:
    """Operations on Hadoop's file systems through a session's JVM (`HadoopCalls`).

    Args:
        files: the JVM's `SessionFiles`.
    """

    def __init__(self, files: Any) -> None:  # noqa: ANN401  (Py4J has no types)
        self._files = files

    def ask(
        self, operation: str, path: str, payload: bytes | memoryview = b"", **fields: object
    ) -> tuple[Mapping[str, Any], bytes | memoryview]:
        """Executes one operation on one path.

        Raises:
            FileNotFoundError, FileExistsError, PermissionError, HadoopError: as `failure_of` says.
        """
        header = json.dumps({"operation": operation, "path": path, **fields})
        reply = self._files.ask(header, bytearray(payload))
        answer: dict[str, Any] = json.loads(reply.header())
        if reply.isError():
            raise failure_of(path, answer)
        return answer, bytes(reply.payload())
