"""Progress of queries as PySpark gives it."""

from __future__ import annotations

from typing import Any


def progress(
    batch_id: int, partitions: int = 4, rows: int = 100, batch_ms: float = 500, **others: Any
) -> dict[str, Any]:
    """Progress of one batch of a query with one stateful operator."""
    return {
        "runId": "run-1",
        "batchId": batch_id,
        "batchDuration": batch_ms,
        "numInputRows": rows,
        "durationMs": {"triggerExecution": batch_ms, "addBatch": batch_ms / 2},
        "stateOperators": [{"numShufflePartitions": partitions, "numRowsTotal": 70, "memoryUsedBytes": 9000}],
        "sources": [],
        **others,
    }


def idle(batch_id: int) -> dict[str, Any]:
    """Progress of a query without new input, which names the next batch."""
    return progress(batch_id, rows=0, durationMs={"triggerExecution": 3, "latestOffset": 3})
