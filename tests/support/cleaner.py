"""A cleaner without a thread."""

from __future__ import annotations

from collections.abc import Iterable

from spark_ckpt.clock import Clock
from spark_ckpt.location.cleaner import Cleaner
from spark_ckpt.storage import Storage


class ImmediateCleaner(Cleaner):
    """Deletes on the caller's thread, so that a test knows which files exist."""

    def __init__(self, storage: Storage, clock: Clock | None = None) -> None:
        super().__init__(storage, clock)
        self._held: list[str] | None = None

    def submit(self, names: Iterable[str]) -> None:
        """Deletes the files at once."""
        if not (new := self._new(names)):
            return
        if self._held is None:
            self._delete(new)
        else:
            self._held.extend(new)

    def hold(self) -> list[str]:
        """Stops deleting from now on.

        Returns:
            A list that collects the files it would have deleted.
        """
        self._held = []
        return self._held

    def close(self, timeout: float) -> None:
        """Does nothing: no deletion is ever pending."""
