"""Keys of settings: ours, and misspelt ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from spark_ckpt.errors import SettingError

PREFIX = "spark.sql.streaming.stateStore.ckpt."
"""Prefix of all keys. Only settings below `stateStore.` reach Spark's executors."""

_PARENTS = PREFIX.rstrip(".").lower().split(".")[:-1]
_STATE_STORE = _PARENTS[-1]
_OURS = "ckpt"
_NICKNAMES = frozenset({"checkpoint", "checkpoints", "checkpointing", "spark-ckpt", "spark_ckpt", "sparkckpt"})
_ALIKE = 0.75


def check_key(key: str, suffixes: Sequence[str]) -> None:
    """Check that a key is a setting of ours or of another product.

    Args:
        key: any key of a Spark configuration.
        suffixes: the keys of our settings without `PREFIX`.

    Raises:
        SettingError: an unknown setting below `PREFIX`, or a misspelt one. The message suggests the nearest setting.
    """
    if key.startswith(PREFIX):
        if key[len(PREFIX) :] not in suffixes:
            raise SettingError(key, _unknown(key[len(PREFIX) :], suffixes))
    elif (meant := meant_suffix(key, suffixes)) is not None:
        raise SettingError(key, _unknown(meant, suffixes))


def check_ours(keys: Iterable[str], suffixes: Sequence[str]) -> None:
    """Check that all keys are settings of ours.

    Raises:
        SettingError: one is not. The message suggests the nearest setting.
    """
    for key in keys:
        check_key(key, suffixes)
        if not key.startswith(PREFIX):
            raise SettingError(key, _unknown(key.rpartition(".")[2], suffixes))


def meant_suffix(key: str, suffixes: Sequence[str]) -> str | None:
    """The part of a key after a misspelt `PREFIX`; None if the key is not meant to be ours.

    Below `stateStore` or a similar part, a part similar to `ckpt` is enough. Without either of them, the rest of the
    key must be a setting of ours: other products have keys such as `spark.ckpt.level`.
    """
    known = {suffix.lower() for suffix in suffixes}
    parts = key.split(".")
    lower = [part.lower() for part in parts]
    for at, part in enumerate(lower[:-1]):
        if not _in_order(lower[:at]):
            return None
        rest = ".".join(parts[at + 1 :])
        below_state_store = at > 0 and _like(lower[at - 1], _STATE_STORE)
        if below_state_store and (_like(part, _OURS) or part in _NICKNAMES):
            return rest
        if rest.lower() in known and (_like(part, _OURS) or _like(part, _STATE_STORE)):
            return rest
    return None


def _in_order(parts: Sequence[str]) -> bool:
    """True if these resemble parts of the prefix, in order; some may be missing."""
    expected = iter(_PARENTS)
    return all(any(_like(part, name) for name in expected) for part in parts)


def _like(part: str, name: str) -> bool:
    plain = part.replace("-", "").replace("_", "")
    return difflib.SequenceMatcher(None, plain, name, autojunk=False).ratio() >= _ALIKE


def _unknown(suffix: str, suffixes: Sequence[str]) -> str:
    names = {name.lower(): name for name in suffixes}
    near = difflib.get_close_matches(suffix.lower(), names, n=1, cutoff=0.5)
    if near:
        return f"unknown setting; did you mean {PREFIX}{names[near[0]]}?"
    return f"unknown setting; the settings below {PREFIX} are {', '.join(sorted(suffixes))}"
