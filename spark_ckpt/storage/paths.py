"""The one rule for paths that stand in files: which of them this package writes. The jar has the same one, in
`CheckpointPaths`, and `tests/storage/paths.json` holds both to it."""

from __future__ import annotations

import re

from spark_ckpt.storage.errors import PathEscapeError

_STATE_FILE = re.compile(r"shared/[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_METADATA_FILE = re.compile(r"(chk-[0-9]{1,19}(-[0-9]{1,19})?/)?_metadata")
_OUT_OF_CHECKPOINT = "../"


def is_state_path(path: str) -> bool:
    """True if this is the path of a state file, relative to `ckpt`."""
    return _STATE_FILE.fullmatch(path) is not None


def is_metadata_path(path: str) -> bool:
    """True if this is the path of a `_metadata` as a record names it: relative to `ckpt`, or to a savepoint."""
    return _METADATA_FILE.fullmatch(path) is not None


def state_path(path: str, within: str) -> str:
    """The path of a state file relative to `ckpt`, as the `_metadata` in `ckpt/chk-<id>` names it: `../shared/<name>`.

    Args:
        path: as it stands in the file.
        within: where it must lie, for the error.

    Raises:
        PathEscapeError: it is of any other form.
    """
    found = path.removeprefix(_OUT_OF_CHECKPOINT)
    if found == path or not is_state_path(found):
        raise PathEscapeError(path, within)
    return found
