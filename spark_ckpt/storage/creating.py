"""Exclusive creation of a file when responses may be lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from spark_ckpt.errors import StateFileNotFoundError, StorageError
from spark_ckpt.storage.base import CreateOutcome, Storage


class Whose(Enum):
    """The creator of a file."""

    MINE = "mine"
    """The file exists with exactly the given bytes, durable."""
    OTHER = "other"
    """The file exists with other bytes, or existed and is gone, or `overtaken` returned True."""
    UNKNOWN = "unknown"
    """The storage does not say. The file may exist with the given bytes, now or later: keep everything it refers to."""


@dataclass(frozen=True, slots=True)
class ExclusiveCreate:
    """Result of an exclusive create.

    Args:
        whose: the creator.
        cause: the error behind an unknown creator, if the storage raised one.
        there: content of the other creator's file (OTHER), if it exists.
        may_arrive: True if a create request had an unknown outcome.
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
) -> ExclusiveCreate:
    """Creates a file exclusively, and reads it back if the response does not identify its creator.

    The create is retried only while the file is known to be absent, and with the same bytes: an earlier request that
    arrives late finds its own file.

    Args:
        storage: storage of the file.
        name: name of the file.
        data: content of the file, which no other process writes under this name.
        tries: maximum number of creates while the file is known to be absent; with `pause`, also of reads.
        again: True if an earlier call may have created the file. Then it is read first.
        pause: called between tries. Without it, the first storage error ends the tries.
        overtaken: called unless the first request was answered; returns True if another process relies on this file,
            or on its absence, so that the file is not ours even with our bytes. May raise `StorageError`.

    Raises:
        StorageError: the file was certainly not created: the storage fails, or refused every try.
        ExclusiveCreateUnsupportedError: the storage has no exclusive create.
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
                # This try certainly failed, but an earlier request may still arrive.
                cause, has_failed = e, True
                if pause is None:
                    break
                continue
            if result.outcome is CreateOutcome.REFUSED:
                cause, has_failed = result.cause or cause, True
                continue
            if result.outcome is CreateOutcome.WON and (overtaken is None or not may_be_mine):
                return ExclusiveCreate(Whose.MINE, may_arrive=may_arrive)
            may_arrive = may_arrive or result.outcome is CreateOutcome.UNKNOWN
            cause, may_be_mine = result.cause or cause, True
        # "Exists" does not imply another process: a client that retries a request gets it for its own file.
        try:
            there = _read(storage, name)
            if there not in (None, data):
                return ExclusiveCreate(Whose.OTHER, cause, there, may_arrive)
            if there is not None:
                storage.make_durable(name)
            if overtaken is not None and overtaken():
                return ExclusiveCreate(Whose.OTHER, cause, None, may_arrive)
        except StorageError as e:
            is_absent, cause = False, cause or e
            if pause is None:
                break
            continue
        if there is not None:
            return ExclusiveCreate(Whose.MINE, may_arrive=may_arrive)
        is_absent = True
    if has_failed and not may_be_mine:
        raise StorageError(storage.describe(name), "create", cause) from cause
    if is_absent and not (again or may_arrive or has_failed):
        # On each try, the file existed and vanished at once, or is a dangling link: it is not ours.
        return ExclusiveCreate(Whose.OTHER, cause)
    return ExclusiveCreate(Whose.UNKNOWN, cause, may_arrive=may_arrive)


def create_or_find(storage: Storage, name: str, data: bytes, tries: int = 1) -> bool:
    """Creates a file exclusively, and resolves a lost or unknown outcome.

    Args:
        storage: storage of the file.
        name: name of the file.
        data: content of the file, which no other process writes under this name.
        tries: maximum number of creates while the file is known to be absent.

    Returns:
        True if the file exists with exactly these bytes; False if another file has its name.

    Raises:
        StorageError: the file could not be created, or the outcome stays unknown.
        ExclusiveCreateUnsupportedError: the storage has no exclusive create.
    """
    found = create_and_find(storage, name, data, tries)
    if found.whose is Whose.UNKNOWN:
        reason = found.cause or "the storage does not report whether the file exists"
        raise StorageError(storage.describe(name), "create", reason) from found.cause
    return found.whose is Whose.MINE


def _read(storage: Storage, name: str) -> bytes | None:
    try:
        return storage.read(name)
    except StateFileNotFoundError:
        return None
