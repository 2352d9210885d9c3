"""Verification of checkpoints in full: their damage, and the restorable ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise

from spark_ckpt.checkpoint.batch import STANDALONE_PREFIX, SparkBatch
from spark_ckpt.checkpoint.layout import CKPT
from spark_ckpt.completed import CheckpointRecord, ClaimRecord, Record, RecordFiles, without_void_records
from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.errors import DamagedCheckpointError, LogMissingError
from spark_ckpt.location.errors import CheckpointNotFoundError, CheckpointsMissingError, NoCheckpointError
from spark_ckpt.location.listing import is_retained, logged_or_scanned
from spark_ckpt.location.missing import batch_without_checkpoint
from spark_ckpt.location.savepoint import is_savepoint
from spark_ckpt.location.snapshot import find_record, read_snapshot
from spark_ckpt.location.tags import Tags
from spark_ckpt.progress import Progress
from spark_ckpt.recovery.damage import Damage
from spark_ckpt.recovery.start_check import Start, check_start
from spark_ckpt.recovery.verdict import CheckpointVerdict, verify_checkpoint
from spark_ckpt.spark_files.logs import BatchLog, SparkBatches, SparkLog, entry_name
from spark_ckpt.spark_files.rollbacks import NOT_FINISHED, Rollbacks, marker
from spark_ckpt.storage import Storage, until_stable


class Remedy(Enum):
    """What helps a damaged location."""

    COPY = "copy"
    """Nothing is needed: the query starts from its newest checkpoint, which is whole. A copy of it is prudent."""
    ROLLBACK = "rollback"
    """A rollback to the newest restorable checkpoint."""
    BACKUP = "backup"
    """Files from a backup: no checkpoint that was read can be restored."""


@dataclass(frozen=True, slots=True)
class Verification:
    """Result for a location.

    Args:
        location: the checkpoint location.
        checkpoints: verdicts on the checkpoints read, newest first.
        damages: damages of the log of completed checkpoints, and of Spark's logs as a whole.
        has_log: False if the log of completed checkpoints is missing.
    """

    location: str
    checkpoints: tuple[CheckpointVerdict, ...]
    damages: tuple[Damage, ...] = ()
    has_log: bool = True

    @property
    def is_whole(self) -> bool:
        """True if nothing is damaged."""
        return not self.damages and all(verdict.is_whole for verdict in self.checkpoints)

    @property
    def restorable(self) -> tuple[int, ...]:
        """Ids of undamaged checkpoints that the query can resume from or roll back to, newest first."""
        return tuple(v.record.id for v in self.checkpoints if v.is_whole and v.can_go_back) if self.has_log else ()

    @property
    def remedy(self) -> Remedy | None:
        """What helps; None if nothing is damaged."""
        if self.is_whole:
            return None
        if not self.restorable:
            return Remedy.BACKUP
        is_newest = self.checkpoints[0].record.id == self.restorable[0]
        return Remedy.COPY if is_newest and not self.damages else Remedy.ROLLBACK


def verify(
    storage: Storage,
    checkpoint_id: int | None = None,
    *,
    everything: bool = False,
    progress: Progress = lambda done, of: None,
) -> Verification:
    """Reads checkpoints in full and compares them with their records and with Spark's logs. Changes nothing.

    The query may be running: a checkpoint subsumed during the reading is skipped.

    Args:
        storage: storage of the checkpoint location or savepoint.
        checkpoint_id: the checkpoint to read. By default the newest; if it is damaged, also earlier ones until one is
            intact.
        everything: True to read all retained checkpoints, and those with a tag.
        progress: called after each segment.

    Raises:
        NoCheckpointError: no checkpoint exists, and Spark's logs show none.
        CheckpointNotFoundError: no checkpoint has this id, and no record is damaged.
        StorageError: the storage does not answer, or checkpoints are subsumed faster than they can be read.
    """
    if is_savepoint(storage):
        return _verify_savepoint(storage, checkpoint_id, progress)
    return until_stable(lambda: _verify_once(storage, checkpoint_id, everything, progress), storage.describe(CKPT))


def _verify_once(
    storage: Storage, checkpoint_id: int | None, everything: bool, progress: Progress
) -> Verification | None:
    """One reading; None if checkpoints changed meanwhile."""
    batches = SparkBatches.of(SparkLog(storage))
    records, damages, has_log = _read_log(storage)
    logged = {record.id for record in records}
    tagged = _tagged(storage, checkpoint_id, damages) if everything or checkpoint_id not in (None, *logged) else []
    known = sorted([*records, *(record for record in tagged if record.id not in logged)], key=lambda record: record.id)
    targets = [record for record in reversed(known) if checkpoint_id in (None, record.id)]
    if not records and not damages:
        lost_batch = batch_without_checkpoint(storage)
        if lost_batch is None:
            raise NoCheckpointError(storage.location)
        if lost_batch != batches.start_needs:
            return None  # a running query has completed checkpoints since
        missing = CheckpointsMissingError(storage.describe(CKPT), lost_batch)
        return Verification(storage.location, (), (Damage(missing.path, missing.reason),))
    if not targets and not damages and checkpoint_id is not None:
        raise CheckpointNotFoundError(storage.location, checkpoint_id, [record.id for record in known])
    contradictions = list(_check_start(storage, batches, records, damages))
    is_damaged = bool(damages or contradictions)
    verdicts: list[CheckpointVerdict] = []
    is_found = False
    for record in targets:
        is_newest = record.id == max(other.id for other in known if other.version == record.version)
        verdict = verify_checkpoint(
            storage,
            record,
            is_newest_of_version=is_newest,
            needs_settings=batches.started[-1:] != (record.batch_id + 1,),
            is_repeated_from=batches.repeats_after(record.batch_id),
            progress=progress,
        )
        if record.id not in logged:
            verdict = replace(verdict, can_go_back=False)
        if verdict.is_whole or is_retained(storage, record):
            verdicts.append(verdict)
            # While the batch of the newest is uncommitted, a start may use the one before it.
            is_usable = not batches.started or record.batch_id <= batches.start_needs
            is_found |= verdict.is_whole and is_usable and (verdict.can_go_back or not is_damaged)
            if is_found and not everything:
                break
    if verdicts or damages:
        if contradictions and SparkBatches.of(SparkLog(storage)) != batches:
            return None  # a running query may have subsumed the checkpoint of an earlier start
        told = {damage for verdict in verdicts for damage in verdict.damages}
        damages += [damage for damage in dict.fromkeys(contradictions) if damage not in told]
        return Verification(storage.location, tuple(verdicts), tuple(damages), has_log)
    return None


def _tagged(storage: Storage, checkpoint_id: int | None, damages: list[Damage]) -> list[CheckpointRecord]:
    """The checkpoints with a tag, or the one of this id. Damaged tags become damages."""
    tags, found = Tags(storage), list[CheckpointRecord]()
    for tag in tags.list():
        if checkpoint_id not in (None, tag.checkpoint_id):
            continue
        try:
            record = tags.read(tag)
        except DamagedRecordError as e:
            damages.append(Damage.of(e.path, e))
            continue
        if record is not None and record not in found:
            found.append(record)
    return found


def _verify_savepoint(storage: Storage, checkpoint_id: int | None, progress: Progress) -> Verification:
    try:
        record = find_record(storage, checkpoint_id)
    except DamagedRecordError as e:
        return Verification(storage.location, (), (Damage.of(e.path, e),))
    return Verification(storage.location, (verify_checkpoint(storage, record, progress=progress),))


def _read_log(storage: Storage) -> tuple[list[CheckpointRecord], list[Damage], bool]:
    """The checkpoints in the log, ascending, and its damages; without a log, those of a scan, and False if there must
    have been one."""
    files = RecordFiles(storage)
    each, scanned = logged_or_scanned(storage, files.read_each)
    if scanned is not None:
        damages = [Damage.of(damaged.path, damaged) for damaged in scanned.damaged]
        if scanned.log is not None:
            missing = LogMissingError(storage.describe(files.directory), scanned.log)
            damages.insert(0, Damage(missing.path, "the log of completed checkpoints is missing: it has no record"))
        return list(scanned.records), damages, scanned.log is None
    damages = [Damage.of(e.path, e) for e in each.values() if isinstance(e, DamagedRecordError)]
    records: dict[int, Record] = {i: r for i, r in each.items() if not isinstance(r, DamagedRecordError)}
    records = without_void_records(records)
    damages += check_log(records, files.path)
    return [record for record in records.values() if isinstance(record, CheckpointRecord)], damages, True


def _check_start(
    storage: Storage, batches: SparkBatches, records: Sequence[CheckpointRecord], damages: Sequence[Damage]
) -> Iterator[Damage]:
    """Damages of Spark's logs as a whole: a start of the query would fail, or lose state."""
    for epoch in Rollbacks.of(storage).unfinished:
        yield Damage(
            storage.describe(marker(epoch)),
            f"{NOT_FINISHED}: no query starts until it is repeated",
        )
    batch_ids = {record.batch_id for record in records}
    if damages or (records and records[-1].owner.run_id.startswith(STANDALONE_PREFIX)):
        return
    needed = batches.start_needs
    if needed >= 0 and needed not in batch_ids:
        log = BatchLog.COMMITS if needed in batches.committed else BatchLog.OFFSETS
        last = needed if log is BatchLog.COMMITS else batches.started[-1]
        path = storage.describe(entry_name(log, last))
        what = f"batch {last} {'is committed' if log is BatchLog.COMMITS else 'has begun'}"
        yield Damage(path, f"{what}, but batch {needed} has no completed checkpoint, which the next start needs")
    if (start := Start.next_of(batches)) is not None:
        yield from check_start(storage, start, _batch_of(storage, records, needed))
    if not batches.started and records:
        path = storage.describe(BatchLog.OFFSETS.value)
        yield Damage(path, "Spark's offset log is missing: a start would begin with batch 0 and lose the state")
    for batch in batches.committed:
        if batch not in batches.started and batch >= max(batches.started, default=0):
            path = storage.describe(entry_name(BatchLog.COMMITS, batch))
            yield Damage(path, f"batch {batch} is committed, but its offsets are missing: a start would repeat it")


def _batch_of(storage: Storage, records: Sequence[CheckpointRecord], batch_id: int) -> SparkBatch | None:
    """The description of a batch in its newest checkpoint; None if that cannot be read, which its verdict tells."""
    record = next((record for record in reversed(records) if record.batch_id == batch_id), None)
    if record is None:
        return None
    try:
        return read_snapshot(storage, record).state().batch
    except DamagedCheckpointError:
        return None


def check_log(records: Mapping[int, Record], path_of: Callable[[int], str]) -> Iterator[Damage]:
    """Violations of the log's rules: generations never decrease, each claim opens a new one, and only the claimant adds
    checkpoints.

    Args:
        records: readable records of the log by id, ascending.
        path_of: returns the file of a record.
    """
    for before, after in pairwise(records.values()):
        if after.generation < before.generation:
            reason = f"generation {after.generation} follows generation {before.generation} of record {before.id}"
            yield Damage(path_of(after.id), reason)
        elif isinstance(after, ClaimRecord) and after.generation == before.generation:
            yield Damage(path_of(after.id), f"the claim repeats generation {after.generation} of record {before.id}")
    claim: ClaimRecord | None = None
    for record in records.values():
        if isinstance(record, ClaimRecord):
            claim = record
        elif claim is not None and claim.generation == record.generation and claim.owner != record.owner:
            yield Damage(
                path_of(record.id), f"the checkpoint was written by {record.owner}, the claim by {claim.owner}"
            )
