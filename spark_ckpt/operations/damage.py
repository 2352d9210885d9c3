"""One thing that is wrong with a checkpoint, and where."""

from __future__ import annotations

from dataclasses import dataclass

from spark_ckpt.completed.errors import CorruptRecordError
from spark_ckpt.errors import DamagedCheckpointError, SparkCkptError, StorageError
from spark_ckpt.format.errors import SegmentError
from spark_ckpt.format.keys import SubtaskKey


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is wrong.

    Args:
        path: the file, as a whole path or URL.
        reason: what is wrong with it.
        offset: byte position in the file, where it is one place.
        subtask: the subtask whose state it is, where it is one's.
        key_group: the key group, where it is one.
    """

    path: str
    reason: str
    offset: int | None = None
    subtask: SubtaskKey | None = None
    key_group: int | None = None

    @classmethod
    def of(cls, path: str, error: SparkCkptError) -> Damage:
        """The damage behind an error that was raised while `path` was read."""
        if isinstance(error, SegmentError):
            return cls(error.path, error.reason, error.offset)
        if isinstance(error, (DamagedCheckpointError, CorruptRecordError)):
            return cls(error.path, error.reason)
        return cls(error.path if isinstance(error, StorageError) else path, str(error))

    def __str__(self) -> str:
        place = self.path if self.offset is None else f"{self.path}, byte {self.offset:,}"
        parts = [] if self.subtask is None else [str(self.subtask)]
        parts += [] if self.key_group is None else [f"key group {self.key_group:,}"]
        of = f" ({', '.join(parts)})" if parts else ""
        return f"{place}: {self.reason}{of}"
