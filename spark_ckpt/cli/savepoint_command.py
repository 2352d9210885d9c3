"""`spark-ckpt savepoint`."""

from __future__ import annotations

import click

from spark_ckpt.cli.options import Session, dry_run_option, json_option, pass_session
from spark_ckpt.cli.progress import progress_bar
from spark_ckpt.locations.file_system import storage_at
from spark_ckpt.locations.location import storage_of
from spark_ckpt.operations.savepoint import take_savepoint


@click.command("savepoint")
@click.argument("location")
@click.argument("target")
@click.option(
    "--id",
    "checkpoint_id",
    type=click.IntRange(min=0),
    help="Which checkpoint; the newest that Spark has committed unless given.",
)
@dry_run_option
@json_option
@pass_session
def take_savepoint_of_query(
    session: Session, location: str, target: str, checkpoint_id: int | None, dry_run: bool
) -> None:
    """Copy a checkpoint of LOCATION to TARGET, with all that going on from it needs. The query may be running.

    LOCATION is the checkpointLocation of a query, as a path or URL. TARGET is a new directory, also on another file
    system. It has the _metadata, all state files and what Spark needs; no path leads out of it, so that it may be moved
    and outlives LOCATION. Everything is read back. It is complete when it has the file savepoint.json.

    `spark-ckpt restore` makes a checkpoint location of it. No query can be started on the savepoint itself. Flink can
    load its _metadata.

    \b
    Exit status: 0 done, 1 failed, 5 Spark has not committed the batch of the checkpoint.

    \b
    Examples:
      spark-ckpt savepoint /data/query /backup/query-2026-03-01
      spark-ckpt savepoint s3://bucket/query s3://backup/query-17 --id 17
    """
    storage = storage_of(location)
    new = storage_at(target)
    with progress_bar("copying") as progress:
        copy = take_savepoint(storage, new, checkpoint_id, dry_run=dry_run, progress=progress)
    session.output.savepoint(copy)
