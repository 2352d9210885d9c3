"""The results of `spark-ckpt savepoint` and `restore`, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spark_ckpt.cli.summary import count, human_size, plain
from spark_ckpt.operations.copying import CheckpointCopy


def describe_copy(copy: CheckpointCopy) -> dict[str, Any]:
    """`{"source", "target", "dry_run", "id", "batch_id", "version", "query_id", "files", "bytes"}`."""
    return {
        "source": copy.source,
        "target": copy.target,
        "dry_run": copy.dry_run,
        "id": copy.checkpoint.id,
        "batch_id": copy.checkpoint.batch_id,
        "version": copy.checkpoint.version,
        "query_id": copy.query_id,
        "files": copy.files,
        "bytes": copy.size,
    }


def savepoint_lines(copy: CheckpointCopy) -> Iterator[str]:
    """What was copied where."""
    yield _line(copy)


def restored_lines(copy: CheckpointCopy) -> Iterator[str]:
    """What was copied where, and which query goes on from it."""
    yield _line(copy)
    if not copy.dry_run:
        yield f"query {copy.query_id} begins there with batch {copy.checkpoint.batch_id + 1}"


def _line(copy: CheckpointCopy) -> str:
    checkpoint = copy.checkpoint
    files = f"{count(copy.files, 'state file' if copy.dry_run else 'file')}, {human_size(copy.size)}"
    did = "would be copied" if copy.dry_run else "copied"
    return f"checkpoint {checkpoint.id}, batch {checkpoint.batch_id}, {did} to {plain(copy.target)}: {files}"
