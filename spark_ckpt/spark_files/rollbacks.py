"""Rollbacks and changes of a location, as drivers see them: the fence of Spark's logs (docs/protocol.md, section 5).

A rollback frees names in Spark's logs, which have no owner: an earlier driver that still runs could put an entry there,
beside those of its successor. So each rollback first increments the location's *log epoch*, by a marker. A driver notes
the epoch at its start and writes no entry once there is a later one. `LogFence` is the driver's side, in Scala.

A change of a stopped query's state or offsets adds entries under the same fence, so that no query starts between two of
them.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass

from spark_ckpt.spark_files.errors import LogFencedError
from spark_ckpt.storage import Storage, create_or_find, read_note

ROLLBACKS = "ckpt/rollbacks"
"""Directory with the markers of rollbacks."""

FORMAT = 1

NOT_FINISHED = "a rollback, the undo of an import, or a change of state or offsets has not finished"
"""Why no query starts in a location with an unfinished marker."""

EVOLVE = "evolve"
"""Operation of an evolution."""

ROLLBACK = "rollback"
"""Operation of a rollback, and of an undo."""

_FILE = re.compile(r"([0-9]{20})\.(json|done)")


@dataclass(frozen=True, slots=True)
class Rollbacks:
    """All rollbacks of a location.

    Args:
        epoch: the log epoch: number of the last rollback; 0 without one.
        unfinished: numbers of the rollbacks that may not have moved all their files, ascending.
    """

    epoch: int
    unfinished: tuple[int, ...]

    @classmethod
    def of(cls, storage: Storage) -> Rollbacks:
        """Reads the rollbacks of a location.

        Raises:
            StorageError: they cannot be listed.
        """
        found = [match for file in storage.list(ROLLBACKS) if (match := _FILE.fullmatch(file.name))]
        begun, done = ({int(match[1]) for match in found if match[2] == suffix} for suffix in ("json", "done"))
        return cls(max(begun, default=0), tuple(sorted(begun - done)))

    def check_epoch(self, location: str, log_epoch: int) -> None:
        """Check that the logs from which Spark has planned a batch are not those before a rollback.

        Args:
            location: the checkpoint location, for the error.
            log_epoch: log epoch at the start of the run.

        Raises:
            LogFencedError: they are. The batch may lack its checkpoint, which is no damage.
        """
        if self.epoch > log_epoch:
            raise LogFencedError(location, log_epoch)


def marker(epoch: int) -> str:
    """Name of the file that begins a rollback."""
    return f"{ROLLBACKS}/{epoch:020}.json"


@dataclass(frozen=True, slots=True)
class Marker:
    """Content of a marker.

    Args:
        batch_id: batch to go back to, or the last batch before a change.
        operation: `ROLLBACK`, or the command that changes the location.
    """

    batch_id: int
    operation: str


def read_marker(storage: Storage, epoch: int) -> Marker:
    """Content of a marker.

    Raises:
        CheckpointError: it is damaged, or of a later release.
        StorageError: it cannot be read.
    """
    return read_note(
        storage,
        marker(epoch),
        FORMAT,
        "the marker of a rollback",
        lambda fields: Marker(int(fields["batch_id"]), str(fields.get("operation", ROLLBACK))),
    )


def begin(storage: Storage, batch_id: int, operation: str = ROLLBACK) -> Rollbacks:
    """Increments the log epoch: earlier drivers stop at their next entry, and no query starts before `finish`.

    Args:
        storage: storage of the checkpoint location.
        batch_id: batch to go back to, or the last batch before a change.
        operation: `ROLLBACK`, or the command that changes the location.

    Returns:
        The rollbacks that this one finishes: itself, and interrupted ones.

    Raises:
        StorageError: the marker could not be written, or the outcome is unknown.
    """
    there = Rollbacks.of(storage)
    content = {"format": FORMAT, "batch_id": batch_id, "attempt": str(uuid.uuid4())}
    if operation != ROLLBACK:
        content["operation"] = operation
    data, epoch = json.dumps(content).encode() + b"\n", there.epoch + 1
    while not create_or_find(storage, marker(epoch), data):
        epoch += 1
    return Rollbacks(epoch, (*there.unfinished, epoch))


def finish(storage: Storage, rollbacks: Rollbacks) -> None:
    """Notes that all files are moved: queries can start.

    Raises:
        StorageError: a note could not be written.
    """
    for epoch in rollbacks.unfinished:
        storage.write_atomic(f"{ROLLBACKS}/{epoch:020}.done", b"{}\n")
