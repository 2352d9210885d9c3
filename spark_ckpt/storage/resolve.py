"""Resolution of Hadoop locations to storages."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from spark_ckpt.errors import SparkCkptError
from spark_ckpt.redaction import remember_settings, remember_url
from spark_ckpt.storage.azure_config import AZURE_SCHEMES, azure_file_system
from spark_ckpt.storage.azure_storage import AzureStorage
from spark_ckpt.storage.base import Storage
from spark_ckpt.storage.errors import UnsupportedSchemeError
from spark_ckpt.storage.gcs_config import GCS_SCHEME, gcs_file_system
from spark_ckpt.storage.gcs_storage import GcsStorage
from spark_ckpt.storage.hadoop import HadoopCalls, HadoopStorage
from spark_ckpt.storage.local import LocalStorage
from spark_ckpt.storage.remote import FsspecStorage, MemoryStorage
from spark_ckpt.storage.s3_config import s3_file_system
from spark_ckpt.storage.s3_storage import S3Storage
from spark_ckpt.storage.web_hdfs import WebHdfsCalls

SUPPORTED_SCHEMES = ("file", "s3a", "s3", "s3n", "gs", "abfs", "abfss", "memory")
"""Schemes with a storage in this package. Without a scheme, Hadoop's default file system applies."""

_S3_SCHEMES = ("s3a", "s3", "s3n")


class ClientNotFoundError(SparkCkptError, ImportError):
    """A location is on an object store whose client is not installed in this Python environment."""

    store, package, extra = "", "", ""

    def __init__(self, location: str) -> None:
        super().__init__(
            f"{location} is on {self.store}, but {self.package} is not installed for {sys.executable}: "
            f"{sys.executable} -m pip install 'spark-ckpt[{self.extra}]'"
        )


class S3fsNotFoundError(ClientNotFoundError):
    """A location on S3 needs s3fs."""

    store, package, extra = "S3", "s3fs", "s3"


class GcsfsNotFoundError(ClientNotFoundError):
    """A location on Google Cloud Storage needs gcsfs."""

    store, package, extra = "Google Cloud Storage", "gcsfs", "gcs"


class AdlfsNotFoundError(ClientNotFoundError):
    """A location on Azure needs adlfs."""

    store, package, extra = "Azure Blob Storage", "adlfs", "azure"


def resolve(
    location: str | os.PathLike[str],
    hadoop_settings: Mapping[str, str] | None = None,
    hadoop: HadoopCalls | None = None,
) -> Storage:
    """Storage of a location.

    Args:
        location: the location in the form of Hadoop's `Path.toString`: `file:/x`, `file:///x`, `/x`, `s3a://bucket/x`;
            never percent-encoded. The forms of fsspec (`s3://bucket/x`) work as well.
        hadoop_settings: settings of the file system by their Hadoop names (`fs.s3a.endpoint` ...), with or without the
            prefix `spark.hadoop.`.
        hadoop: Hadoop's file systems in the driver, for schemes without a storage in this package.

    Raises:
        UnsupportedSchemeError: no storage supports the scheme.
        ClientNotFoundError: the scheme needs a client that is not installed, and there is no driver.
        SettingError: a setting has an invalid value.
    """
    location = os.fspath(location)
    remember_url(location)
    remember_settings(hadoop_settings or {})
    settings = {key.removeprefix("spark.hadoop."): value for key, value in (hadoop_settings or {}).items()}
    scheme, rest = _split(location)
    if not scheme:
        default_scheme, default_rest = _split(settings.get("fs.defaultFS", "file:///"))
        if default_scheme != "file" and not location.startswith("/"):
            raise UnsupportedSchemeError(location, default_scheme, SUPPORTED_SCHEMES)
        scheme = default_scheme or "file"
        if scheme != "file":
            rest = "//" + default_rest.strip("/") + rest
    if scheme == "file":
        return LocalStorage(_local_path(location, rest))
    if scheme == "memory":
        return _memory(location, rest)
    if scheme in _S3_SCHEMES:
        return _s3(f"{scheme}:{rest}", scheme, rest, settings)
    if (storage := _on_other_store(f"{scheme}:{rest}", scheme, rest, settings, hadoop)) is not None:
        return storage
    if hadoop is not None:
        return HadoopStorage(hadoop, f"{scheme}:{rest}")
    raise UnsupportedSchemeError(location, scheme, SUPPORTED_SCHEMES)


def storage_on(file_system: Any, path: str, location: str) -> Storage:  # noqa: ANN401  (fsspec has no types)
    """Storage below a path of a user's fsspec file system. Not for S3, whose client `resolve` sets up.

    Args:
        file_system: fsspec file system.
        path: path on the file system.
        location: path or URL for messages.
    """
    if isinstance(file_system, LocalFileSystem):
        return LocalStorage(path)
    if "webhdfs" in file_system.protocol:
        return HadoopStorage(WebHdfsCalls(file_system, location, path), location)
    kind = MemoryStorage if isinstance(file_system, MemoryFileSystem) else FsspecStorage
    return kind(file_system, path, location)


def _split(location: str) -> tuple[str, str]:
    """Scheme of a location, and the part after its colon; ('', location) without one. A colon in a file name does not
    make a scheme."""
    scheme, colon, rest = location.partition(":")
    if colon and scheme and scheme[0].isalpha() and scheme.replace("+", "").replace("-", "").replace(".", "").isalnum():
        return scheme.lower(), rest
    return "", location


def _local_path(location: str, rest: str) -> str:
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise UnsupportedSchemeError(location, f"file://{host}", SUPPORTED_SCHEMES)
        rest = slash + path
    return rest or "/"


def _memory(location: str, rest: str) -> Storage:
    return MemoryStorage(MemoryFileSystem(), "/" + rest.strip("/"), location)


def _on_other_store(
    location: str, scheme: str, rest: str, settings: Mapping[str, str], hadoop: HadoopCalls | None
) -> Storage | None:
    """Storage on Google Cloud Storage or Azure; None on other file systems, and for the driver's, which may reach what
    this process cannot."""
    try:
        if scheme == GCS_SCHEME:
            return _gcs(location, rest, settings)
        return _azure(location, scheme, rest, settings) if scheme in AZURE_SCHEMES else None
    except (ClientNotFoundError, UnsupportedSchemeError):
        if hadoop is None:
            raise
        return None


def _gcs(location: str, rest: str, settings: Mapping[str, str]) -> Storage:
    root = rest.strip("/")
    if not root:
        raise UnsupportedSchemeError(location, "gs without a bucket", SUPPORTED_SCHEMES)
    try:
        return GcsStorage(gcs_file_system(settings), root, location)
    except ImportError as e:
        raise GcsfsNotFoundError(location) from e


def _azure(location: str, scheme: str, rest: str, settings: Mapping[str, str]) -> Storage:
    authority, _, path = rest.strip("/").partition("/")
    container, at, host = authority.partition("@")
    if not (container and at and host):
        raise UnsupportedSchemeError(location, f"{scheme} without a container and an account", SUPPORTED_SCHEMES)
    try:
        return AzureStorage(azure_file_system(host, settings), f"{container}/{path}".rstrip("/"), location)
    except ImportError as e:
        raise AdlfsNotFoundError(location) from e


def _s3(location: str, scheme: str, rest: str, settings: Mapping[str, str]) -> Storage:
    root = rest.strip("/")
    bucket = root.partition("/")[0]
    if not bucket:
        raise UnsupportedSchemeError(location, f"{scheme} without a bucket", SUPPORTED_SCHEMES)
    try:
        fs = s3_file_system(bucket, settings)
    except ImportError as e:
        raise S3fsNotFoundError(location) from e
    return S3Storage(fs, root, location)
