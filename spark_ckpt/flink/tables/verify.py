"""Verification of Flink's checkpoints and savepoints: every state file is read in full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from spark_ckpt import metadata as m
from spark_ckpt.errors import FormatError, SparkCkptError, StateFileNotFoundError
from spark_ckpt.flink.rocksdb import ChecksumUnavailableError, MissingTableError, UnsupportedRocksDbError
from spark_ckpt.flink.streams import (
    KeyedState,
    ManagedOperatorState,
    StateFiles,
    StateFileSizeError,
    UnknownSerializerError,
    read_buffers,
    read_changes,
    read_raw_parts,
)
from spark_ckpt.flink.streams.errors import UnsupportedStateKindError
from spark_ckpt.flink.streams.headers import KeyedHeader
from spark_ckpt.flink.tables.catalog import open_flink_state
from spark_ckpt.flink.tables.rocksdb import RocksDbState
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.state.errors import UnsupportedFlinkStateError

_DAMAGES = (FormatError, StateFileNotFoundError, StateFileSizeError, MissingTableError)
_UNREAD = (
    UnknownSerializerError,
    UnsupportedStateKindError,
    UnsupportedFlinkStateError,
    UnsupportedRocksDbError,
    ChecksumUnavailableError,
)
"""Limits of this reader, which say nothing about the files."""

Progress = Callable[[int, int], None]
"""Receives the bytes done and the total."""


@dataclass(frozen=True, slots=True)
class FlinkDamage:
    """Damage of a state file, or state that cannot be read.

    Args:
        path: the file, or the name of inline state.
        reason: the problem.
        offset: byte position in the file; None if it is no single place.
        operator_id: id of the operator in hexadecimal; None for the metadata.
        subtask: subtask with the state; None for the metadata.
    """

    path: str
    reason: str
    offset: int | None = None
    operator_id: str | None = None
    subtask: int | None = None

    def __str__(self) -> str:
        position = self.path if self.offset is None else f"{self.path}, byte {self.offset:,}"
        of = "" if self.operator_id is None else f" (operator {self.operator_id}, subtask {self.subtask})"
        return f"{position}: {self.reason}{of}"


@dataclass(slots=True)
class FlinkVerdict:
    """Verdict on one checkpoint.

    Args:
        path: its metadata.
        checkpoint_id: its id; None if the metadata cannot be read.
        damages: damages of its files.
        unread: state that this reader does not know, so that its bytes say nothing.
        handles: number of handles read.
        size: bytes of their state.
        rows: entries of keyed state.
    """

    path: str
    checkpoint_id: int | None
    damages: list[FlinkDamage] = field(default_factory=list)
    unread: list[FlinkDamage] = field(default_factory=list)
    handles: int = 0
    size: int = 0
    rows: int = 0

    @property
    def is_whole(self) -> bool:
        """True if it has no damage."""
        return not self.damages


@dataclass(frozen=True, slots=True)
class FlinkVerification:
    """Result for a location of Flink.

    Args:
        location: the location.
        checkpoints: verdicts on the checkpoints read, newest first.
    """

    location: str
    checkpoints: tuple[FlinkVerdict, ...]

    @property
    def is_whole(self) -> bool:
        """True if nothing is damaged."""
        return all(verdict.is_whole for verdict in self.checkpoints)

    @property
    def restorable(self) -> tuple[int, ...]:
        """Ids of undamaged checkpoints, newest first."""
        return tuple(v.checkpoint_id for v in self.checkpoints if v.is_whole and v.checkpoint_id is not None)


def verify_flink(
    location: str,
    checkpoint_id: int | None = None,
    *,
    everything: bool = False,
    moved: Sequence[tuple[str, str]] = (),
    allow_outside: bool = False,
    progress: Progress = lambda done, of: None,
) -> FlinkVerification | None:
    """Read a checkpoint or savepoint of a Flink job in full; None if the location belongs to a query of Spark.

    Every handle is opened, every entry decoded, the key group of every key and the checksum of every block of RocksDB's
    files checked.

    Args:
        location: the location, as a path or URL.
        checkpoint_id: the checkpoint. By default the newest of the directory of a job; if it is damaged, also earlier
            ones until one is intact.
        everything: True to read all checkpoints of the directory.
        moved, allow_outside: as in `read_state`.
        progress: called after each handle.

    Raises:
        CheckpointNotFoundError: no checkpoint has this id.
        StateFileOutsideError: a file is outside the checkpoint's storage.
        StorageError: the storage does not answer.
    """
    checkpoint_location = CheckpointLocation.open(location)
    ids: list[int | None] = [checkpoint_id]
    if checkpoint_id is None and (found := checkpoint_location.ids_of_flink()):
        ids = list(reversed(found))
    verdicts: list[FlinkVerdict] = []
    for each in ids:
        try:
            checkpoint = checkpoint_location.find_of_flink(each)
        except m.UnsupportedMetadataVersionError:
            raise
        except m.MetadataFormatError as e:
            verdicts.append(FlinkVerdict(e.path, each, [FlinkDamage(e.path, e.reason, e.offset)]))
        else:
            if checkpoint is None:
                return None
            catalog = open_flink_state(location, checkpoint, moved=moved, allow_outside=allow_outside)
            verifier = _Verifier(catalog.files, checkpoint.path, catalog.metadata, progress)
            verdicts.append(verifier.verdict())
        if verdicts[-1].is_whole and not everything:
            break
    return FlinkVerification(location, tuple(verdicts))


class _Sized(Protocol):
    """Handle of any kind."""

    @property
    def state_size(self) -> int: ...


class _Verifier:
    """Reader of one checkpoint."""

    def __init__(self, files: StateFiles, path: str, metadata: m.CheckpointMetadata, progress: Progress) -> None:
        self._files = files
        self._metadata = metadata
        self._progress = progress
        self._verdict = FlinkVerdict(path, metadata.checkpoint_id)
        self._owner = ("", 0)

    def verdict(self) -> FlinkVerdict:
        """The verdict, after all handles are read."""
        subtasks = [
            (operator, index, subtask)
            for operator in self._metadata.operator_states
            for index, subtask in sorted(operator.subtask_states.items())
        ]
        of = sum(subtask.state_size for _, _, subtask in subtasks)
        done = 0
        for operator, index, subtask in subtasks:
            self._owner = (operator.operator_id.hex(), index)
            self._subtask(operator, subtask)
            done += subtask.state_size
            self._progress(done, of)
        return self._verdict

    def _subtask(self, operator: m.OperatorState, subtask: m.OperatorSubtaskState) -> None:
        if (managed := subtask.managed_operator_state) is not None:
            self._read(managed, lambda: self._operator_state(managed))
        if (raw := subtask.raw_operator_state) is not None:
            offsets = [at for info in raw.state_name_to_partition_offsets.values() for at in info.offsets]
            self._read(raw, lambda: self._raw(raw.delegate_state_handle, offsets))
        self._keyed(operator, subtask.managed_keyed_state)
        if isinstance(keyed := subtask.raw_keyed_state, m.KeyGroupsStateHandle):
            offsets = keyed.group_range_offsets.offsets.tolist()
            self._read(keyed, lambda: self._raw(keyed.delegate_state_handle, offsets))
        channels: list[m.InputChannelStateHandle | m.ResultSubpartitionStateHandle] = [
            *subtask.input_channel_state,
            *subtask.result_subpartition_state,
        ]
        for channel in channels:
            self._read(channel, partial(self._channel, channel))

    def _keyed(self, operator: m.OperatorState, handle: m.KeyedStateHandle | None) -> None:
        if isinstance(handle, m.ChangelogStateBackendHandle):
            for part in (*handle.materialized_state_handles, *handle.non_materialized_state_handles):
                self._keyed(operator, part)
        elif isinstance(handle, (m.KeyGroupsStateHandle, m.KeyGroupsSavepointStateHandle)):
            self._read(handle, lambda: self._key_groups(operator, handle))
        elif isinstance(handle, m.IncrementalRemoteKeyedStateHandle):
            self._read(handle, lambda: self._rocksdb(operator, handle))
        elif isinstance(handle, m.ChangelogStateHandleStreamImpl):
            self._read(handle, lambda: self._changelog(handle))

    def _read(self, handle: _Sized, read: Callable[[], object]) -> None:
        with self._collecting():
            read()
            self._verdict.handles += 1
            self._verdict.size += handle.state_size

    @contextmanager
    def _collecting(self) -> Iterator[None]:
        try:
            yield
        except _UNREAD as e:
            self._verdict.unread.append(self._damage(e))
        except _DAMAGES as e:
            self._verdict.damages.append(self._damage(e))

    def _damage(self, error: SparkCkptError) -> FlinkDamage:
        if isinstance(error, FormatError):
            return FlinkDamage(error.path, error.reason, error.offset, *self._owner)
        return FlinkDamage(getattr(error, "path", self._verdict.path), str(error), None, *self._owner)

    def _key_groups(
        self, operator: m.OperatorState, handle: m.KeyGroupsStateHandle | m.KeyGroupsSavepointStateHandle
    ) -> None:
        with self._files.open(handle.delegate_state_handle) as stream:
            state = KeyedState(handle, stream, operator.max_parallelism)
            for group in state.key_groups():
                self._count(state.entries(group))
            self._name_states(state.header, stream.path)

    def _rocksdb(self, operator: m.OperatorState, handle: m.IncrementalRemoteKeyedStateHandle) -> None:
        with RocksDbState(handle, self._files, operator.max_parallelism) as state:
            for state_id, _ in enumerate(state.header.states):
                self._count(state.entries(state_id))
            state.check_others()
            for file in (*handle.shared_state, *handle.private_state):
                # Flink restores files, too, that have no rows.
                self._files.open(file.handle).close()
            self._name_states(state.header, state.path)

    def _count(self, entries: Iterable[object]) -> None:
        for _ in entries:
            self._verdict.rows += 1

    def _name_states(self, header: KeyedHeader, path: str) -> None:
        for state in header.states:
            if header.is_opaque(state):
                reason = f"state {state.name!r} has parts of the unknown class {header.opaque_class(state)}"
                self._verdict.unread.append(FlinkDamage(path, reason, None, *self._owner))
        if not header.is_complete:
            self._name(header.unknown)

    def _name(self, unknown: UnknownSerializerError | None) -> None:
        if unknown is not None:
            self._verdict.unread.append(self._damage(unknown))

    def _operator_state(self, handle: m.OperatorStateHandle) -> None:
        with self._files.open(handle.delegate_state_handle) as stream:
            state = ManagedOperatorState(handle, stream)
            for _ in state.entries():
                pass
            self._name(state.header.unknown)

    def _raw(self, handle: m.StreamStateHandle, offsets: Sequence[int]) -> None:
        with self._files.open(handle) as stream:
            for _ in read_raw_parts(stream, offsets):
                pass

    def _channel(self, handle: m.InputChannelStateHandle | m.ResultSubpartitionStateHandle) -> None:
        with self._files.open(handle.delegate) as stream:
            for _ in read_buffers(handle, stream):
                pass

    def _changelog(self, handle: m.ChangelogStateHandleStreamImpl) -> None:
        for part in handle.handles_and_offsets:
            if part.handle is not None:
                with self._files.open(part.handle, size_is_known=False) as stream:
                    for _ in read_changes(stream, part.offset):
                        pass
