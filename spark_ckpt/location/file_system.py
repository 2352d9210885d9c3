"""File systems of locations given by the user: all that fsspec supports, with our errors and bounded waiting."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from spark_ckpt.errors import SparkCkptError, StorageError
from spark_ckpt.location.errors import FileSystemPackageError, HadoopNotFoundError, LocationNotFoundError
from spark_ckpt.metadata.literal_urls import file_system_of_url
from spark_ckpt.redaction import remember_url
from spark_ckpt.storage import Storage, resolve, storage_on
from spark_ckpt.storage.azure_config import AZURE_SCHEMES
from spark_ckpt.storage.gcs_config import GCS_SCHEME
from spark_ckpt.storage.resolve import AdlfsNotFoundError, GcsfsNotFoundError, S3fsNotFoundError
from spark_ckpt.storage.s3_config import S3_PROTOCOLS, client_config

_HADOOP_PROTOCOLS = ("hdfs", "viewfs")
_NO_CLIENT = {
    **dict.fromkeys(S3_PROTOCOLS, S3fsNotFoundError),
    GCS_SCHEME: GcsfsNotFoundError,
    **dict.fromkeys(AZURE_SCHEMES, AdlfsNotFoundError),
}
"""Error without a client by scheme of the object stores whose clients `resolve` sets up."""

_PACKAGES = {
    **dict.fromkeys(("az", "wasb", "wasbs"), "adlfs"),
    "gcs": "gcsfs",
    "oci": "ocifs",
    "oss": "ossfs",
}
"""Package by scheme. fsspec knows a scheme such as `abfss` only with its package installed."""


def file_system_of(url: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The file system of a path or URL, and the path on it, for operations that `storage_at` lacks.

    s3fs tries each request to S3 5 times: without an answer a request takes a minute.

    Raises:
        ClientNotFoundError: the location is on an object store whose client is not installed.
        HadoopNotFoundError: the location is on HDFS, and no working Hadoop client was found.
        FileSystemPackageError: the scheme needs a package that is not installed.
        StorageError: fsspec does not support the URL.
    """
    remember_url(url)
    protocol, _ = fsspec.core.split_protocol(url)
    is_on_s3 = protocol in S3_PROTOCOLS
    with reading(url):
        try:
            file_system, path = file_system_of_url(url, **(_s3_options() if is_on_s3 else {}))
        except ImportError:
            _refuse_without_package(url, protocol)
            raise
        except (OSError, ValueError) as e:
            if "Protocol not known" in str(e):
                _refuse_without_package(url, protocol)
            if protocol in _HADOOP_PROTOCOLS:
                raise HadoopNotFoundError(url, str(e).partition("\n")[0]) from e
            raise
    return file_system, path


def storage_at(directory: str) -> Storage:
    """The storage in a directory, which need not exist.

    On an object store it has its own client, which tries each request once, as in the coordinator: the tries of
    `FsspecStorage` times those of s3fs would take five minutes without an answer.

    Args:
        directory: a path or URL.

    Raises:
        ClientNotFoundError, HadoopNotFoundError, StorageError: as in `resolve` and `file_system_of`.
    """
    storage, _ = open_directory(directory)
    return storage


def open_directory(directory: str) -> tuple[Storage, tuple[fsspec.AbstractFileSystem, str] | None]:
    """The storage of `storage_at`, and the result of `file_system_of` if both share a client. None on an
    object store.

    Raises:
        ClientNotFoundError, HadoopNotFoundError, StorageError: as in `resolve` and `file_system_of`.
    """
    protocol, _ = fsspec.core.split_protocol(directory)
    if protocol in _NO_CLIENT:
        with reading(directory):
            return resolve(directory), None
    file_system, path = file_system_of(directory)
    return storage_on(file_system, path, directory), (file_system, path)


def are_one_directory(first: str, second: str) -> bool:
    """True if two paths or URLs name the same directory."""
    (system, path), (other_system, other_path) = file_system_of(first), file_system_of(second)
    if type(system) is not type(other_system):
        return False
    if _is_local(system):
        return os.path.realpath(path) == os.path.realpath(other_path)
    return path.rstrip("/") == other_path.rstrip("/")


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Converts exceptions of a file system to our errors. Each fsspec file system has its own exceptions.

    Raises:
        LocationNotFoundError: for a `FileNotFoundError`.
        StorageError: for any other exception.
    """
    try:
        yield
    except SparkCkptError:
        raise
    except FileNotFoundError as e:
        raise LocationNotFoundError(path) from e
    except Exception as e:
        raise StorageError(path, "read", e) from e


def _refuse_without_package(path: str, protocol: str | None) -> None:
    if protocol in _NO_CLIENT:
        raise _NO_CLIENT[protocol](path) from None
    if protocol in _PACKAGES:
        raise FileSystemPackageError(path, protocol, _PACKAGES[protocol]) from None


def _is_local(file_system: fsspec.AbstractFileSystem) -> bool:
    return isinstance(file_system, LocalFileSystem)


def _s3_options() -> dict[str, Any]:
    # A cached listing would be stale.
    return {"use_listings_cache": False, "config_kwargs": client_config()}
