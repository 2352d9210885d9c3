"""Rewriting of large stores by Spark tasks, one per partition."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.checkpoint.layout import in_location, new_merged_path
from spark_ckpt.evolution.store_rewrite import StoreRewrite
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.state_writing.bases import base_of
from spark_ckpt.state_writing.placement import PLACED, in_order
from spark_ckpt.storage import LocalStorage, resolve
from spark_ckpt.storage.s3_storage import S3Storage

if TYPE_CHECKING:
    from pyspark import SparkContext

LARGE_ROWS = 1_000_000
"""Rows of a store that are worth a job of Spark. The driver rewrites a million in about a second."""

_PACKAGE = "spark_ckpt"

_Part: TypeAlias = tuple[int, tuple[int, int, bytes]]
"""Rows on their way to a partition: its number, and the earlier partition, a number in it, and an Arrow stream."""

_Written: TypeAlias = tuple[int, int, SegmentRef | None]
"""A written partition: its number, its rows, and its segment."""


@dataclass(frozen=True, slots=True)
class _InTask:
    """A rewrite on its way to tasks, which open the storage themselves.

    Args:
        rewrite: the rewrite, without its storage.
        location: the checkpoint location.
        settings: Hadoop's settings of its file system.
        paths: path of each partition's file, relative to `ckpt`.
    """

    rewrite: StoreRewrite
    location: str
    settings: Mapping[str, str]
    paths: tuple[str, ...]

    def _open(self) -> StoreRewrite:
        return replace(self.rewrite, storage=resolve(self.location, self.settings))

    def keep(self, partition: int) -> _Written:
        """Rewrites a partition whose rows stay in it."""
        rewrite = self._open()
        return self._write(rewrite, partition, rewrite.tables(partition))

    def send(self, partition: int) -> Iterator[_Part]:
        """Rows of an earlier partition, on their way to new ones."""
        rewrite = self._open()
        placement = rewrite.placement
        for number, rows in enumerate(rewrite.rows(partition)):
            placed = placement.placed(rows)
            for target in pc.unique(placed.column("partition")).to_pylist():
                part = placed.filter(pc.equal(placed.column("partition"), target))
                yield target, (partition, number, _encoded(part))

    def receive(self, partition: int, parts: Iterable[_Part]) -> Iterator[_Written]:
        """Writes a partition from the rows that were sent to it. Those of a list keep their order."""
        ordered = sorted((part for _, part in parts), key=lambda part: part[:2])
        batches = [batch for _, _, data in ordered for batch in pa.ipc.open_stream(data)]
        yield self._write(self._open(), partition, [in_order(pa.Table.from_batches(batches, PLACED))])

    def _write(self, rewrite: StoreRewrite, partition: int, tables: Iterable[pa.Table]) -> _Written:
        segment = base_of(tables, rewrite.families, rewrite.version)
        if not segment.rows:
            return partition, 0, None
        placed = segment.ref(0, rewrite.version)
        path = self.paths[partition]
        rewrite.storage.write_atomic(in_location(path), segment.data)  # a repeated attempt writes the same bytes
        placed.place_in(path, len(segment.data), 0)
        return partition, segment.rows, placed


class SparkTasks:
    """Tasks of a session, for large stores on storages that executors reach without the driver.

    Args:
        context: the session's context.
        location: the checkpoint location.
        settings: Hadoop's settings of its file system, which go to the tasks with their code.
    """

    def __init__(self, context: SparkContext, location: str, settings: Mapping[str, str]) -> None:
        self._context = context
        self._location = location
        self._settings = dict(settings)

    def suit(self, rewrite: StoreRewrite) -> bool:
        """True if a store is large, there are cores for several partitions, executors reach the storage, and they have
        this package.

        Raises:
            Py4JJavaError: executors have no Python that works.
        """
        rows = sum(chain.rows for chain in rewrite.old.chains)
        return (
            rows >= LARGE_ROWS
            and min(rewrite.partitions, self._context.defaultParallelism) > 1
            and isinstance(rewrite.storage, (LocalStorage, S3Storage))
            and self._has_package
        )

    @property
    def _has_package(self) -> bool:
        # A function of this package would fail before it could look.
        return bool(self._context.parallelize([_PACKAGE], 1).map(find_spec).map(bool).first())

    def chains(self, rewrite: StoreRewrite, begins: Callable[[str], None]) -> list[Chain]:
        """Rewrites a store.

        Args:
            rewrite: how.
            begins: called with the path of each file before any is written, relative to `ckpt`.

        Raises:
            Py4JJavaError: a task failed.
        """
        paths = tuple(new_merged_path() for _ in range(rewrite.partitions))
        for path in paths:
            begins(path)
        task = _InTask(_without_storage(rewrite), self._location, self._settings, paths)
        earlier = len(rewrite.old.chains)
        with self._described(f"spark-ckpt evolve: {rewrite.mapping.new.key}"):
            numbers = self._context.parallelize(range(earlier), earlier)
            if rewrite.keeps_places:
                written = numbers.map(task.keep).collect()
            else:
                sent = numbers.flatMap(task.send).partitionBy(rewrite.partitions, int)
                written = sent.mapPartitionsWithIndex(task.receive).collect()
        return [_chain(rows, segment) for _, rows, segment in sorted(written, key=lambda each: each[0])]

    @contextmanager
    def _described(self, what: str) -> Iterator[None]:
        """Names the jobs in Spark's UI."""
        before = self._context.getLocalProperty("spark.job.description")
        self._context.setJobDescription(what)
        try:
            yield
        finally:
            self._context.setLocalProperty("spark.job.description", before)  # type: ignore[arg-type]


def _without_storage(rewrite: StoreRewrite) -> StoreRewrite:
    return replace(rewrite, storage=None)  # type: ignore[arg-type]  # `_InTask` sets it again


def _encoded(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _chain(rows: int, segment: SegmentRef | None) -> Chain:
    if segment is not None:
        segment.keep(None)  # a slot that does not come along from a task
    return Chain(str(uuid.uuid4()), rows, () if segment is None else (segment,))
