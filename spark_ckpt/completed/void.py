"""Void records of a log: an earlier driver can create a record at an id that is free again."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.completed.records import ClaimRecord, Record


def without_void_records(records: Mapping[int, Record]) -> dict[int, Record]:
    """Leaves out the records of drivers that did not own the log when they created them.

    Such a driver finds that out before it relies on its record, and deletes it, unless it dies before. Two signs tell
    without it, whatever the clocks say:

    - An earlier generation follows a claim. The owner would have found its id taken, so the claim came when that id
      was free again.
    - The record lies below the newest claim, and that claim did not see it.

    Args:
        records: by id; some may be missing.

    Returns:
        Those that count, ascending by id.
    """
    kept: dict[int, Record] = {}
    newest: ClaimRecord | None = None
    below = float("inf")
    for record_id, record in sorted(records.items(), reverse=True):
        if newest is not None and newest.seen is not None and record_id not in newest.seen:
            continue
        is_claim = isinstance(record, ClaimRecord)
        if not is_claim or record.generation < below:
            kept[record_id] = record
            # What comes before a claim is of an earlier generation, what comes before a checkpoint may be its claim.
            below = min(below, record.generation if is_claim else record.generation + 1)
            if newest is None and isinstance(record, ClaimRecord):
                newest = record
    return dict(sorted(kept.items()))


def check_generations(records: Mapping[int, Record], path_of: Callable[[int], str]) -> None:
    """Makes sure that generations ascend with ids.

    Raises:
        DamagedRecordError: they do not.
    """
    last = 0
    for record_id, record in sorted(records.items()):
        if record.generation < last:
            raise DamagedRecordError(path_of(record_id), f"generation {record.generation} after generation {last}")
        last = record.generation
