"""Entry points: `_metadata` from and to bytes, local files, and other file systems of fsspec."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import Any

import fsspec

from spark_ckpt.metadata.decoder import decode
from spark_ckpt.metadata.encoder import encode
from spark_ckpt.metadata.errors import MetadataNotFoundError
from spark_ckpt.metadata.literal_urls import file_system_of_url
from spark_ckpt.metadata.model import CheckpointMetadata

METADATA_FILE_NAME = "_metadata"
"""Name of the file in the directory of a checkpoint or savepoint (`AbstractFsCheckpointStorageAccess`)."""

DEFAULT_VERSION = 3
"""Version written by default: every Flink release since 1.11 reads it."""


def loads(content: bytes | bytearray | memoryview, path: str = "<bytes>") -> CheckpointMetadata:
    """Decode the bytes of a `_metadata` file of version 2 to 6. Like Flink, ignore bytes after its end.

    Args:
        content: bytes of the file.
        path: origin of the bytes, for errors.

    Raises:
        UnsupportedMetadataVersionError: another version.
        MetadataFormatError: malformed for its version.
    """
    return decode(bytes(content), path)


def load(path: str | os.PathLike[str], *, storage_options: Mapping[str, Any] | None = None) -> CheckpointMetadata:
    """Read a `_metadata` file.

    Args:
        path: file, or directory with a file `_metadata`; a local path or a URL.
        storage_options: options of the fsspec file system, such as credentials.

    Raises:
        MetadataNotFoundError: the file does not exist.
        UnsupportedMetadataVersionError, MetadataFormatError: as in `loads`.
    """
    url = os.fspath(path)
    file_system, file = file_system_of_url(url, **(storage_options or {}))
    try:
        return loads(_read(file_system, file), url)
    except FileNotFoundError:
        raise MetadataNotFoundError(url) from None


def dumps(metadata: CheckpointMetadata, version: int = DEFAULT_VERSION) -> bytes:
    """Bytes of a `_metadata` file. Metadata read from a file encodes to the same bytes in the same version.

    Args:
        metadata: checkpoint to encode.
        version: 2 to 6.

    Raises:
        UnsupportedMetadataVersionError: another version.
        MetadataValueError: this version cannot hold a part of `metadata`.
    """
    return encode(metadata, version)


def dump(
    metadata: CheckpointMetadata,
    path: str | os.PathLike[str],
    version: int = DEFAULT_VERSION,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Write a `_metadata` file, replacing an existing one. A local file is written atomically, and durable
    on return, name and content.

    Args:
        metadata: checkpoint to write.
        path: file, as a local path or a URL. Missing parent directories are created.
        version: 2 to 6.
        storage_options: options of the fsspec file system, such as credentials.

    Raises:
        UnsupportedMetadataVersionError, MetadataValueError: as in `dumps`; nothing was written.
    """
    content = dumps(metadata, version)
    file_system, file = file_system_of_url(os.fspath(path), **(storage_options or {}))
    parent = file_system._parent(file)
    file_system.makedirs(parent, exist_ok=True)
    if "file" not in _protocols(file_system):
        file_system.pipe_file(file, content)
        return
    unfinished = f"{parent}/.{METADATA_FILE_NAME}.{uuid.uuid4().hex}"
    try:
        with open(unfinished, "xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, file)
        _sync_directory(parent)
    except BaseException:
        if os.path.exists(unfinished):
            os.remove(unfinished)
        raise


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(file_system: fsspec.AbstractFileSystem, file: str) -> bytes:
    if file_system.isdir(file):
        file = f"{file.rstrip('/')}/{METADATA_FILE_NAME}"
    content: bytes = file_system.cat_file(file)
    return content


def _protocols(file_system: fsspec.AbstractFileSystem) -> tuple[str, ...]:
    protocol = file_system.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)
