"""`spark-ckpt restore`."""

from __future__ import annotations

import click

from spark_ckpt.cli.options import Session, dry_run_option, json_option, pass_session
from spark_ckpt.cli.progress import progress_bar
from spark_ckpt.locations.file_system import storage_at
from spark_ckpt.locations.location import storage_of_copy
from spark_ckpt.operations.restoring import restore


@click.command("restore")
@click.argument("source")
@click.argument("new_location")
@click.option(
    "--id",
    "checkpoint_id",
    type=click.IntRange(min=0),
    help="Which checkpoint of a location; the newest that Spark has committed unless given.",
)
@click.option("--keep-query-id", is_flag=True, help="It is the same query in another place, and not a second one.")
@dry_run_option
@json_option
@pass_session
def restore_checkpoint(
    session: Session, source: str, new_location: str, checkpoint_id: int | None, keep_query_id: bool, dry_run: bool
) -> None:
    """Make the checkpoint location NEW_LOCATION from a savepoint or a checkpoint; a query goes on there.

    SOURCE is a savepoint, the checkpointLocation of a query, which may be running, or the directory ckpt/chk-17 of one
    checkpoint in it; a path or URL. NEW_LOCATION is a new directory, and shares nothing with SOURCE. Everything is read
    back.

    Start the same query with checkpointLocation NEW_LOCATION and a sink of its own: it goes on after the batch of the
    checkpoint, beside the other one. Spark gets a new id of the query, unless --keep-query-id says that it is the same
    query in another place; then stop the other one.

    \b
    Exit status: 0 done, 1 failed, 5 Spark has not committed the batch of the checkpoint.

    \b
    Examples:
      spark-ckpt restore /backup/query-2026-03-01 /data/query-2
      spark-ckpt restore s3://bucket/query s3://bucket/experiment --id 17
      spark-ckpt restore /backup/query-2026-03-01 /data/query --keep-query-id
    """
    storage, checkpoint_id = storage_of_copy(source, checkpoint_id)
    new = storage_at(new_location)
    with progress_bar("copying") as progress:
        copy = restore(storage, new, checkpoint_id, keep_query_id=keep_query_id, dry_run=dry_run, progress=progress)
    session.output.restored(copy)
