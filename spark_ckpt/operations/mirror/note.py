"""Note in a mirror of what it mirrors: the file `ckpt/mirror.json`."""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass, field
from typing import Any

from spark_ckpt.checkpoint.layout import MIRROR_NOTE, in_location
from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.storage import Storage, read_note

FORMAT = 1
"""Format of notes that this release writes, and the only one it reads."""


def _new_tag() -> str:
    return f"mirror-{uuid.uuid4().hex}"


@dataclass(frozen=True, slots=True)
class MirrorNote:
    """What a mirror follows.

    Args:
        source: location of the query, without credentials.
        log_epoch: number of the last rollback or change there that the mirror has seen.
        tag: tag at the source that keeps a checkpoint while it is copied.
        promoted_ms: time of the failover in milliseconds since 1970 UTC; None for a mirror that follows.
    """

    source: str
    log_epoch: int
    tag: str = field(default_factory=_new_tag)
    promoted_ms: int | None = None

    def write(self, storage: Storage) -> None:
        """Writes the note of a mirror in place of an earlier one.

        Raises:
            StorageError: it cannot be written.
        """
        content = {"format": FORMAT, **{name: value for name, value in asdict(self).items() if value is not None}}
        storage.write_atomic(in_location(MIRROR_NOTE), json.dumps(content, indent=1).encode() + b"\n")

    @classmethod
    def read(cls, storage: Storage) -> MirrorNote | None:
        """The note of a mirror; None if the location is none.

        Raises:
            CheckpointError: it is damaged, or of a later release.
            StorageError: it cannot be read.
        """
        try:
            return read_note(storage, in_location(MIRROR_NOTE), FORMAT, "the note of a mirror", cls._parsed)
        except StateFileNotFoundError:
            return None

    @classmethod
    def _parsed(cls, content: dict[str, Any]) -> MirrorNote:
        promoted = content.get("promoted_ms")
        return cls(
            str(content["source"]),
            int(content["log_epoch"]),
            str(content["tag"]),
            None if promoted is None else int(promoted),
        )
