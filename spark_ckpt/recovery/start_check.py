"""What a start of a query reads of Spark's own files, by Spark's rules, and which of it would fail or lose rows.

A start reads the two newest entries of the offset log and the newest of the commit log
(`MicroBatchExecution.populateStartOffsets`), each file source's log, the metadata of the operators if all of it is
readable (`IncrementalExecution.checkOperatorValidWithMetadata`), and the state schemas that exist
(`StateSchemaCompatibilityChecker`). It reads nothing else, so other damage is harmless.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spark_ckpt.checkpoint.batch import SparkBatch
from spark_ckpt.checkpoint.meaning import QueryMeaning
from spark_ckpt.errors import CheckpointError, StateFileNotFoundError
from spark_ckpt.recovery.damage import Damage
from spark_ckpt.spark_files.entries import OffsetEntry
from spark_ckpt.spark_files.errors import SparkLogFormatError, StateSchemaError
from spark_ckpt.spark_files.logs import SOURCES, STATE, BatchLog, SparkBatches, SparkLog, entry_name
from spark_ckpt.spark_files.operator_metadata import OperatorMetadata
from spark_ckpt.spark_files.operators import AGGREGATION, REAL_TIME_AGGREGATION, TRANSFORM_WITH_STATE
from spark_ckpt.spark_files.schema_check import check_schema
from spark_ckpt.spark_files.schemas import schema_file
from spark_ckpt.spark_files.source_log import FileSourceLog
from spark_ckpt.spark_files.source_positions import (
    DeltaPosition,
    FilePosition,
    NumberPosition,
    SourcePosition,
    UnknownPosition,
    positions_of,
)
from spark_ckpt.storage import Storage


@dataclass(frozen=True, slots=True)
class Start:
    """A start of a query.

    Args:
        last: the newest batch in the offset log.
        commit: the newest batch in the commit log; -1 without one.
    """

    last: int
    commit: int

    @classmethod
    def next_of(cls, batches: SparkBatches) -> Start | None:
        """The next start of a query with these logs; None if it begins with batch 0."""
        return cls(batches.started[-1], batches.last_committed) if batches.started else None

    @classmethod
    def after(cls, batch_id: int) -> Start:
        """The start of a query whose last batch was committed."""
        return cls(batch_id, batch_id)

    @property
    def is_committed(self) -> bool:
        """True if the start continues after the newest batch; False if it repeats it."""
        return self.commit == self.last


def check_start(storage: Storage, start: Start, batch: SparkBatch | None) -> Iterator[Damage]:
    """Damages of Spark's files because of which a start would fail, or read input twice.

    Args:
        storage: storage of the checkpoint location or savepoint.
        start: the start.
        batch: the batch of the checkpoint that the start restores; None if that is unknown.

    Raises:
        StorageError: the storage does not answer.
    """
    yield from _StartCheck(storage, start, batch).damages()


class _StartCheck:
    def __init__(self, storage: Storage, start: Start, batch: SparkBatch | None) -> None:
        self._storage = storage
        self._log = SparkLog(storage)
        self._start = start
        self._batch = batch

    def damages(self) -> Iterator[Damage]:
        yield from self._check_logs()
        if self._batch is not None:
            yield from self._check_operators(self._batch)

    def _where(self, name: str) -> str:
        return self._storage.describe(name)

    # ---- logs and sources --------------------------------------------------------------------------------------------

    def _check_logs(self) -> Iterator[Damage]:
        last = self._start.last
        if self._start.commit >= 0:
            name = entry_name(BatchLog.COMMITS, self._start.commit)
            try:
                self._log.commit(self._start.commit)
            except (StateFileNotFoundError, SparkLogFormatError) as e:
                yield Damage.of(self._where(name), e)
        name = entry_name(BatchLog.OFFSETS, last)
        try:
            end = self._log.offsets(last)
        except (StateFileNotFoundError, SparkLogFormatError) as e:
            yield Damage.of(self._where(name), e)
            return
        begin = None
        if last > 0:
            before = entry_name(BatchLog.OFFSETS, last - 1)
            try:
                begin = self._log.offsets(last - 1)
            except StateFileNotFoundError:
                reason = f"the entry is missing: no query starts without the one before its newest, {name}"
                yield Damage(self._where(before), reason)
                return
            except SparkLogFormatError as e:
                yield Damage.of(self._where(before), e)
                return
            if begin.version == end.version == 1 and len(begin.offsets) != len(end.offsets):
                reason = f"it has offsets of {len(begin.offsets)} sources, but {name} of {len(end.offsets)}"
                yield Damage(self._where(before), reason)
                return
        yield from self._check_sources(begin, end)

    def _check_sources(self, begin: OffsetEntry | None, end: OffsetEntry) -> Iterator[Damage]:
        names = () if self._batch is None else self._batch.sources
        directories = _directories(self._batch)
        seen: set[tuple[str, str]] = set()
        for index, (source, text) in enumerate(end.offsets.items()):
            if text is None:
                continue
            before = None if begin is None else begin.offsets.get(source)
            if before is not None and (damage := self._check_kinds(source, before, text)) is not None:
                yield damage
                continue
            position = positions_of(text)[0]
            if isinstance(position, NumberPosition):
                yield from self._check_rate_source(f"{SOURCES}/{source}/0")
            elif isinstance(position, FilePosition) and source.isdecimal():
                log = FileSourceLog(self._storage, directories[index] if index < len(directories) else int(source))
                same = names[index] if index < len(names) else source, text
                if log.latest >= 0 or same not in seen:  # a stream that the query uses twice has one log
                    former = None if before is None else positions_of(before)[0]
                    start = former.log_offset if isinstance(former, FilePosition) else -1
                    yield from self._check_file_source(log, start, position.log_offset)
                seen.add(same)

    def _check_kinds(self, source: str, before: str, text: str) -> Damage | None:
        """A start parses where its newest batch ends. Where it begins, it does so if it repeats the batch; otherwise,
        only sources of the first API do, such as those of files and of Delta."""
        kinds = [type(positions_of(each)[0]) for each in (before, text)]
        is_read = not self._start.is_committed or _is_old(kinds)
        if not is_read or kinds[0] is kinds[1] or (_is_json(before) and _is_json(text) and not _is_old(kinds)):
            return None
        batch_id = self._start.last - (kinds[0] is UnknownPosition)
        wrong = before if kinds[0] is UnknownPosition else text
        path = self._where(entry_name(BatchLog.OFFSETS, batch_id))
        return Damage(path, f"the offset of source {source}, '{wrong[:40]}', is of another kind than that beside it")

    def _check_file_source(self, log: FileSourceLog, start: int, end: int) -> Iterator[Damage]:
        """A file source lists its files from the newest compacted entry on, and reads the entries of the last batch."""
        last = entry_name(BatchLog.OFFSETS, self._start.last)
        if log.latest < end:
            yield Damage(self._where(log.directory), f"entry {end} of the source is missing; {last} names it")
        elif start > end:
            path = self._where(entry_name(BatchLog.OFFSETS, self._start.last - 1))
            yield Damage(path, f"entry {start} of source {log.directory} follows entry {end} of {last}")
        else:
            yield from self._check_entries(log, range(start + 1, end + 1))

    def _check_entries(self, log: FileSourceLog, of_batch: range) -> Iterator[Damage]:
        listed: set[int] = set()
        for entry in range(log.first_read, log.latest + 1):
            path = self._where(log.name_of(entry))
            if not log.has(entry):
                yield Damage(path, f"the entry of the source is missing, but the log continues to {log.latest}")
                return
            try:
                listed |= {file["batchId"] for file in log.files_of(entry)}
            except (StateFileNotFoundError, SparkLogFormatError) as e:
                yield Damage.of(path, e)
                return
        for entry in of_batch:
            path = self._where(log.name_of(entry))
            if entry < log.first_read and not log.has(entry) and entry not in listed:
                last = entry_name(BatchLog.OFFSETS, self._start.last)
                yield Damage(path, f"the entry of the source is missing; {last} needs it")
            elif entry < log.first_read and log.has(entry):
                try:
                    deque(log.files_of(entry), maxlen=0)
                except (StateFileNotFoundError, SparkLogFormatError) as e:
                    yield Damage.of(path, e)

    def _check_rate_source(self, name: str) -> Iterator[Damage]:
        """The source `rate` keeps the time of its first start (`RateStreamMicroBatchStream`)."""
        try:
            content = self._storage.read(name)
        except StateFileNotFoundError:
            return  # another source whose offset is a number
        version, _, time = content.decode(errors="replace").partition("\n")
        if version != "v1" or not time.strip().isdecimal():
            yield Damage(self._where(name), "it does not have the time of the source's first start")

    # ---- operators ---------------------------------------------------------------------------------------------------

    def _check_operators(self, batch: SparkBatch) -> Iterator[Damage]:
        """Spark compares the operators with those in their metadata if it can read all of it, and ignores version 1 of
        it if not. Version 2 names the schemas, so a start reads it."""
        operators = self._log.operators()
        if batch.stores and not operators:
            reason = "Spark's directory of the state is missing or empty: no stateful query starts"
            yield Damage(self._where(STATE), reason)
            return
        after = self._start.last if self._start.is_committed else self._start.last - 1
        if after < 0:
            return
        names = {store.operator_id: store.name for store in batch.stores}
        found = {operator_id: self._log.metadata_at_start(operator_id, after) for operator_id in operators}
        is_complete = all(metadata is not None for _, metadata in found.values())
        for operator_id, (name, metadata) in found.items():
            expected = names.get(operator_id)
            has_variables = expected in TRANSFORM_WITH_STATE
            yield from self._check_schemas(batch, operator_id, metadata, needs_all=has_variables)
            if metadata is None:
                if has_variables:
                    reason = f"Spark cannot read the metadata of operator {operator_id} ({expected})"
                    yield Damage(self._where(name), reason)
                continue
            there = metadata.operator_id, metadata.name
            if is_complete and _one_name(there) != _one_name((operator_id, expected)):
                reason = f"it describes operator {there}, but the checkpoint has {(operator_id, expected)}"
                yield Damage(self._where(name), reason)
                continue
            try:
                if has_variables:
                    metadata.check_properties(self._where(name))
            except SparkLogFormatError as e:
                yield Damage.of(self._where(name), e)

    def _check_schemas(
        self, batch: SparkBatch, operator_id: int, metadata: OperatorMetadata | None, *, needs_all: bool
    ) -> Iterator[Damage]:
        """A start reads the schemas that exist, and those of variables must exist if their metadata names any. Others
        are written anew."""
        if metadata is not None and metadata.version > 1:
            names = metadata.all_schema_files
        else:
            single = [schema_file(store.key) for store in batch.stores if store.operator_id == operator_id]
            names = tuple(dict.fromkeys(single))
        for name in names:
            path = self._where(name)
            try:
                check_schema(self._storage.read(name), path)
            except StateFileNotFoundError:
                if needs_all:
                    yield Damage(path, "the state schema is missing, and the operator's metadata names it")
            except StateSchemaError as e:
                yield Damage(path, e.reason)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_old(kinds: Sequence[type[SourcePosition]]) -> bool:
    """True if one of these kinds belongs to a source of Spark's first API."""
    return any(kind in (FilePosition, DeltaPosition) for kind in kinds)


def _one_name(operator: tuple[int, str | None]) -> tuple[int, str | None]:
    """The operator, with one name for the two kinds of aggregation, which share their state."""
    number, name = operator
    return number, AGGREGATION if name == REAL_TIME_AGGREGATION else name


def _directories(batch: SparkBatch | None) -> tuple[int, ...]:
    """Numbers of the directories of the sources below `sources`, if the checkpoint says what its state means."""
    if batch is None or batch.meaning is None:
        return ()
    try:
        return tuple(source.directory for source in QueryMeaning.decode(batch.meaning).sources)
    except CheckpointError:
        return ()
