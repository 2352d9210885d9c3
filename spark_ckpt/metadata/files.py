"""Entry points: `_metadata` from and to bytes, local files and whatever else fsspec serves."""

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
"""Name of the file in a checkpoint's or savepoint's directory (`AbstractFsCheckpointStorageAccess`)."""

DEFAULT_VERSION = 3
"""The version written unless another is asked for: every Flink release since 1.11 reads it."""


def loads(content: bytes | bytearray | memoryview, path: str = "<bytes>") -> CheckpointMetadata:
    """Reads the bytes of a `_metadata` file of version 2, 3 or 4. Bytes after its end are ignored, as Flink does.

    Args:
        content: the bytes.
        path: where they come from, for errors.

    Raises:
        UnsupportedMetadataVersionError: the file has another version.
        MetadataFormatError: the bytes are not what a file of their version has.
    """
    return decode(bytes(content), path)


def load(path: str | os.PathLike[str], *, storage_options: Mapping[str, Any] | None = None) -> CheckpointMetadata:
    """Reads a `_metadata` file.

    Args:
        path: the file, or a directory that holds one under the name `_metadata`; a local path or a URL.
        storage_options: what the fsspec file system needs, such as credentials.

    Raises:
        MetadataNotFoundError: there is no such file.
        UnsupportedMetadataVersionError, MetadataFormatError: as in `loads`.
    """
    url = os.fspath(path)
    file_system, file = file_system_of_url(url, **(storage_options or {}))
    try:
        return loads(_read(file_system, file), url)
    except FileNotFoundError:
        raise MetadataNotFoundError(url) from None


def dumps(metadata: CheckpointMetadata, version: int = DEFAULT_VERSION) -> bytes:
    """The bytes of a `_metadata` file. What was read from a file gives the same bytes in the same version.

    Args:
        metadata: what to write.
        version: 2, 3 or 4.

    Raises:
        UnsupportedMetadataVersionError: another version.
        MetadataValueError: `metadata` holds what this version cannot hold.
    """
    return encode(metadata, version)


def dump(
    metadata: CheckpointMetadata,
    path: str | os.PathLike[str],
    version: int = DEFAULT_VERSION,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Writes a `_metadata` file, over one that is there. A local file appears whole or not at all.

    Args:
        metadata: what to write.
        path: the file, a local path or a URL. Directories above it are made.
        version: 2, 3 or 4.
        storage_options: what the fsspec file system needs, such as credentials.

    Raises:
        UnsupportedMetadataVersionError, MetadataValueError: as in `dumps`; nothing is written then.
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
    except BaseException:
        if os.path.exists(unfinished):
            os.remove(unfinished)
        raise


def _read(file_system: fsspec.AbstractFileSystem, file: str) -> bytes:
    if file_system.isdir(file):
        file = f"{file.rstrip('/')}/{METADATA_FILE_NAME}"
    content: bytes = file_system.cat_file(file)
    return content


def _protocols(file_system: fsspec.AbstractFileSystem) -> tuple[str, ...]:
    protocol = file_system.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)
