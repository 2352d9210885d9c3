"""Evolution of the state in a checkpoint location, under the fence of Spark's logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from spark_ckpt.checkpoint.chains import ChainTable
from spark_ckpt.checkpoint.meaning import QueryMeaning
from spark_ckpt.clock import Clock
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.errors import StorageError
from spark_ckpt.evolution.choices import Choices
from spark_ckpt.evolution.errors import EvolutionRefusedError
from spark_ckpt.evolution.mapping import StateMapping, map_state
from spark_ckpt.evolution.planned_query import PlannedQuery
from spark_ckpt.evolution.result import Evolution, EvolvedStore
from spark_ckpt.evolution.rewriting import StateRewriter, Tasks
from spark_ckpt.evolution.schemas import schemas_of
from spark_ckpt.evolution.sources import SourceMapping, map_sources
from spark_ckpt.location.driver_liveness import HasEnded, never_ended
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.operations.change import Change, begin_change
from spark_ckpt.progress import Progress
from spark_ckpt.recovery.fence import FencedLogs
from spark_ckpt.spark_files.entries import OffsetEntry
from spark_ckpt.spark_files.evolved import keep, replace_files
from spark_ckpt.spark_files.logs import SOURCES, STATE, make_partitions
from spark_ckpt.spark_files.rollbacks import EVOLVE
from spark_ckpt.state.catalog import StateCatalog, state_in
from spark_ckpt.storage import Storage, files_below

Plan: TypeAlias = Callable[[Mapping[str, str]], PlannedQuery]
"""Plans a query under the settings that a start takes from the offset log."""

_BATCHES = 2
"""Batches without input that an evolution adds: a start reads the last two entries of the offset log, with the new
sources."""

_WITHOUT_MEANING = (
    "the checkpoint does not say what the state of the earlier query means, as its release did not record it. Start "
    "the earlier query once with this release and let it commit a batch, or give the earlier query: --earlier-query "
    "FILE:NAME"
)


def evolve_in_place(
    location: CheckpointLocation,
    plan: Plan,
    choices: Choices,
    *,
    plan_earlier: Plan | None = None,
    settings: Mapping[str, str] | None = None,
    force: bool = False,
    dry_run: bool = False,
    clock: Clock,
    has_ended: HasEnded = never_ended,
    progress: Progress = lambda done, of: None,
    tasks: Tasks | None = None,
) -> Evolution:
    """Let a changed query continue at the location of the earlier one.

    Args:
        location: the checkpoint location.
        plan: plans the changed query.
        choices: what the user has said.
        plan_earlier: plans the earlier query, if its checkpoint does not say what its state means.
        settings: settings of spark-ckpt.
        force: True to proceed although a driver is running.
        dry_run: True to write nothing.
        clock: source of time.
        has_ended: tells whether a run has ended although its driver's process is running.
        progress: called with the number of stores done and the total.
        tasks: rewrites large stores; None to write all in this process.

    Raises:
        SparkCkptError: as `spark_ckpt.evolve` raises.
    """
    storage = location.of_query()

    def refuse(reason: str) -> EvolutionRefusedError:
        return EvolutionRefusedError(storage.location, [reason])

    with begin_change(
        storage,
        EVOLVE,
        refuse,
        settings=settings,
        force=force,
        dry_run=dry_run,
        clock=clock,
        has_ended=has_ended,
    ) as change:
        conf = change.logs.offsets.conf
        old = _recorded(change) if plan_earlier is None else plan_earlier(conf).meaning
        work = _Evolving(change, state_in(location, change.record.id), plan(conf), choices)
        work.match(old)
        record = None if dry_run or not work.changes else work.write(progress, tasks)
        return work.result(location.path, record)


def _recorded(change: Change) -> QueryMeaning:
    """What the state of the earlier query means."""
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

    def write(self, progress: Progress, tasks: Tasks | None) -> CheckpointRecord:
        """Writes state, files of Spark, and the checkpoint."""
        change, stores = self._change, self._state.stores
        partitions = max(store.state.parallelism for store in self._catalog.stores)
        done = iter(range(1, len(stores) + 1))
        version = change.version_after(_BATCHES)
        rewriter = StateRewriter(
            change.storage, self._catalog, version, partitions, lambda: progress(next(done), len(stores)), tasks
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
            stores=tuple(store.new.state(table[store.new.key], change.logs.offsets.conf) for store in stores),
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

    def result(self, location: str, record: CheckpointRecord | None) -> Evolution:
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
            None,
            stores,
            self._state.dropped,
            self._sources.sources,
            watermarks,
            self._change.logs.committed + _BATCHES if self.changes else None,
            self._change.record.id,
            None if record is None else record.id,
            0 if record is None else record.new_bytes,
        )
