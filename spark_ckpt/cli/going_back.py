"""The result of `spark-ckpt rollback`, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spark_ckpt.cli.summary import count, human_size, plain
from spark_ckpt.operations.rollback import Rollback


def describe_rollback(rollback: Rollback) -> dict[str, Any]:
    """`{"location", "dry_run", "id", "batch_id", "version", "aside", "batches", "checkpoints", "moved", "bytes"}`."""
    return {
        "location": rollback.location,
        "dry_run": rollback.dry_run,
        "id": rollback.checkpoint.id,
        "batch_id": rollback.checkpoint.batch_id,
        "version": rollback.checkpoint.version,
        "aside": rollback.aside,
        "batches": list(rollback.batches),
        "checkpoints": list(rollback.checkpoints),
        "moved": list(rollback.moved),
        "bytes": rollback.size,
    }


def rollback_lines(rollback: Rollback) -> Iterator[str]:
    """Where the query goes on, and what became of the rest."""
    checkpoint = rollback.checkpoint
    goes = "would go" if rollback.dry_run else "goes"
    yield f"the query {goes} on from checkpoint {checkpoint.id}, with batch {checkpoint.batch_id + 1}"
    batches = _listed("batch", "batches", rollback.batches)
    undone = f"{batches} and {_listed('checkpoint', 'checkpoints', rollback.checkpoints)}"
    if rollback.dry_run:
        yield f"{undone} would be moved aside"
    else:
        files = f"{count(len(rollback.moved), 'file')}, {human_size(rollback.size)}"
        yield f"{undone} moved to {plain(rollback.location)}/{rollback.aside}: {files}"


def _listed(one: str, many: str, numbers: tuple[int, ...]) -> str:
    if not numbers:
        return f"no {one}"
    if len(numbers) == 1:
        return f"{one} {numbers[0]}"
    return f"{many} {numbers[0]} to {numbers[-1]}"
