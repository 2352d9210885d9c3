"""From a path or URL to its fsspec file system, with every character meant as it stands."""

from __future__ import annotations

import re
from typing import Any

import fsspec

_PROTOCOL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://", re.ASCII)


def file_system_of_url(url: str, **options: Any) -> tuple[fsspec.AbstractFileSystem, str]:  # noqa: ANN401
    """The file system of a path or URL, and the path on it.

    Unlike `fsspec.core.url_to_fs` this knows no chains: `a::b` is a name. A chain would let a name in a file that is
    read, such as a `_metadata`, open something else.

    Args:
        url: a local path or any URL that fsspec serves.
        options: arguments of the file system, such as credentials.

    Raises:
        ImportError: the file system's package is not installed.
        ValueError: fsspec does not serve this protocol, or the file system cannot be used.
        OSError: the file system cannot be used.
    """
    protocol = _protocol(url)
    kind = fsspec.get_filesystem_class(protocol)
    return fsspec.filesystem(protocol, **{**kind._get_kwargs_from_urls(url), **options}), kind._strip_protocol(url)


def _protocol(url: str) -> str:
    # fsspec takes whatever is before the first "://" for a protocol, a path with "::" in it too.
    match = _PROTOCOL.match(url)
    return match[1] if match else "file"
