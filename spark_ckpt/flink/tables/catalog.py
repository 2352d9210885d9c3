"""Keyed state of a Flink checkpoint: operators, their states, and the handles that hold them."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from spark_ckpt import metadata as m
from spark_ckpt.flink.streams import StateFiles
from spark_ckpt.flink.streams.headers import KeyedHeader
from spark_ckpt.flink.tables.columns import StateColumns
from spark_ckpt.flink.tables.sources import KeyedHandle, KeyedSource, open_source
from spark_ckpt.location.file_system import file_system_of
from spark_ckpt.location.find import FoundCheckpoint
from spark_ckpt.state.errors import StateNotFoundError, UnsupportedFlinkStateError

_log = logging.getLogger(__name__)

_MAX_OPEN = 16
"""Sources that stay open between the reading of their headers and of their rows."""

_RAW = "raw keyed state, such as timers of a job with timers on the heap beside RocksDB"


@dataclass(frozen=True, slots=True)
class FlinkState:
    """Keyed state of an operator.

    Args:
        operator_id: id of the operator.
        name: name of the state.
        kind: `VALUE`, `LIST`, `REDUCING`, `AGGREGATING`, `MAP`, or `PRIORITY_QUEUE` for timers.
        columns: its columns.
    """

    operator_id: bytes
    name: str
    kind: str
    columns: StateColumns


class _SubtaskHandle(NamedTuple):
    """A handle with readable rows."""

    operator: m.OperatorState
    subtask: int
    number: int
    handle: KeyedHandle

    @property
    def key(self) -> tuple[bytes, int, int]:
        return self.operator.operator_id, self.subtask, self.number


class FlinkCatalog:
    """Keyed state of one checkpoint or savepoint of Flink. Headers are read when they are needed, and once.

    Args:
        location: the location, for errors.
        metadata: metadata of the checkpoint.
        files: opener of its state files.
    """

    def __init__(self, location: str, metadata: m.CheckpointMetadata, files: StateFiles) -> None:
        self.location = location
        self.metadata = metadata
        self.files = files
        self._headers: dict[tuple[bytes, int, int], tuple[KeyedHeader, bool]] = {}
        self._open: OrderedDict[tuple[bytes, int, int], KeyedSource] = OrderedDict()
        self._warned: set[bytes] = set()

    @property
    def operators(self) -> list[m.OperatorState]:
        """Operators with keyed state, raw keyed state included."""
        return [
            operator
            for operator in self.metadata.operator_states
            if any(
                subtask.managed_keyed_state is not None or subtask.raw_keyed_state is not None
                for subtask in operator.subtask_states.values()
            )
        ]

    def unread(self, operator: m.OperatorState) -> tuple[str, ...]:
        """What `states` does not list of an operator's keyed state, and why.

        Raises:
            UnsupportedFlinkStateError, StateStreamFormatError, RocksDbFormatError, StorageError: as in `states`.
        """
        found = [
            reason for reason in map(self._unlisted, self._subtask_handles(operator.operator_id)) if reason is not None
        ]
        subtasks = operator.subtask_states.values()
        if any(subtask.raw_keyed_state is not None for subtask in subtasks):
            found.append(_RAW)
        if any(_has_changelog(subtask.managed_keyed_state) for subtask in subtasks):
            found.append("changes in a changelog, since the state here was written")
        return tuple(dict.fromkeys(found))

    def _unlisted(self, entry: _SubtaskHandle) -> str | None:
        """The states of a handle without a name, and why they have none; None if all have one."""
        header, _ = self._header(entry)
        if header.is_complete or header.unknown is None:
            return None
        missing = "states" if header.count is None else f"{header.count - len(header.states)} of {header.count} states"
        return f"{missing} behind the unknown serializer {header.unknown.class_name}, whose end cannot be found"

    def states(self, operator_id: bytes | None = None) -> tuple[FlinkState, ...]:
        """Keyed states, of one operator or of all.

        Raises:
            UnsupportedFlinkStateError: the state is of a kind whose rows cannot be read.
            StateStreamFormatError, RocksDbFormatError, StorageError: a file is damaged, or cannot be read.
        """
        found: dict[tuple[bytes, str], FlinkState] = {}
        for entry in self._subtask_handles(operator_id):
            header, is_heap = self._header(entry)
            for state_id, meta in enumerate(header.states):
                key = (entry.operator.operator_id, meta.name)
                if key not in found:
                    kind = meta.keyed_state_type or meta.kind.name
                    found[key] = FlinkState(*key, kind, StateColumns.of(header, state_id, is_heap=is_heap))
        return tuple(found.values())

    def choose(self, operator: int | str | None, name: str | None) -> FlinkState:
        """The state that the arguments select.

        Args:
            operator: id in hexadecimal, uid or name of the operator; None if only one has a state of this name.
            name: name of the state; None if there is only one.

        Raises:
            StateNotFoundError: no such operator or state, or one must be selected.
            UnsupportedFlinkStateError: it may be a state that `states` does not list.
            UnsupportedFlinkStateError, StateStreamFormatError, RocksDbFormatError, StorageError: as in `states`.
        """
        operator_id = None if operator is None else self._operator(str(operator)).operator_id
        states = self.states(operator_id)
        matching = [state for state in states if name in (None, state.name)]
        hidden = self._hidden(operator_id)
        if len(matching) == 1 and (hidden is None or (name is not None and operator_id is not None)):
            return matching[0]
        if hidden is not None and len(matching) < 2:
            # A state without a name may be the one that is meant.
            entry, reason = hidden
            if matching:
                what = "choose an operator and a state"
            else:
                what = "no other states" if name is None else f"no state {name!r} among the others"
            raise UnsupportedFlinkStateError(_operator_title(entry.operator), f"{reason}; {what}")
        if name is None:
            reason = "choose a state" if matching else "no keyed state"
        elif matching:
            reason = f"several operators have a state {name!r}: choose an operator"
        else:
            reason = f"no state {name!r}"
        raise StateNotFoundError(self.location, reason, [f"{state.name} of {self._title(state)}" for state in states])

    def sources(self, state: FlinkState) -> Iterator[tuple[int, int, KeyedSource]]:
        """Subtask, id of the state, and source, for each handle with the state. A source closes when the next opens.

        Raises:
            UnsupportedFlinkStateError: a subtask has other serializers than the first one.
            UnsupportedFlinkStateError, StateStreamFormatError, RocksDbFormatError, StorageError: as in `states`.
        """
        for entry in self._subtask_handles(state.operator_id):
            header, is_heap = self._header(entry)
            names = [meta.name for meta in header.states]
            if state.name not in names:
                continue
            state_id = names.index(state.name)
            if StateColumns.of(header, state_id, is_heap=is_heap).schema != state.columns.schema:
                raise UnsupportedFlinkStateError(state.name, f"subtask {entry.subtask} has it with other types")
            with self._source(entry) as source:
                yield entry.subtask, state_id, source

    def max_parallelism(self, state: FlinkState) -> int:
        """Number of key groups of the operator of a state."""
        return next(o.max_parallelism for o in self.metadata.operator_states if o.operator_id == state.operator_id)

    def require_whole(self) -> None:
        """Checks that `states` lists all keyed state, with all of its rows and all records before the checkpoint.

        Raises:
            UnsupportedFlinkStateError: part of the state is in a changelog, is raw, or has no name; or the checkpoint
                has records that the state lacks.
            UnsupportedFlinkStateError, StateStreamFormatError, RocksDbFormatError, StorageError: as in `states`.
        """
        for operator in self.metadata.operator_states:
            name = _operator_title(operator)
            for subtask in operator.subtask_states.values():
                keyed = subtask.managed_keyed_state
                if _has_changelog(keyed):
                    reason = "part of its state is in a changelog, whose changes cannot be read"
                    raise UnsupportedFlinkStateError(name, f"{reason}; take a canonical savepoint")
                if subtask.raw_keyed_state is not None:
                    reason = f"it has {_RAW}"
                    raise UnsupportedFlinkStateError(name, f"{reason}; take a canonical savepoint")
                if subtask.input_channel_state or subtask.result_subpartition_state:
                    reason = "the checkpoint is unaligned and holds records on their way to it"
                    raise UnsupportedFlinkStateError(name, f"{reason}; take a savepoint")
        if (hidden := self._hidden(None)) is not None:
            raise UnsupportedFlinkStateError(_operator_title(hidden[0].operator), hidden[1])

    def _operator(self, text: str) -> m.OperatorState:
        found = [each for each in self.operators if text in (each.operator_id.hex(), each.uid, each.name)]
        if len(found) != 1:
            reason = f"several operators are named {text!r}: use the id" if found else f"no operator {text!r} has state"
            raise StateNotFoundError(self.location, reason, [_operator_title(each) for each in self.operators])
        return found[0]

    def _title(self, state: FlinkState) -> str:
        return next(_operator_title(each) for each in self.operators if each.operator_id == state.operator_id)

    def _hidden(self, operator_id: bytes | None) -> tuple[_SubtaskHandle, str] | None:
        """The first handle with states without names, and their description."""
        for entry in self._subtask_handles(operator_id):
            if (reason := self._unlisted(entry)) is not None:
                return entry, reason
        return None

    def _subtask_handles(self, operator_id: bytes | None) -> Iterator[_SubtaskHandle]:
        for operator in self.operators:
            if operator_id not in (None, operator.operator_id):
                continue
            for index, subtask in sorted(operator.subtask_states.items()):
                handles = sorted(self._parts(operator, subtask.managed_keyed_state), key=_first_key_group)
                for number, handle in enumerate(handles):
                    yield _SubtaskHandle(operator, index, number, handle)

    def _parts(self, operator: m.OperatorState, handle: m.KeyedStateHandle | None) -> Iterator[KeyedHandle]:
        name = operator.operator_id.hex()
        if isinstance(handle, m.ChangelogStateBackendHandle):
            materialised = [part for part in handle.materialized_state_handles if part is not None]
            if handle.non_materialized_state_handles:
                if not materialised:
                    reason = "all of it is in a changelog, whose changes cannot be read; take a canonical savepoint"
                    raise UnsupportedFlinkStateError(name, reason)
                if operator.operator_id not in self._warned:
                    self._warned.add(operator.operator_id)
                    _log.warning(
                        "%s, operator %s: only the materialised part is read, without the changes of its changelog; "
                        "for the newest state, take a canonical savepoint",
                        self.location,
                        name,
                    )
            for part in materialised:
                yield from self._parts(operator, part)
        elif isinstance(
            handle, (m.IncrementalRemoteKeyedStateHandle, m.KeyGroupsStateHandle, m.KeyGroupsSavepointStateHandle)
        ):
            yield handle
        elif handle is not None:
            reason = f"a {type(handle).__name__}, whose files cannot be read as rows; take a canonical savepoint"
            raise UnsupportedFlinkStateError(name, reason)

    def _header(self, entry: _SubtaskHandle) -> tuple[KeyedHeader, bool]:
        """Header of a handle, and whether it is that of a heap snapshot."""
        if (known := self._headers.get(entry.key)) is None:
            source = open_source(entry.handle, self.files, entry.operator.max_parallelism)
            self._headers[entry.key] = known = (source.header, source.is_heap)
            self._open[entry.key] = source
            if len(self._open) > _MAX_OPEN:
                self._open.popitem(last=True)[1].close()
        return known

    @contextmanager
    def _source(self, entry: _SubtaskHandle) -> Iterator[KeyedSource]:
        source = self._open.pop(entry.key, None)
        if source is None:
            source = open_source(entry.handle, self.files, entry.operator.max_parallelism)
        try:
            yield source
        finally:
            source.close()


def _has_changelog(handle: m.KeyedStateHandle | None) -> bool:
    return isinstance(handle, m.ChangelogStateBackendHandle) and bool(handle.non_materialized_state_handles)


def _first_key_group(handle: KeyedHandle) -> int:
    if isinstance(handle, m.IncrementalRemoteKeyedStateHandle):
        return handle.key_group_range.start
    return handle.group_range_offsets.key_group_range.start


def open_flink_state(
    location: str,
    found: FoundCheckpoint,
    *,
    moved: Sequence[tuple[str, str]] = (),
    allow_outside: bool = False,
) -> FlinkCatalog:
    """Keyed state of a checkpoint or savepoint. Opens no file.

    Args:
        location: the location, as given by the user.
        found: the checkpoint.
        moved: pairs of old and new directories of moved files.
        allow_outside: True to open files outside the checkpoint's own storage.

    Raises:
        PathPrefixError, NothingToRelocateError: a directory of `moved` is not absolute, or no path starts with it.
    """
    metadata = found.metadata
    for old, new in moved:
        metadata = _relocated(metadata, old, new)
    also = [new for _, new in moved]
    files = StateFiles(found.path, also, allow_outside=allow_outside, file_system_of=file_system_of)
    return FlinkCatalog(location, metadata, files)


def _relocated(metadata: m.CheckpointMetadata, old: str, new: str) -> m.CheckpointMetadata:
    try:
        return m.relocate(metadata, old, new).metadata
    except m.NothingToRelocateError as e:
        # A savepoint among checkpoints has relative paths only.
        if e.directories or not e.relative:
            raise
        return metadata


def _operator_title(operator: m.OperatorState) -> str:
    names = [name for name in (operator.uid, operator.name) if name]
    return operator.operator_id.hex() + (f" ({names[0]})" if names else "")
