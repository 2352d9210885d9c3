"""Lookup of the fsspec file system of a path or URL, without special meanings of its characters."""

from __future__ import annotations

import re
from typing import Any

import fsspec

_PROTOCOL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://", re.ASCII)


def file_system_of_url(url: str, **options: Any) -> tuple[fsspec.AbstractFileSystem, str]:  # noqa: ANN401
    """File system of a path or URL, and the path on it.

    Unlike `fsspec.core.url_to_fs`, this does not support chained URLs: `a::b` is a file name. With chains, a path from
    an untrusted file, such as a `_metadata`, could open something else.

    Args:
        url: local path, or any URL that fsspec supports.
        options: options of the file system, such as credentials.

    Raises:
        ImportError: the file system's package is not installed.
        ValueError: fsspec does not support this protocol, or the file system cannot be used.
        OSError: the file system cannot be used.
    """
    protocol = _protocol(url)
    kind = fsspec.get_filesystem_class(protocol)
    return fsspec.filesystem(protocol, **{**kind._get_kwargs_from_urls(url), **options}), kind._strip_protocol(url)


def _protocol(url: str) -> str:
    # fsspec parses any text before the first "://" as the protocol, even a path with "::".
    match = _PROTOCOL.match(url)
    return match[1] if match else "file"
