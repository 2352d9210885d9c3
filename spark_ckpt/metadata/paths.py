"""Texts that Flink accepts as file paths (`org.apache.flink.core.fs.Path`): URIs without percent-encoding.

Paths are kept as text, unchanged. Flink does not load a file with a text that is not a valid path, so the decoder and
the model reject it, too.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

# Form of nearly all paths. One match is several times as fast as parsing a path.
_ORDINARY = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://[^/\[\]]*)?/[^/\\][^\\]*", re.DOTALL)
_ORDINARY_RELATIVE = re.compile(r"[^:/\\][^:\\]*", re.DOTALL)

_WINDOWS_DRIVE = re.compile("[A-Za-z]:")
_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]*")
_ABSOLUTE = re.compile("[A-Za-z][A-Za-z0-9+.-]*:/")
_SERVER = re.compile(r"(?:[^@\[\]]*@)?\[([0-9A-Fa-f:.]+)(?:%[A-Za-z0-9_.]+)?\](?::([0-9]*))?")


def refusal(text: str) -> str | None:
    """Reason why Flink rejects the text as a path; None if Flink accepts it."""
    if _ORDINARY.fullmatch(text):
        return None
    if not text:
        return "the path is empty"
    scheme, authority, path = components(text)
    if scheme is not None:
        if not _SCHEME.fullmatch(scheme):
            return f"'{scheme}' is not a path scheme"
        if not path.startswith("/") and (path or authority is None):
            return f"a path with the scheme '{scheme}' must be absolute"
    if authority is not None and re.search(r"[\[\]]", authority) and not _is_server(authority):
        return f"'{authority}' is not a path authority"
    return None


# Many segments of a checkpoint share a file.
@lru_cache(maxsize=4096)
def relative_refusal(text: str) -> str | None:
    """Reason why Flink rejects the text as a path below the directory of `_metadata`; None if Flink accepts it.

    Flink strips leading slashes, and then may find a scheme that was not one before.
    """
    if _ORDINARY_RELATIVE.fullmatch(text):
        return None
    if (reason := refusal(text)) is not None:
        return reason
    scheme, authority, path = components(text)
    if not path.startswith("/"):
        return None
    below = path.lstrip("/")
    if scheme is not None or not below:
        return "the path is not relative"
    if not authority and ":" in below.partition("/")[0] and not _ABSOLUTE.match(below):
        return "the path has a colon in its first segment"
    return None


def components(text: str) -> tuple[str | None, str | None, str]:
    """Scheme, authority and path of a text, parsed as `new Path(String)` does; backslashes become slashes."""
    if _WINDOWS_DRIVE.match(text):
        text = "/" + text
    colon, slash = text.find(":"), text.find("/")
    scheme = text[:colon] if colon >= 0 and (slash < 0 or colon < slash) else None
    rest = text if scheme is None else text[colon + 1 :]
    authority = None
    if rest.startswith("//") and len(rest) > 2:
        authority, separator, path = rest[2:].partition("/")
        rest = separator + path
    return scheme, authority, rest.replace("\\", "/")


def _is_server(authority: str) -> bool:
    """True if an authority with brackets is an IPv6 host, the only use of brackets (`java.net.URI`)."""
    if (match := _SERVER.fullmatch(authority)) is None or int(match[2] or 0) >= 2**31:
        return False
    try:
        ipaddress.IPv6Address(match[1])
    except ValueError:
        return False
    return True
