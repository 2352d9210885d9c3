"""Notes of savepoints in the location that they were taken from, so that its running query can show the latest.

Each is a file `ckpt/savepoints/<time>-<hex>.json`. They inform only: nothing is restored from them, and a savepoint
without a note is as good. So one that cannot be written or read is left out.
"""

from __future__ import annotations

import json
import logging
import re
import uuid
from dataclasses import asdict, dataclass

from spark_ckpt.checkpoint.layout import CKPT, SAVEPOINTS
from spark_ckpt.errors import StorageError
from spark_ckpt.redaction import redacted
from spark_ckpt.storage import Storage

_log = logging.getLogger(__name__)

FORMAT = 1
"""Format of notes. A reader leaves out those of another."""

_DIRECTORY = f"{CKPT}/{SAVEPOINTS}"
_NAME = re.compile(r"[0-9]{20}-[0-9a-f]{32}\.json")


@dataclass(frozen=True, slots=True)
class SavepointNote:
    """A savepoint.

    Args:
        id: checkpoint of which it is a copy.
        batch_id: Spark's micro-batch.
        taken_ms: when it was complete, milliseconds since 1970 UTC.
        path: its directory, as text for people.
    """

    id: int
    batch_id: int
    taken_ms: int
    path: str


def write_note(storage: Storage, note: SavepointNote) -> None:
    """Write the note of a savepoint into the location of the query, in place of earlier ones.

    Never raises: the savepoint is complete.
    """
    content = {"format": FORMAT, **asdict(note), "path": redacted(note.path)}
    name = f"{note.taken_ms:020}-{uuid.uuid4().hex}.json"
    try:
        storage.write_atomic(f"{_DIRECTORY}/{name}", json.dumps(content).encode() + b"\n")
    except StorageError as e:
        _log.info("the running query will not show this savepoint: %s", e)
        return
    try:
        storage.delete_all([f"{_DIRECTORY}/{other}" for other in _names(storage) if other < name])
    except StorageError as e:
        _log.info("notes of earlier savepoints stay until the next one: %s", e)


def _names(storage: Storage) -> list[str]:
    return [file.name for file in storage.list(_DIRECTORY) if _NAME.fullmatch(file.name)]


class SavepointNotes:
    """Reader of the notes in a location.

    Args:
        storage: storage of the location.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._newest = ""

    def next(self) -> SavepointNote | None:
        """The newest note, if it is newer than at the last call. Never raises."""
        try:
            newest = max(_names(self._storage), default="")
            if newest <= self._newest:
                return None
            self._newest = newest
            return _decoded(self._storage.read(f"{_DIRECTORY}/{newest}"))
        except (StorageError, ValueError, KeyError, TypeError) as e:
            _log.debug("cannot read the notes of savepoints: %s", e)
            return None


def _decoded(data: bytes) -> SavepointNote:
    content = json.loads(data)
    if content["format"] != FORMAT:
        raise ValueError(f"format {content['format']!r}")
    return SavepointNote(
        int(content["id"]), int(content["batch_id"]), int(content["taken_ms"]), redacted(str(content["path"]))
    )
