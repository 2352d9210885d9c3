"""Verdict on one checkpoint: its state, `_metadata` and entries in Spark's logs, read in full."""

from __future__ import annotations

from dataclasses import dataclass

from spark_ckpt.checkpoint.chains import all_entries
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.errors import DamagedCheckpointError
from spark_ckpt.location.snapshot import read_snapshot
from spark_ckpt.progress import Progress
from spark_ckpt.recovery.damage import Damage
from spark_ckpt.recovery.spark_logs_check import check_agreement
from spark_ckpt.recovery.state_check import StateCheck, check_state
from spark_ckpt.spark_files.logs import SparkBatches, SparkLog
from spark_ckpt.storage import Storage


@dataclass(frozen=True, slots=True)
class CheckpointVerdict:
    """Verdict on one checkpoint.

    Args:
        record: its record.
        damages: its damages.
        blocks: number of blocks of state read.
        size: their bytes.
        rows: rows of the stores with countable rows.
        can_go_back: True if Spark's logs still have the entries for a start after its batch.
    """

    record: CheckpointRecord
    damages: tuple[Damage, ...]
    blocks: int
    size: int
    rows: int
    can_go_back: bool

    @property
    def is_whole(self) -> bool:
        """True if it has no damage."""
        return not self.damages


def verify_checkpoint(
    storage: Storage,
    record: CheckpointRecord,
    *,
    is_newest_of_version: bool = True,
    needs_settings: bool = True,
    is_repeated_from: bool = False,
    progress: Progress = lambda done, of: None,
) -> CheckpointVerdict:
    """Reads one checkpoint in full.

    Args:
        storage: storage of the checkpoint location.
        record: record of the checkpoint.
        is_newest_of_version: True if Spark's commit log must name its state ids.
        needs_settings: False if the next start takes its settings from a later batch.
        is_repeated_from: True if the next start restores the checkpoint and repeats the batch after its own.
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
        found.damages += check_agreement(
            storage,
            state,
            snapshot.metadata,
            is_newest_of_version=is_newest_of_version,
            needs_settings=needs_settings,
            is_repeated_from=is_repeated_from,
        )
    can_go_back = SparkBatches.of(SparkLog(storage)).can_follow(record.batch_id)
    damages = tuple(dict.fromkeys(found.damages))
    return CheckpointVerdict(record, damages, found.blocks, found.size, found.rows, can_go_back)
