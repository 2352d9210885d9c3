"""File names below a checkpoint location."""

from __future__ import annotations

import re
import uuid

from spark_ckpt.metadata import METADATA_FILE_NAME

CKPT = "ckpt"
"""Directory of all our files."""

SHARED = "shared"
"""Directory of state files, below `ckpt`."""

TASK_OWNED = "taskowned"
"""Flink's directory for files of tasks, below `ckpt`. It stays empty."""

SAVEPOINTS = "savepoints"
"""Directory of notes of savepoints, below `ckpt`."""

TAGS = "tags"
"""Directory of tags, below `ckpt`."""

IMPORT_MARKER = "import.json"
"""Marker of an import, below `ckpt`."""

MIRROR_NOTE = "mirror.json"
"""Note of what a mirror follows, below `ckpt`."""

RESCALE_REQUEST = "rescale.json"
"""Request for a rescale of a running query, below `ckpt`."""

CHECKPOINT_DIRECTORY = re.compile(r"chk-([0-9]+)(?:-([0-9]+))?")
"""Directory of a checkpoint: its id, and the attempt number from the second attempt on."""

_HADOOP_CHECKSUM = re.compile(r"\.(.+)\.crc")

# All names of files below `ckpt`. Executors write `base`, `delta` and `deltas` (the shim's `StateFiles`), first as
# `.<name>.tmp`. The coordinator writes `merged`, `_metadata` and records, first as `.tmp-<hex>` (`spark_ckpt.storage`).
# Each may have a Hadoop checksum file next to it.
_STATE_NAME = r"(?:base|deltas?|merged)-[0-9a-f]{32}"
_TEMPORARY = r"\.tmp-[0-9a-f]{32}"
_RECORD = r"[0-9]{20}\.json"


def _with_checksums(names: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{names})|\.(?:{names})\.crc")


_IN_SHARED = _with_checksums(rf"{_STATE_NAME}|\.{_STATE_NAME}\.tmp|{_TEMPORARY}")
_IN_CHECKPOINT = _with_checksums(rf"{METADATA_FILE_NAME}|{_TEMPORARY}")
_LEFT_IN_LOG = re.compile(rf"{_TEMPORARY}|probe-[0-9a-f]+|\.(?:{_TEMPORARY}|probe-[0-9a-f]+|{_RECORD})\.crc")


def metadata_path(checkpoint_id: int, attempt: int = 1) -> str:
    """Path of a checkpoint's `_metadata`, relative to `ckpt`. Each write attempt has its own directory."""
    return f"chk-{checkpoint_id}/_metadata" if attempt == 1 else f"chk-{checkpoint_id}-{attempt}/_metadata"


def new_merged_path() -> str:
    """Fresh path for a file with segments of many subtasks, relative to `ckpt`."""
    return f"{SHARED}/merged-{uuid.uuid4().hex}"


def in_location(path: str) -> str:
    """Path relative to the checkpoint location, from a path relative to `ckpt`."""
    return f"{CKPT}/{path}"


def is_ours(directory: str, name: str) -> bool:
    """True if spark-ckpt writes files of this name in this directory, so that an orphan may be deleted.

    Args:
        directory: `shared`, or the directory of a checkpoint; relative to `ckpt`.
        name: file name.
    """
    if directory == SHARED:
        return _IN_SHARED.fullmatch(name) is not None
    return checkpoint_of_directory(directory) is not None and _IN_CHECKPOINT.fullmatch(name) is not None


def is_temporary(name: str) -> bool:
    """True if a file in `ckpt` or the log is a temporary file of a killed process, or Hadoop's checksum of one."""
    return _LEFT_IN_LOG.fullmatch(name) is not None


def checkpoint_of_directory(name: str) -> int | None:
    """Checkpoint id in a directory name `chk-<id>` or `chk-<id>-<attempt>`; None for other names."""
    match = CHECKPOINT_DIRECTORY.fullmatch(name)
    return int(match[1]) if match else None


def without_checksum_suffix(name: str) -> str:
    """`<name>` of Hadoop's checksum file `.<name>.crc`; any other name unchanged."""
    match = _HADOOP_CHECKSUM.fullmatch(name)
    return match[1] if match else name
