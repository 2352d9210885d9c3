"""A changed query continues from the state of the earlier one, at the same location."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.driver_jvm.files import storage_of
from spark_ckpt.driver_jvm.objects import has_ended
from spark_ckpt.evolution.choices import Choices, SourceChoice
from spark_ckpt.evolution.in_place import evolve_in_place
from spark_ckpt.evolution.planning import plan_query
from spark_ckpt.evolution.result import Evolution
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.operations.restore import restore
from spark_ckpt.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


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
    place = path if target is None or dry_run else target
    done = evolve_in_place(
        CheckpointLocation(place, storage_of(spark, place), None),
        partial(plan_query, query, output_mode),
        choices,
        plan_earlier=None if earlier_query is None else partial(plan_query, earlier_query, None),
        settings=settings,
        force=force,
        dry_run=dry_run,
        clock=clock or SystemClock(),
        has_ended=partial(has_ended, spark),
        progress=progress,
    )
    return replace(done, location=path, new_location=target)
