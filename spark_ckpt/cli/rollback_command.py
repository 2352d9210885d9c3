"""`spark-ckpt rollback`."""

from __future__ import annotations

import click

from spark_ckpt.cli.options import Session, dry_run_option, json_option, pass_session, settings_option
from spark_ckpt.cli.progress import progress_bar
from spark_ckpt.locations.location import storage_of
from spark_ckpt.operations.rollback import roll_back


@click.command("rollback")
@click.argument("location")
@click.option("--id", "checkpoint_id", type=click.IntRange(min=0), required=True, help="The checkpoint to go back to.")
@click.option("--force", is_flag=True, help="Go on although a driver may be running; if one is, it is shut out.")
@settings_option
@dry_run_option
@json_option
@pass_session
def roll_back_query(
    session: Session, location: str, checkpoint_id: int, force: bool, settings: dict[str, str], dry_run: bool
) -> None:
    """Make an earlier checkpoint of LOCATION the newest, so that the query goes on from there when it starts again.

    LOCATION is the checkpointLocation of a query that is stopped, as a path or URL. --id is a number that
    `spark-ckpt list` shows; the checkpoint is read in full first. Later entries of Spark's offsets and commits, later
    checkpoints and their state files are moved to LOCATION/rolled-back/, and nothing is deleted. What the query has
    written to its sink stays there: a sink that knows batches by their numbers ignores those that are repeated.

    A driver that may be running is told by the last claim in the log: its process is looked for if it ran on this host;
    of another host nothing is known, and the command refuses. With --force it claims the location all the same, and a
    driver that runs can complete nothing more.

    If the command is interrupted, run it again.

    \b
    Exit status: 0 done, 1 failed, 4 a driver may be running, 5 cannot be done here; with 4 and 5 nothing was changed.

    \b
    Examples:
      spark-ckpt rollback /data/query --id 17 --dry-run
      spark-ckpt rollback s3://bucket/query --id 17 --force
    """
    storage = storage_of(location)
    with progress_bar("reading") as progress:
        rollback = roll_back(storage, checkpoint_id, settings=settings, force=force, dry_run=dry_run, progress=progress)
    session.output.rollback(rollback)
