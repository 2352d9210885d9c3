"""The file systems of places that a user names: whatever fsspec serves, with errors of ours and an end to waiting."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from spark_ckpt.errors import SparkCkptError, StorageError
from spark_ckpt.locations.errors import HadoopNotFoundError, LocationNotFoundError
from spark_ckpt.storage import FsspecStorage, LocalStorage, Storage, resolve
from spark_ckpt.storage.resolve import S3fsNotFoundError
from spark_ckpt.storage.s3 import S3_PROTOCOLS, client_config

_HADOOP_PROTOCOLS = ("hdfs", "viewfs")


def file_system_of(place: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The file system of a path or URL, and the path on it, for what `storage_at` does not do.

    S3 is asked again by s3fs, 5 times in all: what waits for an answer that never comes takes a minute.

    Raises:
        S3fsNotFoundError: the place is on S3, and s3fs is not installed.
        HadoopNotFoundError: the place is on HDFS, and there is no Hadoop client that works here.
        StorageError: fsspec does not serve such a URL.
    """
    protocol, _ = fsspec.core.split_protocol(place)
    is_on_s3 = protocol in S3_PROTOCOLS
    with reading(place):
        try:
            file_system, path = fsspec.core.url_to_fs(place, **(_s3_options() if is_on_s3 else {}))
        except ImportError:
            if is_on_s3:
                raise S3fsNotFoundError(place) from None
            raise
        except (OSError, ValueError) as e:
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
    protocol, _ = fsspec.core.split_protocol(directory)
    if protocol in S3_PROTOCOLS:
        with reading(directory):
            return resolve(directory)
    file_system, path = file_system_of(directory)
    return LocalStorage(path) if _is_local(file_system) else FsspecStorage(file_system, path, directory)


def are_one_directory(first: str, second: str) -> bool:
    """Whether two paths or URLs name one directory, however they spell it."""
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


def _is_local(file_system: fsspec.AbstractFileSystem) -> bool:
    return isinstance(file_system, LocalFileSystem)


def _s3_options() -> dict[str, Any]:
    # A listing of a moment ago is none of now.
    return {"use_listings_cache": False, "config_kwargs": client_config()}
