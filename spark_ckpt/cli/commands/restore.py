"""`spark-ckpt restore`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import click

from spark_ckpt.cli.commands.savepoint import CopyResult
from spark_ckpt.cli.options import (
    Session,
    checkpoint_options,
    dry_run_option,
    json_option,
    pass_session,
    path_argument,
)
from spark_ckpt.cli.terminal import progress_bar
from spark_ckpt.location.file_system import storage_at
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.operations.restore import restore


@dataclass(frozen=True, slots=True)
class RestoreResult(CopyResult):
    """A new checkpoint location."""

    def render(self) -> Iterator[str]:
        """The copied files, and the first batch of the query there."""
        yield self.line()
        if not self.copy.dry_run:
            yield f"query {self.copy.query_id} starts there with batch {self.copy.checkpoint.batch_id + 1}"


@click.command("restore")
@path_argument("source")
@path_argument("new_location")
@checkpoint_options("source", default="the newest with a committed batch")
@click.option("--keep-query-id", is_flag=True, help="Move the query instead of forking it: keep its query id.")
@dry_run_option
@json_option
@pass_session
def restore_checkpoint(
    session: Session, source: str, new_location: str, checkpoint_id: int | None, keep_query_id: bool, dry_run: bool
) -> None:
    """Create a checkpoint location from a savepoint or checkpoint.

    SOURCE is a savepoint, the checkpointLocation of a query, or the directory of one of its checkpoints, such as
    ckpt/chk-17; a path or URL. The query may be running. NEW_LOCATION is a new directory; it shares no file with
    SOURCE. The copy is read back in full.

    Start the same query with checkpointLocation NEW_LOCATION and its own sink: it resumes after the batch of the
    checkpoint, independently of the original, under a new query id. With --keep-query-id the query moves to the new
    location and keeps its id; stop the original first.

    \b
    Exit status: 0 done, 1 failed, 5 Spark has not committed the batch of the checkpoint.

    \b
    Examples:
      spark-ckpt restore /backup/query-2026-03-01 /data/query-2
      spark-ckpt restore s3://bucket/query s3://bucket/experiment --id 17
      spark-ckpt restore /backup/query-2026-03-01 /data/query --keep-query-id
    """
    storage, checkpoint_id = CheckpointLocation.open(source).copy_source(checkpoint_id)
    new = storage_at(new_location)
    with progress_bar("copying") as progress:
        copy = restore(storage, new, checkpoint_id, keep_query_id=keep_query_id, dry_run=dry_run, progress=progress)
    session.output.show(RestoreResult(copy))
