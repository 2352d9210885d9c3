"""Exclusive creation of a file whose answer may get lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from spark_ckpt.errors import StateFileNotFoundError, StorageError
from spark_ckpt.storage.base import CreateOutcome, Storage


class Whose(Enum):
    """The creator of a file."""

    MINE = "mine"
    """It is there with exactly the given bytes."""
    OTHER = "other"
    """It is there with other bytes, or was there and is gone, or `overtaken` said so."""
    UNKNOWN = "unknown"
    """The storage does not say. It may be there with the given bytes, now or later: nothing that it needs may go."""


@dataclass(frozen=True, slots=True)
class Found:
    """Result of an exclusive create.

    Args:
        whose: the creator.
        cause: the error that leaves it unknown, if the storage gave one.
        there: the other bytes of OTHER, if they are there.
        may_arrive: True if a request to create the file had an unknown outcome.
    """

    whose: Whose
    cause: BaseException | None = None
    there: bytes | None = None
    may_arrive: bool = False


def create_and_find(
    storage: Storage,
    name: str,
    data: bytes,
    tries: int = 1,
    *,
    again: bool = False,
    pause: Callable[[], None] | None = None,
    overtaken: Callable[[], bool] | None = None,
) -> Found:
    """Creates a file exclusively. If the answer leaves open who has created it, reads it back.

    The file is created again only while it is known to be absent. The same bytes: should an earlier request still
    arrive, it finds its own file.

    Args:
        storage: where.
        name: of the file.
        data: its bytes, which no other process writes under this name.
        tries: how often to create it, as long as it is known to be absent; with `pause`, also how often to read it.
        again: True if an earlier call may have created it. Then it is read first.
        pause: called between tries. Without it the first error of the storage ends them.
        overtaken: asked unless the first request was answered: True if another process relies on this file, or on its
            absence, so that it is not ours even with our bytes. May raise `StorageError`.

    Raises:
        StorageError: it was certainly not created.
        ExclusiveCreateUnsupportedError: this storage cannot do it.
    """
    cause: BaseException | None = None
    is_absent, may_be_mine, may_arrive, has_failed = not again, again, False, False
    for attempt in range(tries):
        if attempt and pause is not None:
            pause()
        if is_absent:
            try:
                result = storage.create_exclusive(name, data)
            except StorageError as e:
                if not may_be_mine:
                    raise
                # This try certainly failed, but an earlier one may yet arrive.
                cause, has_failed = e, True
                if pause is None:
                    break
                continue
            if result.outcome is CreateOutcome.WON and (overtaken is None or not may_be_mine):
                return Found(Whose.MINE, may_arrive=may_arrive)
            may_arrive = may_arrive or result.outcome is CreateOutcome.UNKNOWN
            cause, may_be_mine = result.cause or cause, True
        # "Exists" does not mean another process: a client that repeats a request is told so of its own file.
        try:
            there = _read(storage, name)
            if there not in (None, data):
                return Found(Whose.OTHER, cause, there, may_arrive)
            if overtaken is not None and overtaken():
                return Found(Whose.OTHER, cause, None, may_arrive)
        except StorageError as e:
            is_absent, cause = False, cause or e
            if pause is None:
                break
            continue
        if there is not None:
            return Found(Whose.MINE, may_arrive=may_arrive)
        is_absent = True
    if is_absent and not (again or may_arrive or has_failed):
        # Each time it was there and gone at once, or is a link to nothing: ours it is not.
        return Found(Whose.OTHER, cause)
    return Found(Whose.UNKNOWN, cause, may_arrive=may_arrive)


def create_or_find(storage: Storage, name: str, data: bytes, tries: int = 1) -> bool:
    """Creates a file exclusively, and finds out what a lost or unknown outcome means.

    Args:
        storage: where.
        name: of the file.
        data: its bytes, which no other process writes under this name.
        tries: how often to create it, as long as it is known to be absent.

    Returns:
        True if the file is there with exactly these bytes; False if there is another one in its place.

    Raises:
        StorageError: it could not be created, or the storage does not say whether it was.
        ExclusiveCreateUnsupportedError: this storage cannot do it.
    """
    found = create_and_find(storage, name, data, tries)
    if found.whose is Whose.UNKNOWN:
        reason = found.cause or "the storage does not say whether it is there"
        raise StorageError(storage.describe(name), "create", reason) from found.cause
    return found.whose is Whose.MINE


def _read(storage: Storage, name: str) -> bytes | None:
    try:
        return storage.read(name)
    except StateFileNotFoundError:
        return None
