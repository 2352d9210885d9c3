"""Names of files below a checkpoint location."""

from __future__ import annotations

import re
import uuid

CKPT = "ckpt"
"""The directory of all our files."""

SHARED = "shared"
"""Directory of state files, below `ckpt`."""

_CHECKPOINT_DIRECTORY = re.compile(r"chk-([0-9]+)(-[0-9]+)?")
_STATE_FILE = re.compile(r"shared/[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_HADOOP_CHECKSUM = re.compile(r"\.(.+)\.crc")


def metadata_path(checkpoint_id: int, attempt: int = 1) -> str:
    """`_metadata` of a checkpoint, relative to `ckpt`. Each attempt to write it has a directory of its own."""
    return f"chk-{checkpoint_id}/_metadata" if attempt == 1 else f"chk-{checkpoint_id}-{attempt}/_metadata"


def new_merged_path() -> str:
    """A name that no file has had, relative to `ckpt`, for segments of many subtasks."""
    return f"{SHARED}/merged-{uuid.uuid4().hex}"


def in_location(path: str) -> str:
    """The name of a file relative to the checkpoint location, from its name relative to `ckpt`."""
    return f"{CKPT}/{path}"


def is_state_path(path: str) -> bool:
    """Whether a task may name this path (relative to `ckpt`) as its state file."""
    return _STATE_FILE.fullmatch(path) is not None


def checkpoint_of_directory(name: str) -> int | None:
    """The id in the name of a directory `chk-<id>` or `chk-<id>-<attempt>`, or None."""
    match = _CHECKPOINT_DIRECTORY.fullmatch(name)
    return int(match[1]) if match else None


def without_checksum_suffix(name: str) -> str:
    """The file that Hadoop's checksum file `.<name>.crc` belongs to; another name as it is."""
    match = _HADOOP_CHECKSUM.fullmatch(name)
    return match[1] if match else name
