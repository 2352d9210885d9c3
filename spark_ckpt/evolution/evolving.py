"""A changed query continues from the state of the earlier one, at the same location."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.driver_jvm.files import address_of, storage_of
from spark_ckpt.driver_jvm.objects import has_ended
from spark_ckpt.evolution.choices import Choices
from spark_ckpt.evolution.in_place import evolve_in_place
from spark_ckpt.evolution.planning import plan_query
from spark_ckpt.evolution.result import Evolution
from spark_ckpt.evolution.spark_tasks import SparkTasks
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.operations.restore import restore
from spark_ckpt.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def evolve(
    query: DataFrame | DataStreamWriter,
    location: str | os.PathLike[str],
    *,
    output_mode: str | None = None,
    new_location: str | os.PathLike[str] | None = None,
    earlier_query: DataFrame | DataStreamWriter | None = None,
    settings: Mapping[str, str] | None = None,
    force: bool = False,
    dry_run: bool = False,
    clock: Clock | None = None,
    progress: Progress = lambda done, of: None,
    **answers: Any,  # noqa: ANN401  (of `Choices`)
) -> Evolution:
    """Let a changed query continue from the state and the positions of an earlier one.

    The changed query is planned, not started, and its state is matched with the recorded meaning of the earlier one:
    grouping keys and aggregate functions down to the columns of the sources. Where types or columns change, the state
    is rewritten; other state keeps its files. What cannot be right is refused, with all reasons at once; what the plans
    do not tell is asked.

    Spark's logs get two batches without input. The id of the query and the numbers of its batches stay, so that sinks
    continue. A rollback to a checkpoint from before brings the earlier query back.

    Args:
        query: the changed query, or its writer, in a classic session with the jar of spark-ckpt.
        location: checkpoint location of the earlier query, as a path or URL.
        output_mode: output mode; by default that of the writer, or `append`.
        new_location: an empty location for the changed query; by default it continues at `location`.
        earlier_query: the earlier query, if its checkpoint does not say what its state means.
        settings: settings of the query that begin with `spark.sql.streaming.stateStore.ckpt.`; required if its
            completed checkpoints are in ZooKeeper.
        force: True to proceed although a driver is running, or may be running elsewhere.
        dry_run: True to check everything but the values, and write nothing.
        clock: source of time.
        progress: called with the number of stores done and the total.
        answers: `functions`, `initial`, `keys`, `values`, `operators`, `sources` and `drop`, as in
            `spark_ckpt.evolution.Choices`: `functions={"avg(w)": None}, sources={1: None}`.

    Raises:
        EvolutionRefusedError: the changed query cannot continue, or not without an answer. Has all reasons.
        EvolutionValueError: a row has a value that its new type does not have. Nothing was changed.
        QueryPlanError: Spark cannot plan the query.
        TargetNotEmptyError: the new location is not empty.
        LocationInUseError: see `force`.
        SparkCkptError: as `begin_change` and `Change.write` raise.
    """
    frame: Any = query if hasattr(query, "sparkSession") else query._df
    spark, source = frame.sparkSession, os.fspath(location)
    in_place = partial(
        evolve_in_place,
        plan=partial(plan_query, query, output_mode),
        choices=Choices(**answers),
        plan_earlier=None if earlier_query is None else partial(plan_query, earlier_query, None),
        settings=settings,
        clock=clock or SystemClock(),
        has_ended=partial(has_ended, spark),
        progress=progress,
    )
    place = _location(spark, source)
    if new_location is None:
        return in_place(place, force=force, dry_run=dry_run, tasks=_tasks(spark, source))
    target = os.fspath(new_location)
    done = in_place(place, force=force, dry_run=True)  # before anything is copied
    if not dry_run:
        copy = _location(spark, target)
        restore(place.storage, copy.storage, keep_query_id=True)
        done = in_place(copy, force=True, dry_run=False, tasks=_tasks(spark, target))
    return replace(done, location=source, new_location=target)


def _location(spark: SparkSession, path: str) -> CheckpointLocation:
    return CheckpointLocation(path, storage_of(spark, path), None)


def _tasks(spark: SparkSession, path: str) -> SparkTasks:
    return SparkTasks(spark.sparkContext, *address_of(spark, path))
