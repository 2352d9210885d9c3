"""Rollbacks of a location, as drivers see them: the fence of Spark's logs (docs/protocol.md, section 5).

A rollback frees names in Spark's logs, which have no owner: a driver with an entry still to write could put it beside
the entries of the driver that continues. So each rollback increments the location's *log epoch*, by a marker that it
creates exclusively. A driver notes the epoch at its start and writes no entry once it finds a later one.

A driver that stalls between this check and its write still leaves an entry. Such an entry is recognized: at the names
that a rollback has freed, and one batch above them, an entry counts only if its writer has vouched for its content
under the epoch. No query starts before the files are moved: it could read a log with some of the later entries.

`LogFence` is the driver's side of this, in Scala.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from spark_ckpt.spark_files.errors import SparkLogFormatError
from spark_ckpt.storage import Storage, create_or_find

ROLLBACKS = "ckpt/rollbacks"
"""Directory with the markers of rollbacks, and what vouches for entries written after them."""

_FILE = re.compile(r"([0-9]{20})\.(.+)")
_MARKER = "json"
_DONE = "done"


@dataclass(frozen=True, slots=True)
class RollbackMarker:
    """A rollback that drivers have to respect.

    Args:
        epoch: number of the rollback in its location, from 1.
        batch_id: batch that the query was rolled back to.
        last_batch_id: last batch in Spark's logs before.
        is_done: whether all its files were moved. Until then, entries of the earlier epoch count.
        holds: whether no query starts before that. A query that rolls itself back does not hold up its next start.
    """

    epoch: int
    batch_id: int
    last_batch_id: int
    is_done: bool = False
    holds: bool = True

    def covers(self, batch_id: int) -> bool:
        """True if an earlier driver could still write an entry of this batch: at most one beyond the last."""
        return self.batch_id < batch_id <= self.last_batch_id + 1


@dataclass(frozen=True, slots=True)
class Rollbacks:
    """All rollbacks of a location.

    Args:
        markers: ascending by epoch.
        vouchers: names of the files that vouch for entries.
    """

    markers: Sequence[RollbackMarker]
    vouchers: frozenset[str]

    @classmethod
    def of(cls, storage: Storage) -> Rollbacks:
        """Reads the rollbacks of a location.

        Raises:
            SparkLogFormatError: a marker is damaged.
            StorageError: a marker cannot be read.
        """
        names = {file.name for file in storage.list(ROLLBACKS) if not file.is_directory}
        found = [match for name in names if (match := _FILE.fullmatch(name))]
        epochs = sorted(int(match[1]) for match in found if match[2] == _MARKER)
        markers = tuple(_read(storage, epoch, f"{epoch:020}.{_DONE}" in names) for epoch in epochs)
        return cls(markers, frozenset(match[0] for match in found if match[2] not in (_MARKER, _DONE)))

    @property
    def epoch(self) -> int:
        """The log epoch; 0 without a rollback."""
        return self.markers[-1].epoch if self.markers else 0

    @property
    def unfinished(self) -> Sequence[RollbackMarker]:
        """The rollbacks since the last one that moved all its files."""
        done = [i for i, marker in enumerate(self.markers) if marker.is_done]
        return self.markers[done[-1] + 1 if done else 0 :]

    def covering(self, batch_id: int) -> RollbackMarker | None:
        """The newest rollback under which an entry of the batch needs a voucher; None if it needs none."""
        return next((marker for marker in reversed(self.markers) if marker.covers(batch_id)), None)

    def is_stray(self, log: str, batch_id: int, data: bytes) -> bool:
        """True if a driver of an earlier epoch wrote an entry after the rollback.

        Args:
            log: directory of the log.
            batch_id: batch of the entry.
            data: content of the entry.
        """
        marker = self.covering(batch_id)
        return marker is not None and marker.is_done and _voucher(marker, log, batch_id, data) not in self.vouchers


def begin(storage: Storage, batch_id: int, last_batch_id: int, *, holds: bool) -> RollbackMarker:
    """Increments the log epoch. From now on, drivers that have started before stop at their next entry.

    Args:
        storage: storage of the checkpoint location.
        batch_id: batch to go back to.
        last_batch_id: last batch in Spark's logs. It was read after the claim of the location: the driver that was
            shut out completes no checkpoint after that, so it writes at most the next offsets.
        holds: whether no query starts before `finish`.

    Raises:
        StorageError: the marker could not be written, or the outcome is unknown.
    """
    there = Rollbacks.of(storage)
    # An interrupted rollback may have moved entries that this one no longer finds.
    last = max([last_batch_id, *(marker.last_batch_id for marker in there.unfinished)])
    content = {"format": 1, "batch_id": batch_id, "last_batch_id": last, "holds": holds, "attempt": str(uuid.uuid4())}
    data, epoch = json.dumps(content).encode() + b"\n", there.epoch + 1
    while not create_or_find(storage, f"{ROLLBACKS}/{epoch:020}.{_MARKER}", data):
        epoch += 1
    return RollbackMarker(epoch, batch_id, last, holds=holds)


def finish(storage: Storage, marker: RollbackMarker) -> None:
    """Notes that all files are moved. From now on, entries without a voucher do not count.

    Raises:
        StorageError: the note could not be written.
    """
    storage.write_atomic(f"{ROLLBACKS}/{marker.epoch:020}.{_DONE}", b"{}\n")


def vouch(storage: Storage, log: str, batch_id: int, data: bytes) -> None:
    """Vouches for an entry that is about to be written, if it needs that.

    Args:
        storage: storage of the checkpoint location.
        log: directory of the log.
        batch_id: batch of the entry.
        data: content of the entry.

    Raises:
        SparkLogFormatError, StorageError: as in `Rollbacks.of`, or the file could not be written.
    """
    if (marker := Rollbacks.of(storage).covering(batch_id)) is not None:
        storage.write_atomic(f"{ROLLBACKS}/{_voucher(marker, log, batch_id, data)}", b"{}\n")


def _voucher(marker: RollbackMarker, log: str, batch_id: int, data: bytes) -> str:
    return f"{marker.epoch:020}.{log}.{batch_id}.{hashlib.sha256(data).hexdigest()}"


def _read(storage: Storage, epoch: int, is_done: bool) -> RollbackMarker:
    name = f"{ROLLBACKS}/{epoch:020}.{_MARKER}"
    try:
        content = json.loads(storage.read(name))
        batch_id, last, holds = int(content["batch_id"]), int(content["last_batch_id"]), bool(content["holds"])
        return RollbackMarker(epoch, batch_id, last, is_done, holds)
    except (KeyError, TypeError, ValueError) as e:
        raise SparkLogFormatError(storage.describe(name), f"it is not the marker of a rollback ({e})") from None
