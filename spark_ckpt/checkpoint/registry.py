"""Files that retained checkpoints use (Flink: `SharedStateRegistry`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


class SharedStateRegistry:
    """Counts, for every state file, the retained checkpoints that refer to it. Not thread-safe.

    While the references of some checkpoint are unknown, it may refer to any file.
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
        """A checkpoint refers to these files. Registering it again changes nothing."""
        if checkpoint_id not in self._files_of:
            files = frozenset(files)
            self._files_of[checkpoint_id] = files
            self._uses.update(files)

    def register_unread(self, checkpoint_id: int) -> None:
        """A checkpoint cannot be read: whatever it refers to stays, until it is dropped itself."""
        self._unread.add(checkpoint_id)

    def found(self, checkpoint_id: int, files: Iterable[str]) -> None:
        """Add the references of a checkpoint that was not read before, unless it was dropped meanwhile."""
        if checkpoint_id in self._unread:
            self._unread.discard(checkpoint_id)
            self.register(checkpoint_id, files)

    def hold(self, files: Iterable[str]) -> None:
        """No checkpoint is known to refer to these files: they are unused as soon as it is known of all."""
        self._held.update(files)

    def unregister(self, checkpoint_id: int) -> list[str]:
        """A checkpoint is dropped.

        Returns:
            The files that no checkpoint can refer to any more. Each file is returned once in the life of a registry,
            since names are not used again.
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
        """True if a checkpoint refers to a file, or may do so."""
        return file in self._uses or not self.is_whole

    def files(self) -> set[str]:
        """All files that some checkpoint is known to refer to."""
        return set(self._uses)
