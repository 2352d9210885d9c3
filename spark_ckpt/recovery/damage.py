"""A single damage of a checkpoint, with its place."""

from __future__ import annotations

from dataclasses import dataclass

from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.errors import DamagedCheckpointError, SparkCkptError, StorageError
from spark_ckpt.format.errors import SegmentError
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.spark_files.errors import SparkLogFormatError


@dataclass(frozen=True, slots=True)
class Damage:
    """A single damage.

    Args:
        path: the file, as a full path or URL.
        reason: kind of damage.
        offset: byte position in the file; None if it is no single place.
        subtask: the subtask with the damaged state; None if it is no single one.
        key_group: the key group; None if it is no single one.
    """

    path: str
    reason: str
    offset: int | None = None
    subtask: SubtaskKey | None = None
    key_group: int | None = None

    @classmethod
    def of(cls, path: str, error: SparkCkptError) -> Damage:
        """The damage behind an error from reading `path`."""
        if isinstance(error, SegmentError):
            return cls(error.path, error.reason, error.offset)
        if isinstance(error, (DamagedCheckpointError, DamagedRecordError, SparkLogFormatError)):
            return cls(error.path, error.reason)
        return cls(error.path if isinstance(error, StorageError) else path, str(error))

    def __str__(self) -> str:
        position = self.path if self.offset is None else f"{self.path}, byte {self.offset:,}"
        parts = [] if self.subtask is None else [str(self.subtask)]
        parts += [] if self.key_group is None else [f"key group {self.key_group:,}"]
        of = f" ({', '.join(parts)})" if parts else ""
        return f"{position}: {self.reason}{of}"
