"""What the storages on object stores share."""

from __future__ import annotations

from collections.abc import Sequence

from spark_ckpt.storage.base import CreateOutcome
from spark_ckpt.storage.holding import overlapping_creates
from spark_ckpt.storage.remote import FsspecStorage

_NO_ANSWER = (408, 499)
"""HTTP statuses below 500 that say nothing about the request."""

_WON = CreateOutcome.WON


class ObjectStorage(FsspecStorage):
    """Objects of a store, through a client that sends each request once and has `delete_objects`."""

    @property
    def writes_whole(self) -> bool:
        """True: an object appears with all bytes of its upload, or not at all."""
        return True

    def delete_all(self, names: Sequence[str]) -> None:
        """Deletes files, several at once."""
        if names:
            paths = [self._path(name) for name in names]
            self._retry(names[0], "delete", lambda: self._fs.delete_objects(paths))

    def _overlapping_creates_won(self, name: str) -> bool:
        errors = overlapping_creates(self._fs, self._path(name), b"around" * 100, b"within" * 100)
        outcomes = [_WON if error is None else self._not_created(name, error).outcome for error in errors]
        return outcomes == [_WON, _WON]


def is_refusal(status: int | None) -> bool:
    """True for the HTTP status of a request that the store rejects, as 409 for one in conflict with another."""
    return status is not None and 400 <= status < 500 and status not in _NO_ANSWER
