"""A changed query continues from the state of the earlier one, at the same location."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from spark_ckpt.checkpoint.batch import StoreState
from spark_ckpt.checkpoint.chains import ChainTable
from spark_ckpt.checkpoint.meaning import QueryMeaning
from spark_ckpt.checkpoint.segment_table import SegmentTable
from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.driver_jvm.files import storage_of
from spark_ckpt.driver_jvm.objects import has_ended
from spark_ckpt.errors import StorageError
from spark_ckpt.evolution.choices import Choices, SourceChoice
from spark_ckpt.evolution.errors import EvolutionRefusedError
from spark_ckpt.evolution.mapping import StateMapping, StoreMapping, map_state
from spark_ckpt.evolution.planning import PlannedQuery, plan_query
from spark_ckpt.evolution.result import Evolution, EvolvedStore
from spark_ckpt.evolution.rewriting import StateRewriter
from spark_ckpt.evolution.schemas import JOIN_FORMAT, schemas_of
from spark_ckpt.evolution.sources import SourceMapping, map_sources
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.operations.change import Change, begin_change
from spark_ckpt.operations.restore import restore
from spark_ckpt.progress import Progress
from spark_ckpt.recovery.fence import FencedLogs
from spark_ckpt.spark_files.entries import OffsetEntry
from spark_ckpt.spark_files.evolved import files_below, keep, replace_files
from spark_ckpt.spark_files.logs import SOURCES, STATE, make_partitions
from spark_ckpt.spark_files.operators import JOIN
from spark_ckpt.state.catalog import StateCatalog, state_in
from spark_ckpt.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

OPERATION = "evolve"
"""Name of the command."""

_BATCHES = 2
"""Batches without input that an evolution adds: a start reads the last two entries of the offset log, with the new
sources."""

_WITHOUT_MEANING = (
    "the checkpoint does not say what the state of the earlier query means, as its release did not record it. Start "
    "the earlier query once with this release and let it commit a batch, or give the earlier query: --earlier-query "
    "FILE:NAME"
)


def evolve(
    query: DataFrame | DataStreamWriter,
    location: str | os.PathLike[str],
    *,
    output_mode: str | None = None,
    new_location: str | os.PathLike[str] | None = None,
    earlier_query: DataFrame | DataStreamWriter | None = None,
    functions: Mapping[str, str | None] | None = None,
    initial: Mapping[str, Sequence[object]] | None = None,
    keys: Mapping[str, str] | None = None,
    values: Mapping[str, object] | None = None,
    operators: Mapping[int, int | None] | None = None,
    sources: Mapping[int, SourceChoice] | None = None,
    drop: Iterable[int] = (),
    settings: Mapping[str, str] | None = None,
    force: bool = False,
    dry_run: bool = False,
    clock: Clock | None = None,
    progress: Progress = lambda done, of: None,
) -> Evolution:
    """Let a changed query continue from the state and the positions of an earlier one.

    The changed query is planned, not started, and its state is matched with the recorded meaning of the earlier one:
    grouping keys and aggregate functions down to the columns of the sources. Where types or columns change, the state
    is rewritten; other state keeps its files. What cannot be right is refused, with all reasons at once; what the plans
    do not tell has to be said.

    Spark's logs get two batches without input. The number of the query and those of its batches stay, so that sinks
    continue. A rollback to a checkpoint from before brings the earlier query back.

    Args:
        query: the changed query, or its writer, in a classic session with the jar of spark-ckpt.
        location: checkpoint location of the earlier query, as a path or URL.
        output_mode: output mode; by default that of the writer, or `append`.
        new_location: an empty location for the changed query; by default it continues at `location`.
        earlier_query: the earlier query, if its checkpoint does not say what its state means.
        functions: aggregate function of the earlier query by one of the changed query, such as
            `{"sum(w)": "sum(v)"}`; None to begin without input.
        initial: values of the buffers of a new aggregate function in all rows, by the function.
        keys: key column of the earlier query by one of the changed query that has the same values.
        values: value of an added column or field in earlier rows, by its name; null by default.
        operators: number of an operator in the earlier query by its number in the changed one; None to begin empty.
        sources: for sources by number: the number of an earlier one whose position it takes, an offset as Spark writes
            it, or None for its own start.
        drop: numbers of earlier operators whose state may be left behind.
        settings: settings of the query that begin with `spark.sql.streaming.stateStore.ckpt.`; required if its
            completed checkpoints are in ZooKeeper.
        force: True to proceed although a driver is running, or may be running elsewhere.
        dry_run: True to check everything but the values, and write nothing.
        clock: source of time.
        progress: called with the number of stores done and the total.

    Raises:
        EvolutionRefusedError: the changed query cannot continue, or not without an answer. Has all reasons.
        EvolutionValueError: a row has a value that its new type does not have. Nothing was changed.
        QueryPlanError: Spark cannot plan the query.
        TargetNotEmptyError: the new location is not empty.
        LocationInUseError: see `force`.
        SparkCkptError: as `begin_change` and `Change.write` raise.
    """
    frame: Any = query if hasattr(query, "sparkSession") else query._df
    spark = frame.sparkSession
    choices = Choices(
        functions or {},
        initial or {},
        keys or {},
        values or {},
        operators or {},
        sources or {},
        frozenset(str(number) for number in drop),
    )
    path = os.fspath(location)
    target = None if new_location is None else os.fspath(new_location)
    if target is not None and not dry_run:
        restore(storage_of(spark, path), storage_of(spark, target), keep_query_id=True)
        path, force = target, True
    storage = storage_of(spark, path)
    CheckpointLocation(path, storage, None).of_query()

    def refuse(reason: str) -> EvolutionRefusedError:
        return EvolutionRefusedError(storage.location, [reason])

    with begin_change(
        storage,
        OPERATION,
        refuse,
        settings=settings,
        force=force,
        dry_run=dry_run,
        clock=clock or SystemClock(),
        has_ended=partial(has_ended, spark),
    ) as change:
        catalog = state_in(CheckpointLocation(path, storage, None), change.record.id)
        work = _Evolving(change, catalog, plan_query(query, output_mode, change.logs.offsets.conf), choices)
        work.match(_meaning(change, earlier_query))
        record = None if dry_run or not work.changes else work.write(progress)
        return work.result(os.fspath(location), target, record)


def _meaning(change: Change, earlier_query: DataFrame | DataStreamWriter | None) -> QueryMeaning:
    """What the state of the earlier query means."""
    if earlier_query is not None:
        return plan_query(earlier_query, None, change.logs.offsets.conf).meaning
    if change.batch.meaning is None:
        raise change.refuse(_WITHOUT_MEANING)
    return QueryMeaning.decode(change.batch.meaning)


class _Evolving:
    """An evolution, from the match of both queries to the new checkpoint."""

    def __init__(self, change: Change, catalog: StateCatalog, planned: PlannedQuery, choices: Choices) -> None:
        self._change = change
        self._catalog = catalog
        self._planned = planned
        self._choices = choices
        self._old: QueryMeaning
        self._state: StateMapping
        self._sources: SourceMapping

    def match(self, old: QueryMeaning) -> None:
        """Matches both queries.

        Raises:
            EvolutionRefusedError: with every problem.
        """
        self._old = old
        old_stores, planned = schemas_of(self._catalog), self._planned
        self._state = map_state(old_stores, old, planned.stores, planned.meaning, self._choices)
        offsets = self._change.logs.offsets
        self._sources = map_sources(list(offsets.offsets.values()), old, planned.meaning, self._choices)
        problems = [*self._state.problems, *self._sources.problems]
        if not problems and offsets.version > 1 and not self._sources.is_identity:
            problems.append(
                "its sources have names in the offset log, and only unchanged sources can be matched there. Change the "
                "sources in another step: Spark adds and removes named sources itself"
            )
        if problems:
            raise EvolutionRefusedError(self._change.storage.location, problems)

    @property
    def changes(self) -> bool:
        """True if the changed query could not start as it is."""
        is_same = all(
            store.keeps_files and store.old is not None and store.old.key == store.new.key
            for store in self._state.stores
        )
        stores = {store.state.key for store in self._catalog.stores}
        return (
            not is_same
            or stores != {store.new.key for store in self._state.stores}
            or not self._sources.is_identity
            or self._planned.meaning != self._old
        )

    # ---- writing -----------------------------------------------------------------------------------------------------

    def write(self, progress: Progress) -> CheckpointRecord:
        """Writes state, files of Spark, and the checkpoint."""
        change, stores = self._change, self._state.stores
        partitions = max(store.state.parallelism for store in self._catalog.stores)
        done = iter(range(1, len(stores) + 1))
        version = change.version_after(_BATCHES)
        rewriter = StateRewriter(
            change.storage, self._catalog, version, partitions, lambda: progress(next(done), len(stores))
        )
        try:
            table: ChainTable = {store.new.key: rewriter.chains(store) for store in stores}
        except BaseException:
            for name in rewriter.files:
                with suppress(StorageError):
                    change.storage.delete(name)
            raise
        batch = replace(
            change.batch,
            stores=tuple(self._described(store, table) for store in stores),
            sources=tuple(self._offsets.offsets),
            meaning=self._planned.meaning.encode(),
            spark_version=self._planned.spark_version,
        )
        return change.write(table, self._offsets, _BATCHES, batch=batch, replace_files=partial(self._replace, table))

    @property
    def _offsets(self) -> OffsetEntry:
        entry = self._change.logs.offsets
        if self._sources.is_identity:
            return entry
        positions = {str(source.number): source.position for source in self._sources.sources}
        return replace(entry, offsets=positions)

    def _described(self, mapping: StoreMapping, table: ChainTable) -> StoreState:
        store, chains = mapping.new, table[mapping.new.key]
        conf = self._change.logs.offsets.conf
        version = int(conf.get(JOIN_FORMAT, "2")) if store.name == JOIN else None
        rows, ids = tuple(chain.rows for chain in chains), tuple(chain.state_id for chain in chains)
        return StoreState(store.operator_id, store.store, store.name, version, rows, ids, SegmentTable.of(chains))

    def _replace(self, table: ChainTable, fence: FencedLogs) -> None:
        """Replaces the files of state and sources; those of earlier checkpoints stay beside them."""
        storage, last = self._change.storage, self._change.logs.committed
        sources = {} if self._sources.is_identity else self._source_files(storage)
        directories = [STATE] if self._sources.is_identity else [STATE, SOURCES]
        fence.check()
        keep(storage, last, directories)
        fence.check()
        replace_files(storage, STATE, self._planned.files_in(storage.location, last + 1))
        make_partitions(storage, {key.operator_id: len(chains) for key, chains in table.items()})
        if not self._sources.is_identity:
            fence.check()
            replace_files(storage, SOURCES, sources)

    def _source_files(self, storage: Storage) -> dict[str, bytes]:
        """Files of the sources that continue, under their new numbers."""
        files = {}
        for number, directory in enumerate(self._sources.directories):
            if directory is None:
                continue
            for name in files_below(storage, f"{SOURCES}/{directory}"):
                rest = name.split("/", 2)[2]
                files[f"{SOURCES}/{number}/{rest}"] = storage.read(name)
        return files

    # ---- result ------------------------------------------------------------------------------------------------------

    def result(self, location: str, new_location: str | None, record: CheckpointRecord | None) -> Evolution:
        """What was done, or would be."""
        before, after = self._old.watermarks, self._planned.meaning.watermarks
        watermarks: tuple[str, ...] = ()
        if before != after:
            was, now = (", ".join(each) or "none" for each in (before, after))
            watermarks = (f"{was} becomes {now}; the watermark stays where it is until the new one has passed it",)
        stores = tuple(
            EvolvedStore(
                each.new.operator_id,
                each.new.name,
                each.new.store,
                None if each.old is None else each.old.operator_id,
                0 if each.old is None else each.old.rows,
                each.old is not None and not each.keeps_files,
                each.notes,
            )
            for each in self._state.stores
        )
        return Evolution(
            location,
            new_location,
            stores,
            self._state.dropped,
            self._sources.sources,
            watermarks,
            self._change.logs.committed + _BATCHES if self.changes else None,
            self._change.record.id,
            None if record is None else record.id,
            0 if record is None else record.new_bytes,
        )
