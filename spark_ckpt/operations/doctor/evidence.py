"""Evidence that the checks share: each file of a location is read once."""

from __future__ import annotations

from functools import cached_property

from spark_ckpt.checkpoint.layout import CKPT
from spark_ckpt.checkpoint.load import CheckpointState
from spark_ckpt.clock import Clock
from spark_ckpt.completed import CheckpointRecord, Record, RecordFiles, without_void_records
from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.errors import DamagedCheckpointError, SparkCkptError
from spark_ckpt.location.driver_liveness import LastDriver, last_driver_of
from spark_ckpt.location.errors import NoCheckpointError
from spark_ckpt.location.listing import is_retained, scan
from spark_ckpt.location.savepoint import is_savepoint, read_savepoint_record
from spark_ckpt.location.snapshot import read_snapshot
from spark_ckpt.operations.gc import EarlierStates
from spark_ckpt.operations.verify import Remedy, Verification, verify
from spark_ckpt.progress import Progress
from spark_ckpt.recovery.damage import Damage
from spark_ckpt.spark_files.logs import SparkBatches, SparkLog
from spark_ckpt.spark_files.rollbacks import ROLLBACKS
from spark_ckpt.storage import Storage, until_stable

_FILES_OF_SPARK = ("metadata", "offsets", "commits", "sources", "state")


class Evidence:
    """Content of a location, read on first use. Each property may raise what its functions raise.

    Args:
        storage: storage of the checkpoint location or savepoint.
        clock: source of time.
        everything: True to read all retained checkpoints in full, not only the newest.
        progress: called after each segment that is read.
        earlier_states: finds state files of the provider that the query was imported from.
    """

    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        everything: bool,
        progress: Progress,
        earlier_states: EarlierStates | None = None,
    ) -> None:
        self.storage = storage
        self.location = storage.location
        self.clock = clock
        self.now_ms = clock.now_ms()
        self.earlier_states = earlier_states
        self._everything = everything
        self._progress = progress

    @cached_property
    def is_savepoint(self) -> bool:
        """True for a complete savepoint."""
        return is_savepoint(self.storage)

    @cached_property
    def records(self) -> dict[int, Record]:
        """Readable records of the log that count, by ascending id; empty without a log."""
        return {} if self.is_savepoint else self._read_log()

    @cached_property
    def checkpoints(self) -> tuple[CheckpointRecord, ...]:
        """Records of the completed checkpoints, ascending by id; those of a scan without a log."""
        return self._checkpoints_in(self.records)

    @property
    def newest(self) -> CheckpointRecord | None:
        """Record of the newest checkpoint."""
        return self.checkpoints[-1] if self.checkpoints else None

    @cached_property
    def last_driver(self) -> LastDriver:
        """The driver with the last claim."""
        return last_driver_of(self.records.values())

    @cached_property
    def state(self) -> CheckpointState | None:
        """Content of the newest checkpoint's `_metadata`; None without a checkpoint."""
        if self.newest is None:
            return None
        is_first = True

        def read_once() -> CheckpointState | None:
            nonlocal is_first
            checkpoints = self.checkpoints if is_first else self._checkpoints_in(self._read_log())
            is_first = False
            if not checkpoints:
                return None
            try:
                return read_snapshot(self.storage, checkpoints[-1]).state()
            except DamagedCheckpointError:
                # A running query may have subsumed the checkpoint since the log was read.
                if self.is_savepoint or is_retained(self.storage, checkpoints[-1]):
                    raise
                return None

        return until_stable(read_once, self.storage.describe(CKPT))

    @cached_property
    def verification(self) -> Verification | None:
        """Result of `verify`; None if no checkpoint has completed yet."""
        try:
            return verify(self.storage, everything=self._everything, progress=self._progress)
        except NoCheckpointError:
            return None

    @property
    def can_start(self) -> bool:
        """True unless a start of the query would fail because of damage, as far as that can be read."""
        try:
            found = self.verification
        except SparkCkptError:
            return False
        return found is None or found.is_whole or found.remedy is Remedy.COPY

    @cached_property
    def batches(self) -> SparkBatches:
        """Batches in Spark's logs."""
        return SparkBatches.of(self.log)

    @property
    def log(self) -> SparkLog:
        """Spark's logs."""
        return SparkLog(self.storage)

    def damages(self) -> tuple[list[Damage], list[Damage]]:
        """All damages: those of state and of our log, and those of Spark's files."""
        if (found := self.verification) is None:
            return [], []
        every = [damage for verdict in found.checkpoints for damage in verdict.damages]
        ours: list[Damage] = []
        of_spark: list[Damage] = []
        for damage in [*every, *found.damages]:
            if damage.path.startswith(self.storage.describe(ROLLBACKS)):
                continue  # the check of unfinished operations reports it
            (of_spark if self._is_file_of_spark(damage.path) else ours).append(damage)
        return ours, of_spark

    def _is_file_of_spark(self, path: str) -> bool:
        return any(
            path == self.storage.describe(name) or path.startswith(self.storage.describe(f"{name}/"))
            for name in _FILES_OF_SPARK
        )

    def _read_log(self) -> dict[int, Record]:
        each = RecordFiles(self.storage).read_each()
        return without_void_records({i: r for i, r in each.items() if not isinstance(r, DamagedRecordError)})

    def _checkpoints_in(self, records: dict[int, Record]) -> tuple[CheckpointRecord, ...]:
        if self.is_savepoint:
            return (read_savepoint_record(self.storage),)
        if not records:
            return scan(self.storage).records
        return tuple(record for record in records.values() if isinstance(record, CheckpointRecord))
