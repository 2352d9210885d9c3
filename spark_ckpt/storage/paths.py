"""Patterns of the paths that this package writes into files. The shim's rule is generated from them, and
`tests/storage/paths.json` tests both."""

from __future__ import annotations

import re
from functools import lru_cache

from spark_ckpt.storage.errors import PathEscapeError

STATE_FILE = re.compile(r"shared/[A-Za-z0-9_-][A-Za-z0-9_.-]*")
"""Path of a state file, relative to `ckpt`."""

METADATA_FILE = re.compile(r"(chk-[0-9]{1,19}(-[0-9]{1,19})?/)?_metadata")
"""Path of a `_metadata` file, relative to `ckpt` or to a savepoint."""

OUT_OF_CHECKPOINT = "../"
"""Prefix of state file paths in the `_metadata` of a checkpoint."""


# Many segments of a checkpoint share a file.
@lru_cache(maxsize=4096)
def is_state_path(path: str) -> bool:
    """True if `path` is the path of a state file relative to `ckpt`."""
    return STATE_FILE.fullmatch(path) is not None


def is_metadata_path(path: str) -> bool:
    """True if `path` is the path of a `_metadata` file as in a record: relative to `ckpt` or to a savepoint."""
    return METADATA_FILE.fullmatch(path) is not None


def state_path(path: str, within: str) -> str:
    """Path of a state file relative to `ckpt`.

    Args:
        path: the path in the `_metadata` in `ckpt/chk-<id>`, of the form `../shared/<name>`.
        within: directory that must contain the file, for the error.

    Raises:
        PathEscapeError: the path has any other form.
    """
    result = path.removeprefix(OUT_OF_CHECKPOINT)
    if result == path or not is_state_path(result):
        raise PathEscapeError(path, within)
    return result
