"""Files that retained checkpoints use (Flink: `SharedStateRegistry`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


class SharedStateRegistry:
    """Reference counts of state files: the number of retained checkpoints that refer to each. Not thread-safe.

    A checkpoint with unknown references may refer to any file.
    """

    def __init__(self) -> None:
        self._files_of: dict[int, frozenset[str]] = {}
        self._uses: Counter[str] = Counter()
        self._unread: set[int] = set()
        self._held: set[str] = set()

    @property
    def is_whole(self) -> bool:
        """True if the references of all retained checkpoints are known."""
        return not self._unread

    def register(self, checkpoint_id: int, files: Iterable[str]) -> None:
        """Register the files of a checkpoint. Registering a checkpoint again changes nothing."""
        if checkpoint_id not in self._files_of:
            files = frozenset(files)
            self._files_of[checkpoint_id] = files
            self._uses.update(files)

    def register_unread(self, checkpoint_id: int) -> None:
        """Register an unread checkpoint. All files stay until its references are known or it is dropped."""
        self._unread.add(checkpoint_id)

    def found(self, checkpoint_id: int, files: Iterable[str]) -> None:
        """Add the references of a previously unread checkpoint, unless it was dropped meanwhile."""
        if checkpoint_id in self._unread:
            self._unread.discard(checkpoint_id)
            self.register(checkpoint_id, files)

    def hold(self, files: Iterable[str]) -> None:
        """Hold files without a known reference, until the references of all checkpoints are known."""
        self._held.update(files)

    def unregister(self, checkpoint_id: int) -> list[str]:
        """Unregister a dropped checkpoint.

        Returns:
            Files without references. A registry returns each file once, because names are not reused.
        """
        self._unread.discard(checkpoint_id)
        for file in self._files_of.pop(checkpoint_id, ()):
            self._uses[file] -= 1
            if self._uses[file] == 0:
                del self._uses[file]
                self._held.add(file)
        if not self.is_whole:
            return []
        unused, self._held = self._held - self._uses.keys(), set()
        return sorted(unused)

    def __contains__(self, file: object) -> bool:
        """True if a checkpoint refers to a file, or may refer to it."""
        return file in self._uses or not self.is_whole

    def files(self) -> set[str]:
        """All files with known references."""
        return set(self._uses)
