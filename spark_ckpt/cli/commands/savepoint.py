"""`spark-ckpt savepoint`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import (
    Session,
    checkpoint_options,
    dry_run_option,
    json_option,
    pass_session,
    path_argument,
)
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.terminal import progress_bar
from spark_ckpt.figures import count, human_size
from spark_ckpt.location.file_system import storage_at
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.operations.copy import CheckpointCopy
from spark_ckpt.operations.savepoint import take_savepoint


@dataclass(frozen=True, slots=True)
class CopyResult(Result):
    """A copy of a checkpoint.

    Args:
        copy: source, target and size.
    """

    copy: CheckpointCopy

    def to_json(self) -> JsonObject:
        """The checkpoint, and the size of its copy."""
        return described("savepoint", self.copy, self.copy.checkpoint)

    def render(self) -> Iterator[str]:
        """The copied files."""
        yield self.line()

    def line(self) -> str:
        """The checkpoint, the target, and the number and size of the files."""
        copy, checkpoint = self.copy, self.copy.checkpoint
        files = f"{count(copy.files, 'file')}, {human_size(copy.size)}"
        did = "would be copied" if copy.dry_run else "copied"
        return f"checkpoint {checkpoint.id}, batch {checkpoint.batch_id}, {did} to {plain(copy.target)}: {files}"


@click.command("savepoint")
@path_argument("location")
@path_argument("target")
@checkpoint_options(default="the newest with a committed batch")
@dry_run_option
@json_option
@pass_session
def take_savepoint_of_query(
    session: Session, location: str, target: str, checkpoint_id: int | None, dry_run: bool
) -> None:
    """Copy a checkpoint into a self-contained savepoint.

    LOCATION is the checkpointLocation of a query, as a path or URL. The query may be running. TARGET is a new directory
    on any file system; _metadata, all state files and Spark's files are copied to it. All its paths are relative, so
    the savepoint can be moved, and it does not depend on LOCATION. The copy is read back in full. The file
    savepoint.json marks it as complete.

    `spark-ckpt restore` creates a checkpoint location from it. A query cannot start on the savepoint itself. Flink can
    load its _metadata.

    \b
    Exit status: 0 done, 1 failed, 5 Spark has not committed the batch of the checkpoint.

    \b
    Examples:
      spark-ckpt savepoint /data/query /backup/query-2026-03-01
      spark-ckpt savepoint s3://bucket/query s3://backup/query-17 --id 17
    """
    storage = CheckpointLocation.open(location).of_query()
    new = storage_at(target)
    with progress_bar("copying") as progress:
        copy = take_savepoint(storage, new, checkpoint_id, dry_run=dry_run, progress=progress)
    session.output.show(CopyResult(copy))
