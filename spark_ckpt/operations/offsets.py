"""Other positions of a stopped query's sources, with the same state."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.operations.change import Change, begin_change
from spark_ckpt.operations.errors import OffsetsRefusedError
from spark_ckpt.operations.offset_rules import only_advances, why_not
from spark_ckpt.spark_files.source_log import FileSourceLog
from spark_ckpt.spark_files.source_positions import FilePosition, positions_of
from spark_ckpt.storage import Storage

OPERATION = "offsets"
"""Name of the command."""


@dataclass(frozen=True, slots=True)
class MovedSource:
    """A source at another position.

    Args:
        name: Spark's name of the source: its number in the query, from "0", unless the query names its sources.
        before: its offset before, as Spark writes it; None before its first one.
        after: its offset after.
    """

    name: str
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class MovedOffsets:
    """Result of a move of offsets, or of its dry run.

    Args:
        location: the checkpoint location.
        from_checkpoint: the checkpoint that it started from.
        batch_id: the last added batch in Spark's logs.
        batches: number of added batches: two if a source goes back.
        checkpoint_id: the new checkpoint; None after a dry run.
        sources: the moved sources.
    """

    location: str
    from_checkpoint: int
    batch_id: int
    batches: int
    checkpoint_id: int | None
    sources: tuple[MovedSource, ...]


def move_offsets(
    storage: Storage,
    positions: Mapping[str, str],
    *,
    settings: Mapping[str, str] | None = None,
    force: bool = False,
    dry_run: bool = False,
    clock: Clock | None = None,
) -> MovedOffsets:
    """Lets the sources of a stopped query continue elsewhere. The state stays as it is, and so do the numbers of
    batches, which sinks rely on.

    Spark's logs get one batch without input, or two if a source goes back: some sources are asked for the data between
    the last two entries when the query starts.

    Args:
        storage: storage of the checkpoint location.
        positions: the new offset by the name of each source to move, as Spark writes it to its offset log.
        settings: settings of the query that begin with `spark.sql.streaming.stateStore.ckpt.`; required if its
            completed checkpoints are in ZooKeeper.
        force: True to proceed although a driver is running, or may be running elsewhere.
        dry_run: True to check everything and write nothing.
        clock: source of time.

    Raises:
        OffsetsRefusedError: a source or position does not exist, or a batch is not committed. Nothing was changed.
        LocationInUseError: see `force`.
        SparkCkptError: as `begin_change` and `Change.write` raise.
    """
    clock = clock or SystemClock()

    def refuse(reason: str) -> OffsetsRefusedError:
        return OffsetsRefusedError(storage.location, reason)

    with begin_change(
        storage, OPERATION, refuse, settings=settings, force=force, dry_run=dry_run, clock=clock
    ) as change:
        moved = _moved(change, positions)
        batches = 1 if all(only_advances(each.before, each.after) for each in moved) else 2
        record = None if dry_run else _write(change, moved, batches)
        return MovedOffsets(
            storage.location,
            change.record.id,
            change.logs.committed + batches,
            batches,
            None if record is None else record.id,
            moved,
        )


def _moved(change: Change, positions: Mapping[str, str]) -> tuple[MovedSource, ...]:
    present = change.logs.offsets.offsets
    if unknown := sorted(positions.keys() - present.keys()):
        raise change.refuse(f"the query has no source {unknown[0]}; its sources are {', '.join(present) or 'none'}")
    moved = []
    for name in (name for name in present if name in positions):
        before, after = present[name], positions[name].strip()
        if (reason := why_not(name, before, after, _last_entry(change.storage, name, after))) is not None:
            raise change.refuse(reason)
        if before != after:
            moved.append(MovedSource(name, before, after))
    if not moved:
        raise change.refuse("each source is at this position already")
    return tuple(moved)


def _last_entry(storage: Storage, name: str, position: str) -> int | None:
    """Newest entry of the log of a file source; None for another source."""
    if not name.isdecimal() or not any(isinstance(each, FilePosition) for each in positions_of(position)):
        return None
    return FileSourceLog(storage, int(name)).latest


def _write(change: Change, moved: tuple[MovedSource, ...], batches: int) -> CheckpointRecord:
    entry = change.logs.offsets
    offsets = replace(entry, offsets={**entry.offsets, **{each.name: each.after for each in moved}})
    table = {
        key: [Chain(str(uuid.uuid4()), chain.rows, chain.entries) for chain in chains]
        for key, chains in change.parent.table.items()
    }
    return change.write(table, offsets, batches)
