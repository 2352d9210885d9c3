"""The one rule for paths that stand in files: which of them this package writes. The shim has the same one, generated
from these patterns, and `tests/storage/paths.json` holds both to it."""

from __future__ import annotations

import re

from spark_ckpt.storage.errors import PathEscapeError

STATE_FILE = re.compile(r"shared/[A-Za-z0-9_-][A-Za-z0-9_.-]*")
"""State file, relative to `ckpt`."""

METADATA_FILE = re.compile(r"(chk-[0-9]{1,19}(-[0-9]{1,19})?/)?_metadata")
"""`_metadata`, relative to `ckpt`, or to a savepoint."""

OUT_OF_CHECKPOINT = "../"
"""Start of the path of a state file in the `_metadata` of a checkpoint."""


def is_state_path(path: str) -> bool:
    """True if this is the path of a state file, relative to `ckpt`."""
    return STATE_FILE.fullmatch(path) is not None


def is_metadata_path(path: str) -> bool:
    """True if this is the path of a `_metadata` as a record names it: relative to `ckpt`, or to a savepoint."""
    return METADATA_FILE.fullmatch(path) is not None


def state_path(path: str, within: str) -> str:
    """The path of a state file relative to `ckpt`, as the `_metadata` in `ckpt/chk-<id>` names it: `../shared/<name>`.

    Args:
        path: as it stands in the file.
        within: where it must lie, for the error.

    Raises:
        PathEscapeError: it is of any other form.
    """
    found = path.removeprefix(OUT_OF_CHECKPOINT)
    if found == path or not is_state_path(found):
        raise PathEscapeError(path, within)
    return found
