"""Which retained checkpoints use which files (Flink: `SharedStateRegistry`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


class SharedStateRegistry:
    """Counts, for every state file, the retained checkpoints that refer to it. Not thread-safe."""

    def __init__(self) -> None:
        self._files_of: dict[int, frozenset[str]] = {}
        self._uses: Counter[str] = Counter()

    def register(self, checkpoint_id: int, files: Iterable[str]) -> None:
        """A checkpoint refers to these files. Registering it again changes nothing."""
        if checkpoint_id not in self._files_of:
            files = frozenset(files)
            self._files_of[checkpoint_id] = files
            self._uses.update(files)

    def unregister(self, checkpoint_id: int) -> list[str]:
        """A checkpoint is dropped.

        Returns:
            The files that no checkpoint refers to any more. Each file is returned once in the life of a registry, since
            names are not used again.
        """
        unused = []
        for file in self._files_of.pop(checkpoint_id, ()):
            self._uses[file] -= 1
            if self._uses[file] == 0:
                del self._uses[file]
                unused.append(file)
        return sorted(unused)

    def __contains__(self, file: object) -> bool:
        return file in self._uses

    def files(self) -> set[str]:
        """All files that some checkpoint refers to."""
        return set(self._uses)
