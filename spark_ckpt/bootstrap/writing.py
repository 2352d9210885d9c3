"""Bootstrap of a query: its first checkpoint is written from rows."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spark_ckpt.bootstrap.errors import BootstrapRefusedError
from spark_ckpt.bootstrap.filling import fill_location
from spark_ckpt.bootstrap.new_location import NewQuery
from spark_ckpt.bootstrap.result import WrittenState
from spark_ckpt.bootstrap.row_sources import RowSource, problem_of
from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.config import PREFIX, PROVIDER_CLASS, PROVIDER_KEY
from spark_ckpt.driver_jvm.files import storage_of
from spark_ckpt.driver_jvm.objects import query_plans
from spark_ckpt.evolution.planned_query import PlannedQuery
from spark_ckpt.evolution.planning import plan_query, require_classic
from spark_ckpt.operations.offset_rules import why_not
from spark_ckpt.progress import Progress
from spark_ckpt.spark_files.entries import SHUFFLE_PARTITIONS, OffsetEntry
from spark_ckpt.spark_files.source_positions import FilePosition, positions_of
from spark_ckpt.state_writing.targets import Target, targets_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
_NAMED_SOURCES = "spark.sql.streaming.queryEvolution.enableSourceEvolution"


def write_state(
    query: DataFrame | DataStreamWriter,
    location: str | os.PathLike[str],
    rows: RowSource | Mapping[str, RowSource],
    *,
    output_mode: str | None = None,
    sources: Mapping[int, str | None] | None = None,
    watermark_ms: int = 0,
    settings: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    progress: Progress = lambda done, of: None,
) -> WrittenState:
    """Write the state with which a new query begins, into an empty checkpoint location.

    The query is planned, not started: no source is asked. The location then looks as if the query had committed one
    batch without input that left this state. Start the query there.

    Rows are those of de-duplications, aggregations, state variables, timers and arbitrary state by group. They have the
    columns that `read_state` returns, such as `key` and `value`, or the fields of key and value as columns of their
    own. For an aggregation, give the same aggregation over a batch `DataFrame`: its buffers become the state, so that
    the query continues as if it had seen that input. Other states begin empty. The rows of one state at a time are in
    the memory of this process.

    If it is interrupted, no query starts at the location until it is repeated.

    Args:
        query: the query, or its writer, in a classic session with the jar of spark-ckpt, configured as for its start.
        location: an empty checkpoint location, as a path or URL.
        rows: the rows if the query has one state that can be written, else those of each state by name: a state
            variable, `eventTimers` or `processingTimers` for timers, or `default`; with the operator's number in front
            where several operators have it, such as `0/default`.
        output_mode: output mode; by default that of the writer, or `append`.
        sources: offset at which a source begins, as Spark writes it, by its number; by default its own start.
        watermark_ms: watermark at which the query begins, in milliseconds since 1970 UTC.
        settings: settings of the query that begin with `spark.sql.streaming.stateStore.ckpt.`; by default those of the
            session.
        clock: source of time.
        progress: called with the number of states written and the total.

    Raises:
        BootstrapRefusedError: rows are given for no state of the query, or for one that cannot be written. Nothing was
            written.
        EditRowError: a row does not fit its state.
        RepeatedKeyError: two rows have the same key.
        KeyGroupTooLargeError: a key group has more than 1 GiB.
        QueryPlanError: Spark cannot plan the query.
        TargetNotEmptyError: the location is not empty.
        SettingError: a setting is invalid.
        StorageError: a file cannot be written.
    """
    frame: Any = query if hasattr(query, "sparkSession") else query._df
    spark, path, clock = frame.sparkSession, os.fspath(location), clock or SystemClock()
    require_classic(spark)
    entry = _entry(spark, watermark_ms, clock)
    planned = plan_query(query, output_mode, entry["conf"])
    offsets, problems = _offsets(planned, entry, sources or {})
    chosen = _chosen(planned, rows, problems)
    if problems:
        raise BootstrapRefusedError(path, problems)
    new = NewQuery(planned, offsets, int(spark.conf.get(_FORMAT, "1")), _partitions(entry), _settings(spark, settings))
    return replace(fill_location(storage_of(spark, path), new, chosen, clock, progress), location=path)


def _entry(spark: Any, watermark_ms: int, clock: Clock) -> dict[str, Any]:  # noqa: ANN401  (Py4J has no types)
    """Entry of the offset log with the settings that a start would record."""
    entry: dict[str, Any] = json.loads(query_plans(spark).newEntry(spark._jsparkSession, watermark_ms, clock.now_ms()))
    # Only a query that runs has the number of its own partitions (`MicroBatchExecution`, since Spark 4.2).
    conf = {key: value for key, value in entry["conf"].items() if value is not None}
    return {**entry, "conf": {SHUFFLE_PARTITIONS: spark.conf.get(SHUFFLE_PARTITIONS), **conf}}


def _partitions(entry: Mapping[str, Any]) -> int:
    return int(entry["conf"][SHUFFLE_PARTITIONS])


def _settings(spark: SparkSession, settings: Mapping[str, str] | None) -> Mapping[str, str]:
    own: Mapping[str, str] = spark.conf.getAll
    return {key: value for key, value in own.items() if key.startswith(PREFIX)} if settings is None else settings


def _offsets(
    planned: PlannedQuery, entry: Mapping[str, Any], sources: Mapping[int, str | None]
) -> tuple[OffsetEntry, list[str]]:
    """Entry of the offset log, and what is wrong with it."""
    conf, count = entry["conf"], len(planned.meaning.sources)
    problems = []
    if conf.get(PROVIDER_KEY) != PROVIDER_CLASS:
        problems.append("the session has another state-store provider. Build it with 'spark_ckpt.configure'")
    if conf.get(_NAMED_SOURCES) == "true":
        problems.append(f"the sources have names in the offset log. Write the state with {_NAMED_SOURCES}=false")
    for number, offset in sources.items():
        if not 0 <= number < count:
            problems.append(f"the query has no source {number}; it has {count}")
        elif offset is not None and (reason := _why_not(number, offset)) is not None:
            problems.append(reason)
    return OffsetEntry(1, entry, {str(number): sources.get(number) for number in range(count)}), problems


def _why_not(number: int, offset: str) -> str | None:
    if any(isinstance(position, FilePosition) for position in positions_of(offset)):
        return (
            f"source {number} reads files, and a new query has no log of those that it has read: it begins with all "
            "that are there. Leave files out with an option of the source, such as modifiedAfter"
        )
    return why_not(str(number), None, offset)


# ---- which rows are those of which state -----------------------------------------------------------------------------


def _chosen(
    planned: PlannedQuery, rows: RowSource | Mapping[str, RowSource], problems: list[str]
) -> dict[str, tuple[Target, RowSource]]:
    """States with rows, by their names with the operator."""
    targets = [target for store in planned.stores for target in targets_in(store.as_store(), store.with_ttl)]
    known = ", ".join(target.title for target in targets) or "none"
    if not isinstance(rows, Mapping):
        if len(targets) != 1:
            problems.append(f"say whose rows they are: {{name: rows}}. The states that can be written are: {known}")
            return {}
        rows = {targets[0].title: rows}
    chosen: dict[str, tuple[Target, RowSource]] = {}
    for name, source in rows.items():
        found = [target for target in targets if name in (target.name, target.title)]
        if len(found) != 1:
            reason = "several operators have" if found else "the query has no"
            problems.append(f"{reason} state {name} that can be written. Those that can are: {known}")
            continue
        target = found[0]
        problem = target.problem or problem_of(source, target)
        if problem is not None:
            problems.append(f"{target.title}: {problem}")
        chosen[target.title] = target, source
    return chosen
