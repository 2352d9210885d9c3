"""Reads checkpoints to the last byte, and says what is damaged and what can still be restored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spark_ckpt.completed import CheckpointRecord, Record, RecordFiles, without_claims_that_came_late
from spark_ckpt.coordinator.chains import all_entries
from spark_ckpt.coordinator.directory import is_retained
from spark_ckpt.coordinator.layout import CKPT
from spark_ckpt.coordinator.scan import scan
from spark_ckpt.errors import CheckpointNotFoundError, CorruptRecordError, DamagedCheckpointError, StorageError
from spark_ckpt.operations.agreement import SparkBatches, check_agreement
from spark_ckpt.operations.damage import Damage
from spark_ckpt.operations.errors import NoCheckpointError
from spark_ckpt.operations.log_check import check_log
from spark_ckpt.operations.snapshot import find_record, is_savepoint, read_snapshot
from spark_ckpt.operations.spark_log import BatchLog, SparkLog, entry_name
from spark_ckpt.operations.state_check import StateCheck, check_state
from spark_ckpt.storage import Storage

Progress = Callable[[int, int], None]
"""Is told how many bytes are done, and of how many."""

_MOST_READINGS = 20


@dataclass(frozen=True, slots=True)
class CheckpointVerdict:
    """What was found of one checkpoint.

    Args:
        record: its record.
        damages: what is wrong with it.
        blocks: blocks of state that were read.
        size: their bytes.
        rows: rows that they add up to, of the stores where that can be told.
        can_go_back: whether Spark's logs still have what going on after its batch needs.
    """

    record: CheckpointRecord
    damages: tuple[Damage, ...]
    blocks: int
    size: int
    rows: int
    can_go_back: bool

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.damages


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found of a location.

    Args:
        location: the checkpoint location.
        checkpoints: those that were read, newest first.
        damages: what is wrong with the log of completed checkpoints and with Spark's logs as a whole.
    """

    location: str
    checkpoints: tuple[CheckpointVerdict, ...]
    damages: tuple[Damage, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong at all."""
        return not self.damages and all(verdict.is_whole for verdict in self.checkpoints)

    @property
    def restorable(self) -> tuple[int, ...]:
        """Ids of the checkpoints that are whole and that the query can go back to or on from, newest first."""
        return tuple(v.record.id for v in self.checkpoints if v.is_whole and v.can_go_back)


def verify(
    storage: Storage,
    checkpoint_id: int | None = None,
    *,
    everything: bool = False,
    progress: Progress = lambda done, of: None,
) -> Verification:
    """Reads checkpoints in full, and compares them with their records and with Spark's logs. Changes nothing.

    May run beside the query: a checkpoint that is subsumed while it is read is left out.

    Args:
        storage: of the checkpoint location, or of a savepoint.
        checkpoint_id: the checkpoint to read. By default the newest; if that one is damaged, also those before it until
            one is whole.
        everything: whether to read all retained checkpoints.
        progress: called after each segment.

    Raises:
        NoCheckpointError: there is none at all.
        CheckpointNotFoundError: there is none of this id, and no record that is damaged.
        StorageError: the storage does not answer, or checkpoints go faster than they can be read.
    """
    if is_savepoint(storage):
        return _verify_savepoint(storage, checkpoint_id, progress)
    for _ in range(_MOST_READINGS):
        batches = SparkBatches.of(SparkLog(storage))
        records, damages = _read_log(storage)
        wanted = [record for record in reversed(records) if checkpoint_id in (None, record.id)]
        if not records and not damages:
            raise NoCheckpointError(storage.location)
        if not wanted and not damages and checkpoint_id is not None:
            raise CheckpointNotFoundError(storage.location, checkpoint_id, [record.id for record in records])
        verdicts: list[CheckpointVerdict] = []
        for record in wanted:
            is_newest = record.id == max(other.id for other in records if other.version == record.version)
            verdict = verify_checkpoint(storage, record, is_newest_of_version=is_newest, progress=progress)
            if verdict.is_whole or is_retained(storage, record):
                verdicts.append(verdict)
                if verdict.is_whole and not everything:
                    break
        if verdicts or damages:
            damages += _check_last_commit(storage, batches, records, damages)
            return Verification(storage.location, tuple(verdicts), tuple(damages))
    raise StorageError(storage.describe(CKPT), "read", f"it changed during each of {_MOST_READINGS} readings")


def verify_checkpoint(
    storage: Storage,
    record: CheckpointRecord,
    *,
    is_newest_of_version: bool = True,
    progress: Progress = lambda done, of: None,
) -> CheckpointVerdict:
    """Reads one checkpoint in full.

    Args:
        storage: of the checkpoint location.
        record: of the checkpoint.
        is_newest_of_version: whether its states are to be those that Spark's commit log names.
        progress: called after each segment.

    Raises:
        StorageError: the storage does not answer.
    """
    found = StateCheck()
    try:
        snapshot = read_snapshot(storage, record)
        state = snapshot.state()
    except DamagedCheckpointError as e:
        found.damages.append(Damage.of(e.path, e))
    else:
        of, done = sum(entry.size for entry in all_entries(state.table)), 0

        def count(size: int) -> None:
            nonlocal done
            done += size
            progress(done, of)

        found = check_state(storage, state, snapshot.path, count)
        found.damages += check_agreement(storage, state, snapshot.metadata, is_newest_of_version=is_newest_of_version)
    can_go_back = SparkBatches.of(SparkLog(storage)).can_follow(record.batch_id)
    return CheckpointVerdict(record, tuple(found.damages), found.blocks, found.size, found.rows, can_go_back)


def _verify_savepoint(storage: Storage, checkpoint_id: int | None, progress: Progress) -> Verification:
    try:
        record = find_record(storage, checkpoint_id)
    except CorruptRecordError as e:
        return Verification(storage.location, (), (Damage.of(e.path, e),))
    return Verification(storage.location, (verify_checkpoint(storage, record, progress=progress),))


def _read_log(storage: Storage) -> tuple[list[CheckpointRecord], list[Damage]]:
    """The checkpoints that the log names, ascending, and what is wrong with it; without a log, what a scan finds."""
    files = RecordFiles(storage)
    each = files.read_each()
    if not each:
        found = scan(storage)
        return list(found.records), [Damage.of(damaged.path, damaged) for damaged in found.set_aside]
    damages = [Damage.of(e.path, e) for e in each.values() if isinstance(e, CorruptRecordError)]
    records: dict[int, Record] = {i: r for i, r in each.items() if not isinstance(r, CorruptRecordError)}
    records = without_claims_that_came_late(records)
    damages += check_log(records, files.path)
    return [record for record in records.values() if isinstance(record, CheckpointRecord)], damages


def _check_last_commit(
    storage: Storage, batches: SparkBatches, records: Sequence[CheckpointRecord], damages: Sequence[Damage]
) -> list[Damage]:
    """The last batch that Spark has committed has a checkpoint, which a restart begins from."""
    last = batches.last_committed
    if last < 0 or damages or any(record.batch_id == last for record in records):
        return []
    path = storage.describe(entry_name(BatchLog.COMMITS, last))
    return [Damage(path, f"batch {last} is committed, and no completed checkpoint is of it")]
