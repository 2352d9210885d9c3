"""The marker of an import, `ckpt/import.json` (docs/protocol.md, section 6)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_ckpt.checkpoint.layout import IMPORT_MARKER, in_location
from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.location.errors import ImportUnfinishedError
from spark_ckpt.storage import Storage, read_note

MARKER = in_location(IMPORT_MARKER)
"""Name of the marker, relative to the checkpoint location."""

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class ImportMarker:
    """What an import needs to be undone, and to be recognized if it was interrupted.

    Args:
        batch_id: the last batch of the earlier provider.
        provider: class of the earlier provider.
        checkpoint_id: the checkpoint with the imported state; None while a new location is being filled.
        entries: contents of the replaced entries of the offset log, by batch; empty for a new location, and once the
            earlier provider's files are being deleted.
    """

    batch_id: int
    provider: str
    checkpoint_id: int | None
    entries: Mapping[int, bytes]

    @property
    def can_be_undone(self) -> bool:
        """True while the earlier provider's state is whole."""
        return self.checkpoint_id is not None and bool(self.entries)

    def encode(self) -> bytes:
        """Content of the file."""
        fields = {
            "format": _FORMAT,
            "batch_id": self.batch_id,
            "provider": self.provider,
            "checkpoint_id": self.checkpoint_id,
            "entries": {str(batch): data.decode() for batch, data in self.entries.items()},
        }
        return json.dumps(fields).encode()


def read_marker(storage: Storage) -> ImportMarker | None:
    """The marker of a location; None without an import.

    Raises:
        CheckpointError: the marker is damaged, or of a later release.
        StorageError: the marker cannot be read.
    """
    try:
        return read_note(storage, MARKER, _FORMAT, "the marker of an import", _parsed)
    except StateFileNotFoundError:
        return None


def _parsed(fields: dict[str, Any]) -> ImportMarker:
    checkpoint_id = fields["checkpoint_id"]
    return ImportMarker(
        int(fields["batch_id"]),
        str(fields["provider"]),
        None if checkpoint_id is None else int(checkpoint_id),
        {int(batch): str(text).encode() for batch, text in fields["entries"].items()},
    )


def check_no_import(storage: Storage) -> None:
    """Check that no import into the location, then a new one, was interrupted.

    Raises:
        ImportUnfinishedError: one was.
        CheckpointError, StorageError: as `read_marker`.
    """
    marker = read_marker(storage)
    if marker is not None and marker.checkpoint_id is None:
        raise ImportUnfinishedError(storage.location)
