"""The file systems of places that a user names: whatever fsspec serves, with errors of ours and an end to waiting."""

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
from spark_ckpt.storage.resolve import S3fsNotFoundError
from spark_ckpt.storage.s3 import S3_PROTOCOLS, client_config

_HADOOP_PROTOCOLS = ("hdfs", "viewfs")
_PACKAGES = {
    **dict.fromkeys(("abfs", "abfss", "az", "wasb", "wasbs"), "adlfs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    "oci": "ocifs",
    "oss": "ossfs",
}
"""Packages that serve a scheme: fsspec knows a scheme such as `abfss` only once its package is there."""


def file_system_of(place: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The file system of a path or URL, and the path on it, for what `storage_at` does not do.

    S3 is asked again by s3fs, 5 times in all: what waits for an answer that never comes takes a minute.

    Raises:
        S3fsNotFoundError: the place is on S3, and s3fs is not installed.
        HadoopNotFoundError: the place is on HDFS, and there is no Hadoop client that works here.
        FileSystemPackageError: its scheme needs a package that is not installed.
        StorageError: fsspec does not serve such a URL.
    """
    remember_url(place)
    protocol, _ = fsspec.core.split_protocol(place)
    is_on_s3 = protocol in S3_PROTOCOLS
    with reading(place):
        try:
            file_system, path = file_system_of_url(place, **(_s3_options() if is_on_s3 else {}))
        except ImportError:
            if is_on_s3:
                raise S3fsNotFoundError(place) from None
            _refuse_without_package(place, protocol)
            raise
        except (OSError, ValueError) as e:
            if "Protocol not known" in str(e):
                _refuse_without_package(place, protocol)
            if protocol in _HADOOP_PROTOCOLS:
                raise HadoopNotFoundError(place, str(e).partition("\n")[0]) from e
            raise
    return file_system, path


def storage_at(directory: str) -> Storage:
    """The storage in a directory, which need not be there yet.

    It has a client of S3 of its own, which asks once, as that of the coordinator does: the tries of `FsspecStorage` and
    those of s3fs below them would be five minutes for an answer that never comes.

    Args:
        directory: a path or URL.

    Raises:
        S3fsNotFoundError, HadoopNotFoundError, StorageError: as in `file_system_of`.
    """
    storage, _ = open_directory(directory)
    return storage


def open_directory(directory: str) -> tuple[Storage, tuple[fsspec.AbstractFileSystem, str] | None]:
    """The storage in a directory as `storage_at` opens it, and what `file_system_of` returns for the directory where
    the storage uses that file system too. None on S3.

    Raises:
        S3fsNotFoundError, HadoopNotFoundError, StorageError: as in `file_system_of`.
    """
    protocol, _ = fsspec.core.split_protocol(directory)
    if protocol in S3_PROTOCOLS:
        with reading(directory):
            return resolve(directory), None
    file_system, path = file_system_of(directory)
    return storage_on(file_system, path, directory), (file_system, path)


def are_one_directory(first: str, second: str) -> bool:
    """True if two paths or URLs name one directory, however they spell it."""
    (system, path), (other_system, other_path) = file_system_of(first), file_system_of(second)
    if type(system) is not type(other_system):
        return False
    if _is_local(system):
        return os.path.realpath(path) == os.path.realpath(other_path)
    return path.rstrip("/") == other_path.rstrip("/")


@contextmanager
def reading(place: str) -> Iterator[None]:
    """Turns what a file system raises into an error of ours. Every fsspec file system has exceptions of its own.

    Raises:
        LocationNotFoundError: for a `FileNotFoundError`.
        StorageError: for any other.
    """
    try:
        yield
    except SparkCkptError:
        raise
    except FileNotFoundError as e:
        raise LocationNotFoundError(place) from e
    except Exception as e:
        raise StorageError(place, "read", e) from e


def _refuse_without_package(place: str, protocol: str | None) -> None:
    if protocol in _PACKAGES:
        raise FileSystemPackageError(place, protocol, _PACKAGES[protocol]) from None


def _is_local(file_system: fsspec.AbstractFileSystem) -> bool:
    return isinstance(file_system, LocalFileSystem)


def _s3_options() -> dict[str, Any]:
    # A listing of a moment ago is none of now.
    return {"use_listings_cache": False, "config_kwargs": client_config()}
