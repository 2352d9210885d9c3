"""The result of `spark-ckpt savepoint`, and most of that of `restore`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spark_ckpt.cli.formatting import count, human_size, plain
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.operations.copy import CheckpointCopy


@dataclass(frozen=True, slots=True)
class CopyResult(Result):
    """A copy of a checkpoint.

    Args:
        copy: its source and target, and the size.
    """

    copy: CheckpointCopy

    def to_json(self) -> JsonObject:
        """`{"source", "target", "dry_run", "id", "batch_id", "version", "query_id", "files", "bytes"}`."""
        copy = self.copy
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

    def render(self) -> Iterator[str]:
        """The files copied."""
        yield self.line()

    def line(self) -> str:
        """The checkpoint, the target, and the number and size of the files."""
        copy, checkpoint = self.copy, self.copy.checkpoint
        files = f"{count(copy.files, 'file')}, {human_size(copy.size)}"
        did = "would be copied" if copy.dry_run else "copied"
        return f"checkpoint {checkpoint.id}, batch {checkpoint.batch_id}, {did} to {plain(copy.target)}: {files}"
