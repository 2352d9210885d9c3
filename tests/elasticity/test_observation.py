"""Progress becomes an observation, whatever it lacks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql.streaming.listener import StreamingQueryProgress

from spark_ckpt.elasticity import Observation
from tests.elasticity.progress import idle, progress

KAFKA = [
    {"metrics": {"maxOffsetsBehindLatest": "30", "estimatedTotalBytesBehindLatest": "4096.5"}},
    {"metrics": {"maxOffsetsBehindLatest": "12"}},
    {"metrics": {}},
    {},
]


def test_everything_is_there() -> None:
    operators = [
        {"numShufflePartitions": 1, "numRowsTotal": 5, "memoryUsedBytes": 10},
        {"numShufflePartitions": 8, "numRowsTotal": 7, "memoryUsedBytes": 20},
    ]
    given = progress(
        6,
        rows=90,
        batch_ms=400,
        stateOperators=operators,
        sources=KAFKA,
        inputRowsPerSecond=90.0,
        processedRowsPerSecond=225.0,
    )
    assert Observation.of(given, cores=2, executors=1) == Observation(
        run_id="run-1",
        batch_id=6,
        partitions=8,
        cores=2,
        executors=1,
        rows=90,
        rows_per_s=90,
        processed_per_s=225,
        batch_ms=400,
        overhead_ms=200,
        backlog_rows=42,
        backlog_bytes=4096.5,
        state_rows=12,
        state_bytes=30,
    )


def test_all_but_the_batch_may_be_missing() -> None:
    assert Observation.of({"batchId": 3}, cores=None, executors=None) == Observation(None, 3)


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("inputRowsPerSecond", float("nan"), "rows_per_s"),
        ("processedRowsPerSecond", "fast", "processed_per_s"),
        ("numInputRows", None, "rows"),
        ("stateOperators", None, "partitions"),
        ("stateOperators", [None, {"numShufflePartitions": None}], "partitions"),
        ("sources", [{"metrics": None}], "backlog_rows"),
        ("durationMs", {"addBatch": 10}, "overhead_ms"),
    ],
)
def test_what_is_no_value_is_none(field: str, value: Any, name: str) -> None:
    found = Observation.of(progress(1, **{field: value, "batchDuration": None}), cores=1, executors=1)
    assert found is not None
    assert getattr(found, name) is None


def test_without_a_batch_there_is_no_observation() -> None:
    assert Observation.of(idle(4), cores=1, executors=1) is None
    assert Observation.of({}, cores=1, executors=1) is None


def test_pyspark_gives_such_a_dict() -> None:
    given = {
        **progress(2, sources=[]),
        "id": "c0ffee00-0000-4000-8000-000000000000",
        "runId": "c0ffee00-0000-4000-8000-000000000001",
        "name": None,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "inputRowsPerSecond": 10.0,
        "processedRowsPerSecond": 20.0,
        "sink": {"description": "s", "numOutputRows": 1},
    }
    operator = {
        "operatorName": "stateStoreSave",
        "numRowsTotal": 70,
        "numRowsUpdated": 1,
        "numRowsRemoved": 0,
        "allUpdatesTimeMs": 1,
        "allRemovalsTimeMs": 1,
        "commitTimeMs": 1,
        "memoryUsedBytes": 9000,
        "numRowsDroppedByWatermark": 0,
        "numShufflePartitions": 4,
        "numStateStoreInstances": 4,
        "customMetrics": {},
    }
    parsed = StreamingQueryProgress.fromJson(json.loads(json.dumps({**given, "stateOperators": [operator]})))
    found = Observation.of(parsed, cores=1, executors=1)
    assert found is not None
    assert found.run_id == "c0ffee00-0000-4000-8000-000000000001"
    assert (found.partitions, found.rows, found.batch_ms, found.overhead_ms) == (4, 100, 500, 250)
