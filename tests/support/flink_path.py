"""Flink's normal forms of paths and UUIDs; loading preserves neither text as written in the file."""

from __future__ import annotations

import hashlib
import re
import uuid

from spark_ckpt.metadata.paths import components

WINDOWS_ROOT = re.compile("/[A-Za-z]+:/")
WINDOWS_DRIVE = re.compile("/[A-Za-z]:")


def as_flink_path(text: str) -> str:
    """`new Path(text).toString()`."""
    scheme, authority, path = components(text)
    path = re.sub("/{2,}", "/", path)
    if path.endswith("/") and path != "/" and not WINDOWS_ROOT.fullmatch(path):
        path = path[:-1]
    path = normalised(path)
    if not (scheme or authority) and WINDOWS_DRIVE.match(path):
        path = path[1:]
    return (f"{scheme}:" if scheme else "") + (f"//{authority}" if authority else "") + path


def normalised(path: str) -> str:
    """Path component as normalised by `java.net.URI.normalize()`."""
    segments = [segment for segment in path.split("/") if segment]
    if not {".", ".."} & set(segments):
        return path
    kept: list[str] = []
    is_directory = False
    for segment in segments:
        is_directory = segment == "." or (segment == ".." and bool(kept) and kept[-1] != "..")
        if not is_directory:
            kept.append(segment)
        elif segment == "..":
            kept.pop()
    root = "/" if path.startswith("/") else ""
    if not root and kept and ":" in kept[0]:
        kept.insert(0, ".")
    return root + "/".join(kept) + ("/" if kept and is_directory else "")


def as_flink_uuid(text: str) -> str:
    """Result of `UUID.fromString`, or of `UUID.nameUUIDFromBytes` for text that it rejects."""
    parts = text.split("-")
    if len(text) <= 36 and len(parts) == 5 and all(re.fullmatch(r"\+?[0-9A-Fa-f]+", part) for part in parts):
        numbers = [int(part, 16) for part in parts]
        if max(numbers) < 2**63:
            widths = (8, 4, 4, 4, 12)
            return "-".join(f"{number % 16**width:0{width}x}" for number, width in zip(numbers, widths, strict=True))
    digest = bytearray(hashlib.md5(text.encode(errors="replace")).digest())
    digest[6] = digest[6] & 0x0F | 0x30
    digest[8] = digest[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(digest)))
