"""What a batch of a running query shows of its load."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Observation:
    """One batch. What Spark does not tell is None.

    Args:
        run_id: run of the query.
        batch_id: the batch.
        partitions: number of partitions of its stateful operators, the largest one if they differ.
        cores: cores of the application.
        executors: its executors; 1 in local mode.
        rows: input rows.
        rows_per_s: input rows per second since the batch before.
        processed_per_s: input rows per second of the batch's duration.
        batch_ms: duration of the batch, in milliseconds.
        overhead_ms: its part before and after the tasks: planning, offsets, commit.
        backlog_rows: rows that still wait, in Kafka's worst partition, summed over the sources.
        backlog_bytes: estimated bytes that still wait in all sources.
        state_rows: rows in all stores.
        state_bytes: memory of all stores.
    """

    run_id: str | None
    batch_id: int
    partitions: int | None = None
    cores: int | None = None
    executors: int | None = None
    rows: int | None = None
    rows_per_s: float | None = None
    processed_per_s: float | None = None
    batch_ms: float | None = None
    overhead_ms: float | None = None
    backlog_rows: float | None = None
    backlog_bytes: float | None = None
    state_rows: int | None = None
    state_bytes: int | None = None

    @classmethod
    def of(cls, progress: Mapping[str, Any], *, cores: int | None, executors: int | None) -> Observation | None:
        """The batch of a query's progress; None if no batch has run, as in the progress of an idle query.

        Args:
            progress: a `StreamingQueryProgress` as a dict, such as `query.lastProgress`.
            cores: cores of the application.
            executors: its executors.
        """
        durations = _mapping(progress.get("durationMs"))
        batch_id = _integer(progress.get("batchId"))
        if batch_id is None or (durations and "addBatch" not in durations):
            return None
        operators = _mappings(progress.get("stateOperators"))
        sources = [_mapping(source.get("metrics")) for source in _mappings(progress.get("sources"))]
        run_id = progress.get("runId")
        batch_ms = _number(durations.get("triggerExecution", progress.get("batchDuration")))
        tasks_ms = _number(durations.get("addBatch"))
        return cls(
            run_id=None if run_id is None else str(run_id),
            batch_id=batch_id,
            partitions=max(_integers(operators, "numShufflePartitions"), default=None),
            cores=cores,
            executors=executors,
            rows=_integer(progress.get("numInputRows")),
            rows_per_s=_number(progress.get("inputRowsPerSecond")),
            processed_per_s=_number(progress.get("processedRowsPerSecond")),
            batch_ms=batch_ms,
            overhead_ms=None if batch_ms is None or tasks_ms is None else max(0.0, batch_ms - tasks_ms),
            backlog_rows=_sum(_numbers(sources, "maxOffsetsBehindLatest")),
            backlog_bytes=_sum(_numbers(sources, "estimatedTotalBytesBehindLatest")),
            state_rows=_sum(_integers(operators, "numRowsTotal")),
            state_bytes=_sum(_integers(operators, "memoryUsedBytes")),
        )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, (list, tuple)) else []


def _number(value: object) -> float | None:
    """A finite number, also from text: metrics of sources are text."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _integer(value: object) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _numbers(fields: Iterable[Mapping[str, Any]], name: str) -> list[float]:
    return [number for each in fields if (number := _number(each.get(name))) is not None]


def _integers(fields: Iterable[Mapping[str, Any]], name: str) -> list[int]:
    return [int(number) for number in _numbers(fields, name)]


def _sum(values: Sequence[Any]) -> Any:  # noqa: ANN401  (of the type of the values)
    return sum(values) if values else None
