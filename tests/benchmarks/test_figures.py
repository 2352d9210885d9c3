from __future__ import annotations

from typing import Any

import pytest

from benchmarks.object_store import Request
from benchmarks.stores.figures import (
    MEASURES,
    Batch,
    Memory,
    batch_of,
    batch_samples,
    bytes_samples,
    growth_samples,
    memory_samples,
    request_samples,
)


def operator(rows: int, updates: int, removals: int, commit: int) -> dict[str, Any]:
    return {
        "numRowsTotal": rows,
        "allUpdatesTimeMs": updates,
        "allRemovalsTimeMs": removals,
        "commitTimeMs": commit,
        "numRowsUpdated": 77,
    }


PROGRESS = {
    "timestamp": "2026-01-01T00:00:01.500Z",
    "batchDuration": 250,
    "stateOperators": [operator(10, 1, 2, 4), operator(20, 8, 16, 32)],
}


def test_adds_up_the_operators_of_a_batch() -> None:
    batch = batch_of(PROGRESS)
    assert batch == Batch(1767225601.5, 250, 9, 18, 36, 30)
    assert batch.state_ms == 63
    assert batch.ended == 1767225601.75


def test_has_a_figure_of_each_batch() -> None:
    other = batch_of(PROGRESS | {"batchDuration": 300, "stateOperators": [operator(1, 5, 0, 6)]})
    assert batch_samples([batch_of(PROGRESS), other]) == {
        "batch_ms": [250, 300],
        "state_ms": [63, 11],
        "updates_ms": [9, 5],
        "removals_ms": [18, 0],
        "commit_ms": [36, 6],
    }


def test_divides_memory_by_the_keys_that_came() -> None:
    samples = memory_samples(Memory(1000, 500), Memory(3000, 1100), 100)
    assert samples == {"heap_bytes": [20.0], "native_bytes": [6.0], "memory_bytes": [26.0]}


def test_relates_bytes_written_to_bytes_changed() -> None:
    ours = operator(1, 0, 0, 0) | {"customMetrics": {"ckptDeltaBytes": 100, "ckptBaseBytes": 250}}
    quiet = operator(1, 0, 0, 0) | {"customMetrics": {"ckptDeltaBytes": 50, "ckptBaseBytes": 0}}
    batches = [batch_of(PROGRESS | {"stateOperators": operators}) for operators in ([ours, quiet], [quiet])]
    assert [(batch.changed_bytes, batch.written_bytes) for batch in batches] == [(150, 400), (50, 50)]
    assert bytes_samples(batches) == {"written_ratio": [2.25]}
    assert bytes_samples([batch_of(PROGRESS)]) == {}


def test_memory_for_the_state_is_the_growth_of_heap_and_native_memory() -> None:
    assert growth_samples(Memory(2_000_000, 500_000), Memory(5_000_000, 1_500_000)) == {"state_mb": [4.0]}


@pytest.mark.parametrize(
    ("target", "is_of_log"),
    [
        ("/bucket/location/offsets/12?", True),
        ("/bucket/location/commits/.12.tmp?", True),
        ("/bucket/?list-type=2&prefix=location/commits/&delimiter=/", True),
        ("/bucket/location/metadata?", True),
        ("/bucket/location/ckpt/shared/merged-0?", False),
        ("/bucket/location/ckpt/chk-3/_metadata?", False),
        ("/bucket/location/ckpt/completed/00000000000000000003.json?", False),
        ("/bucket/location/state/0/1/2.delta?", False),
        ("/bucket/?delete", False),
    ],
)
def test_tells_requests_of_spark_from_those_of_the_state(target: str, is_of_log: bool) -> None:
    assert Request(0, target).is_of_log is is_of_log


def test_counts_requests_of_the_measured_batches() -> None:
    moments = [0.5, 1.0, 1.5, 2.0, 3.0, 3.5]
    requests = [Request(moment, "/bucket/location/offsets/1?" if moment == 2 else "/bucket/a") for moment in moments]
    assert request_samples(requests, 1.0, 3.0, 2) == {
        "requests": [2.0],
        "state_requests": [1.5],
        "write_requests": [0.0],
        "read_requests": [2.0],
    }


@pytest.mark.parametrize(
    ("method", "target", "price"),
    [
        ("PUT", "/bucket/a?", "write"),
        ("POST", "/bucket/?delete", "write"),
        ("GET", "/bucket?list-type=2&prefix=a/", "write"),
        ("GET", "/bucket/a?", "read"),
        ("HEAD", "/bucket/a?", "read"),
        ("DELETE", "/bucket/a?", "free"),
    ],
)
def test_a_listing_is_billed_as_a_write_and_a_deletion_not_at_all(method: str, target: str, price: str) -> None:
    assert Request(0, target, method).price == price


@pytest.mark.parametrize(
    "samples",
    [
        batch_samples([]),
        bytes_samples([Batch(0, 0, 0, 0, 0, 0, 1, 1)]),
        growth_samples(Memory(0, 0), Memory(1, 1)),
        memory_samples(Memory(0, 0), Memory(1, 1), 1),
        request_samples([], 0, 1, 1),
    ],
    ids=["batches", "bytes", "growth", "memory", "requests"],
)
def test_every_measure_has_a_title(samples: dict[str, list[float]]) -> None:
    assert samples.keys() <= MEASURES.keys()
