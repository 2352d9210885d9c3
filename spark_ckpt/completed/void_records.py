"""Void records of a log, created by an earlier driver at an id that had become free again."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.completed.records import ClaimRecord, Record


def without_void_records(records: Mapping[int, Record]) -> dict[int, Record]:
    """Leaves out records whose drivers did not own the log when they created them.

    Such a driver notices before it relies on its record, and the next claim deletes the record. Until then two signs
    identify it, independent of clocks:

    - A record of an earlier generation follows a claim. The owner would have found its id taken, so the claim was
      created when that id was free again.
    - The record lies below the newest claim, and that claim did not see it.

    Args:
        records: records by id; some may be missing.

    Returns:
        The records that count, ascending by id.
    """
    result: dict[int, Record] = {}
    newest: ClaimRecord | None = None
    below = float("inf")
    for record_id, record in sorted(records.items(), reverse=True):
        if newest is not None and newest.seen is not None and record_id not in newest.seen:
            continue
        is_claim = isinstance(record, ClaimRecord)
        if not is_claim or record.generation < below:
            result[record_id] = record
            # A record before a claim has an earlier generation; a record before a checkpoint may be its own claim.
            below = min(below, record.generation if is_claim else record.generation + 1)
            if newest is None and isinstance(record, ClaimRecord):
                newest = record
    return dict(sorted(result.items()))


def check_generations(records: Mapping[int, Record], path_of: Callable[[int], str]) -> None:
    """Checks that generations ascend with ids.

    Raises:
        DamagedRecordError: they do not.
    """
    last = 0
    for record_id, record in sorted(records.items()):
        if record.generation < last:
            raise DamagedRecordError(path_of(record_id), f"generation {record.generation} after generation {last}")
        last = record.generation
