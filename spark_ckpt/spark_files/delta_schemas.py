"""Logs in which a Delta source tracks the schemas of its table (`DeltaSourceMetadataTrackingLog`).

The option `schemaTrackingLocation` of the source names a directory anywhere below the checkpoint location. Each entry
has the path of the source's own directory, and Delta refuses another one.
"""

from __future__ import annotations

import json

from spark_ckpt.spark_files.logs import SOURCES
from spark_ckpt.spark_files.text import text_of

SCHEMA_LOG = "_schema_log_"
"""Prefix of the directory of such a log."""

_PATH = "sourceMetadataPath"


def is_schema_log(name: str) -> bool:
    """True for the name of an entry of such a log."""
    return any(part.startswith(SCHEMA_LOG) for part in name.split("/")[:-1])


def moved_schema_log(content: bytes, location: str) -> bytes:
    """The content of an entry for another location; unchanged if it has no path of a source.

    Args:
        content: content of the file.
        location: the checkpoint location in Hadoop's form.
    """
    try:
        return "\n".join(_moved(line, location) for line in content.decode().split("\n")).encode()
    except UnicodeDecodeError:
        return content


def _moved(line: str, location: str) -> str:
    try:
        fields = json.loads(line)
    except ValueError:
        return line
    path = fields.get(_PATH) if isinstance(fields, dict) else None
    if not isinstance(path, str) or f"/{SOURCES}/" not in path:
        return line
    return text_of({**fields, _PATH: f"{location}/{SOURCES}/{path.rpartition(f'/{SOURCES}/')[2]}"})
