"""Model of the chains of one store over many batches. It has no state, only the sizes of segments and the files they
are in.

A segment over n batches has one entry per distinct key that these batches changed; their number is computed, not
counted. What the coordinator requests arrives some batches later, or never, and passes the coordinator's own checks.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from spark_ckpt.checkpoint.chains import Chain, ChainTable
from spark_ckpt.compaction.adoption import adoptable
from spark_ckpt.compaction.merges import digest_of
from spark_ckpt.compaction.requests import CompactionRequests
from spark_ckpt.compaction.state_ids import StateIds
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.format.keys import StoreKey, SubtaskKey
from spark_ckpt.format.segment_ref import NO_BLOCKS, SegmentRef
from spark_ckpt.messages import Ack, BaseSnapshot, CompactionRequest, InProgress, MergedDeltas, Task

ROW_BYTES = 16 + 40
"""Bytes of a key and its value."""

BLOCK_BYTES = 32 + 15
"""Bytes of a block besides its rows: header, name and flags of a section, lengths."""

KEY_GROUPS = 128
"""Key groups of the store."""

SHIPPED_BYTES = 1 << 20
"""Bytes of a segment up to which it travels with the ack, and into the file that a checkpoint writes."""

STORE = StoreKey(0, "default")

_NO_GROUPS = np.empty(0, np.uint32)
_NO_OFFSETS = np.empty(0, np.int64)
_TASK = Task(0, 0, 0, 0)


def _state_id(version: int) -> str:
    """State id of every partition at a version."""
    return f"state {version}"


def uniform(keys: int, changes: int) -> Callable[[int], float]:
    """Expected distinct keys that n batches change, with every key as likely."""
    return lambda batches: keys * -math.expm1(-batches * changes / keys)


def zipf(keys: int, changes: int, exponent: float = 0.99) -> Callable[[int], float]:
    """Expected distinct keys that n batches change, with the key of rank r as likely as r to the power of -exponent."""
    edges = np.unique(np.geomspace(1, keys + 1, 4000).astype(np.int64)).astype(np.float64)
    ranks, counts = np.sqrt(edges[:-1] * (edges[1:] - 1).clip(1)), np.diff(edges)
    weights = ranks**-exponent
    per_key = weights / (weights * counts).sum()
    return lambda batches: float((counts * -np.expm1(-batches * changes * per_key)).sum())


@dataclass(frozen=True, slots=True)
class Workload:
    """Changes of batches.

    Args:
        keys: keys of the state, over all partitions; their number does not change.
        distinct: expected distinct keys that n batches change.
        partitions: subtasks.
    """

    keys: int
    distinct: Callable[[int], float]
    partitions: int = 8

    def sizes(self) -> Callable[[int], int]:
        """Bytes of a subtask's segment over n batches."""

        @cache
        def size(batches: int) -> int:
            return self._size(self.distinct(batches))

        return size

    @property
    def base_bytes(self) -> int:
        """Bytes of a subtask's base."""
        return self._size(self.keys)

    def _size(self, rows: float) -> int:
        rows, groups = rows / self.partitions, KEY_GROUPS / self.partitions
        blocks = groups * -math.expm1(-rows / groups)
        return round(rows * ROW_BYTES + blocks * BLOCK_BYTES)


@dataclass(frozen=True, slots=True)
class Failures:
    """Late and missing answers of executors.

    Args:
        wait: batches until a step arrives, at most; drawn for each step.
        lost: probability that a step never arrives, as its executor is gone.
        failed: probability that a step fails, which the next ack reports.
        stall: probability that a step takes `stalled` batches.
        stalled: batches that a stalled step takes.
        per_batch: bytes that an executor writes in the background for a partition during one batch. Steps in progress
            share them.
    """

    wait: int = 2
    lost: float = 0.0
    failed: float = 0.0
    stall: float = 0.0
    stalled: int = 12
    per_batch: int = 64 << 20


@dataclass(slots=True)
class Figures:
    """What was observed. Ratios are over all partitions."""

    partitions: int
    changed: int = 0
    written: int = 0
    bases: int = 0
    merges: int = 0
    batches: int = 0
    chains: int = 0
    longest_chain: int = 0
    read: float = 0.0
    most_read: float = 0.0
    files: int = 0
    most_files: int = 0
    stored: float = 0.0
    most_stored: float = 0.0
    ignored: int = 0
    """Bases and merges that were written, and not used."""
    waits: int = 0
    """Batches that had to wait for a base, as a chain had reached its bound."""
    most_steps: int = 0
    """Largest share of the partitions that brought a merge or a base with one batch."""

    @property
    def write_amplification(self) -> float:
        """Bytes written per byte changed."""
        return self.written / self.changed

    @property
    def mean_chain(self) -> float:
        """Segments of a chain, on average."""
        return self.chains / self.batches / self.partitions

    @property
    def mean_read(self) -> float:
        """Bytes that a restart reads per byte of a fresh base, on average."""
        return self.read / self.batches

    @property
    def mean_stored(self) -> float:
        """Bytes of the files of a checkpoint per byte of a fresh base, on average."""
        return self.stored / self.batches


@dataclass(slots=True)
class _Step:
    """A base or a merge in progress.

    Args:
        arrives: first batch that may bring it.
        left: bytes that remain to be written before.
        covers: versions whose changes it has.
        state_id: state of the last of them.
        merge: deltas to merge; empty for a base.
        fails: True if it fails in the end.
    """

    arrives: int
    left: float
    covers: InProgress
    state_id: str
    merge: tuple[SegmentRef, ...]
    fails: bool


@dataclass(slots=True)
class World:
    """One store of one query.

    Args:
        workload: changes of batches.
        config: limits.
        failures: late and missing answers.
        rng: source of randomness.
    """

    workload: Workload
    config: CheckpointConfig = field(default_factory=CheckpointConfig)
    failures: Failures = field(default_factory=Failures)
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    table: ChainTable = field(init=False)
    version: int = field(init=False, default=1)
    _size: Callable[[int], int] = field(init=False)
    _requests: CompactionRequests = field(init=False)
    _ids: StateIds = field(init=False, default_factory=StateIds)
    _steps: dict[int, list[_Step]] = field(init=False, default_factory=dict)
    _named: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._size, self._requests = self.workload.sizes(), CompactionRequests(self.config)
        base = [self._in_own_file(0, 1, self.workload.base_bytes) for _ in range(self.workload.partitions)]
        self.table = {STORE: [Chain(_state_id(1), self.workload.keys, (entry,)) for entry in base]}
        self._complete()

    def run(self, batches: int, warm_up: int) -> Figures:
        """Run batches; the first ones do not count."""
        for _ in self._batches(warm_up, Figures(self.workload.partitions)):
            pass
        figures = Figures(self.workload.partitions)
        for _ in self._batches(batches, figures):
            pass
        return figures

    def _batches(self, count: int, figures: Figures) -> Iterator[None]:
        for _ in range(count):
            self.version += 1
            self._batch(figures)
            self._observe(figures)
            yield

    def _batch(self, figures: Figures) -> None:
        version, size, shipped, chains, steps = self.version, self._size(1), [], [], 0
        for partition, chain in enumerate(self.table[STORE]):
            sent = self._ack(partition, size)
            ack, ignored = adoptable(sent, chain, self._ids)
            figures.ignored += len(ignored)
            figures.written += sum(segment.size for _, _, segment in ignored)
            request = self._requests.after_ack(ack, chain, self.table)
            self._follow(partition, request, figures)
            delta = self._entry(version, version, size)
            brought = [delta]
            base = merged = None
            if ack.base is not None:
                base = self._entry(0, ack.base.version, self.workload.base_bytes)
                brought, figures.bases, steps = [*brought, base], figures.bases + 1, steps + 1
            if ack.merged is not None:
                first, last = ack.merged.first_version, ack.merged.version
                merged = self._entry(first, last, self._size(last - first + 1))
                brought, figures.merges, steps = [*brought, merged], figures.merges + 1, steps + 1
            figures.changed += size
            figures.written += sum(entry.size for entry in brought)
            for entry in brought:
                if entry.size <= SHIPPED_BYTES:
                    shipped.append(entry)
                else:
                    self._place([entry])
            chains.append(
                chain.next(ack.state_id, chain.rows, delta, base, ack.base.version if ack.base else 0, merged)
            )
        self._place(shipped)
        self.table = {STORE: chains}
        self._complete()
        figures.most_steps = max(figures.most_steps, steps)

    def _complete(self) -> None:
        self._ids.add(self.version, {STORE: [chain.state_id for chain in self.table[STORE]]})

    def _ack(self, partition: int, size: int) -> Ack:
        subtask = SubtaskKey(STORE.operator_id, STORE.store, partition)
        delta = self._entry(self.version, self.version, size)
        ack = Ack(subtask, self.version - 1, self.version, _state_id(self.version), _TASK, 0, delta, job="")
        steps = self._steps.setdefault(partition, [])
        self._write(steps)
        # One of them travels with an ack.
        step = next((step for step in steps if step.left <= 0 and step.arrives <= self.version), None)
        if step is not None:
            steps.remove(step)
            first, last = step.covers
            if step.fails:
                ack.compaction_failure = "the disk is full"
            elif not step.merge:
                ack.base = BaseSnapshot(self._entry(0, last, self.workload.base_bytes), step.state_id)
            else:
                segment = self._entry(first, last, self._size(last - first + 1))
                ack.merged = MergedDeltas(segment, digest_of(step.merge))
        ack.in_progress = tuple(step.covers for step in steps)
        return ack

    def _write(self, steps: list[_Step]) -> None:
        """One batch of background work, in equal shares until a step is done."""
        budget = float(self.failures.per_batch)
        while budget > 0 and (unfinished := [step for step in steps if step.left > 0]):
            share = min(budget / len(unfinished), min(step.left for step in unfinished))
            for step in unfinished:
                step.left -= share
            budget -= share * len(unfinished)

    def _follow(self, partition: int, request: CompactionRequest, figures: Figures) -> None:
        steps = self._steps[partition]
        if request.required:
            figures.waits += 1
            for step in steps:
                if not step.merge:  # the task of the next batch waits for it
                    step.arrives, step.left, step.fails = self.version + 1, 0, False
        if request.is_full and any(not step.merge for step in steps):
            return
        if request.inputs:
            assert all(step.covers.version < request.inputs[0].first_version for step in steps)
        elif not request.is_full:
            return
        failures, rng = self.failures, self.rng
        wait = failures.stalled if rng.random() < failures.stall else rng.randint(1, failures.wait)
        if request.required:
            wait = 1
        elif rng.random() < failures.lost:
            return  # another executor loads the partition, and the request is repeated
        size = sum(entry.size for entry in request.inputs) or self.workload.base_bytes * (not request.required)
        fails = rng.random() < failures.failed and not request.required
        covers = InProgress(0, self.version - 1)
        if request.inputs:
            covers = InProgress(request.inputs[0].first_version, request.inputs[-1].version)
        else:
            steps.clear()  # the base has the changes of all merges
        steps.append(_Step(self.version + wait, size, covers, _state_id(covers.version), request.inputs, fails))

    # ---- files -------------------------------------------------------------------------------------------------------

    def _entry(self, first_version: int, version: int, size: int) -> SegmentRef:
        return SegmentRef(first_version, version, NO_BLOCKS, size)

    def _in_own_file(self, first_version: int, version: int, size: int) -> SegmentRef:
        entry = self._entry(first_version, version, size)
        self._place([entry])
        return entry

    def _place(self, entries: list[SegmentRef]) -> None:
        self._named += 1
        total = sum(entry.size for entry in entries)
        for entry in entries:
            entry.path, entry.file_size = f"shared/{self._named}", total

    def _observe(self, figures: Figures) -> None:
        files: dict[str | None, int] = {}
        read = 0
        for chain in self.table[STORE]:
            read += chain.size
            figures.longest_chain = max(figures.longest_chain, len(chain.entries))
            figures.chains += len(chain.entries)
            for entry in chain.entries:
                files[entry.path] = entry.file_size
        fresh = self.workload.base_bytes * self.workload.partitions
        figures.batches += 1
        figures.read += read / fresh
        figures.most_read = max(figures.most_read, read / fresh)
        figures.files += len(files)
        figures.most_files = max(figures.most_files, len(files))
        stored = sum(files.values()) / fresh
        figures.stored += stored
        figures.most_stored = max(figures.most_stored, stored)
