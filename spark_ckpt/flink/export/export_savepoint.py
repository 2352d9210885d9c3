"""A planned export, written as a savepoint of Flink, and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from spark_ckpt.checkpoint.sources import SourceState
from spark_ckpt.flink.export.check import check
from spark_ckpt.flink.export.model import FlinkOperator, Written
from spark_ckpt.flink.export.plan import Plan
from spark_ckpt.flink.export.sources import PlannedSource
from spark_ckpt.flink.export.writer import write_savepoint
from spark_ckpt.storage import Storage

Progress: TypeAlias = Callable[[int, int], None]
"""Function that takes the amount done and the total."""


@dataclass(frozen=True, slots=True)
class ExportedState:
    """A state of an export to Flink, or of its dry run.

    Args:
        name: name of the state in Flink.
        kind: name of its `StateKind`.
        origin: name of the state variable or column family in Spark.
        java: statement in Java that declares it.
        note: what the state in Flink lacks or means; empty if nothing is to be said.
        rows: entries written: a list is one, a map one for each of its entries; None after a dry run.
        skipped: rows of Spark that were left out, because their time to live is over; None after a dry run.
    """

    name: str
    kind: str
    origin: str
    java: str
    note: str
    rows: int | None
    skipped: int | None


@dataclass(frozen=True, slots=True)
class ExportedSource:
    """A source of the query in an export to Flink.

    Args:
        source: its name and positions.
        uid: uid of the source in the Flink job that continues from them; None if they are only reported.
        operator_id: its id in hexadecimal; None if they are only reported.
        java: expression in Java for the positions; empty if it is not Kafka.
    """

    source: SourceState
    uid: str | None
    operator_id: str | None
    java: str


@dataclass(frozen=True, slots=True)
class FlinkExport:
    """Result of an export to Flink, or of its dry run.

    Args:
        location: the location with the state of spark-ckpt, unchanged.
        target: directory of the savepoint.
        dry_run: True if nothing was written.
        checkpoint_id: the exported checkpoint.
        batch_id: its batch.
        operator: Spark's number of the operator.
        name: Spark's short name of it.
        uid: uid of the operator in the Flink job; None if only its id is known.
        operator_id: its id in hexadecimal.
        max_parallelism: number of key groups, which the job must have too.
        key: expression in Java for the type of the keys.
        states: states of the operator.
        sources: sources of the query.
        files: number of files; None after a dry run.
        bytes: bytes of them; None after a dry run.
    """

    location: str
    target: str
    dry_run: bool
    checkpoint_id: int
    batch_id: int
    operator: int
    name: str
    uid: str | None
    operator_id: str
    max_parallelism: int
    key: str
    states: tuple[ExportedState, ...]
    sources: tuple[ExportedSource, ...]
    files: int | None
    bytes: int | None


def export_plan(
    plan: Plan, target: Storage, *, dry_run: bool = False, progress: Progress = lambda done, of: None
) -> FlinkExport:
    """Writes the states of a plan as a canonical savepoint. Its `_metadata` comes last.

    Args:
        plan: the plan.
        target: storage of a new directory.
        dry_run: True to check the types of keys and values, and write nothing.
        progress: called with the amount done and the total.

    Raises:
        UnsupportedForFlinkError: the savepoint cannot hold a key or value. Nothing was written.
        FlinkRowError: a row does not fit. The savepoint has no `_metadata`.
        SegmentError, StateRowError, StorageError: a file is damaged, or cannot be read or written.
    """
    for operator in plan.operators:
        check(operator)
    if dry_run:
        return _result(plan, target, None)
    catalog = plan.source.catalog
    rows: list[tuple[FlinkOperator, dict[str, Iterator[pa.RecordBatch]]]] = [
        (operator, plan.rows() if operator is plan.operator else {}) for operator in plan.operators
    ]
    partitions = plan.source.stores[0].state.parallelism
    # The number of keys; entries of maps and timers are more.
    total = sum(sum(store.state.rows) for store in plan.source.stores)
    written = write_savepoint(
        target,
        rows,
        checkpoint_id=catalog.found.metadata.checkpoint_id,
        parallelism=min(partitions, *(operator.max_parallelism for operator in plan.operators)),
        progress=lambda done: progress(done, max(done, total)),
    )
    return _result(plan, target, written)


def _result(plan: Plan, target: Storage, written: Written | None) -> FlinkExport:
    operator, catalog, state = plan.operator, plan.source.catalog, plan.source.stores[0].state
    states = [
        ExportedState(
            planned.state.name,
            planned.state.kind.name,
            planned.origin,
            planned.java,
            planned.note,
            None if written is None else written.rows.get((operator.operator_id, planned.state.name), 0),
            None if written is None else planned.skipped.rows,
        )
        for planned in plan.states
    ]
    return FlinkExport(
        catalog.location,
        target.location,
        written is None,
        catalog.found.metadata.checkpoint_id,
        catalog.batch.batch_id,
        state.operator_id,
        state.name,
        operator.uid,
        operator.operator_id.hex(),
        operator.max_parallelism,
        plan.key.java,
        tuple(states),
        tuple(map(_source, plan.sources)),
        None if written is None else len(written.files),
        None if written is None else written.size,
    )


def _source(planned: PlannedSource) -> ExportedSource:
    operator = planned.operator
    if operator is None:
        return ExportedSource(planned.source, None, None, planned.java)
    return ExportedSource(planned.source, operator.uid, operator.operator_id.hex(), planned.java)
