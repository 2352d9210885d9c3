"""`spark-ckpt rescale`."""

from __future__ import annotations

import click

from spark_ckpt.cli.options import Session, dry_run_option, json_option, pass_session, settings_option
from spark_ckpt.cli.progress import progress_bar
from spark_ckpt.locations.location import storage_of
from spark_ckpt.operations.rescaling import rescale


@click.command("rescale")
@click.argument("location")
@click.option("--partitions", type=click.IntRange(min=1), required=True, help="Number of partitions from now on.")
@click.option("--force", is_flag=True, help="Go on although a driver may be running; if one is, it is shut out.")
@settings_option
@dry_run_option
@json_option
@pass_session
def rescale_query(
    session: Session, location: str, partitions: int, force: bool, settings: dict[str, str], dry_run: bool
) -> None:
    """Change the number of partitions of a stopped query, whatever the size of its state.

    LOCATION is the checkpointLocation of the query, as a path or URL. Stop the query between two batches first. No
    state file is read or changed: a new checkpoint assigns those that are there to the new partitions, and Spark's logs
    get one batch that reads nothing. Then start the query as before; it takes the new number from its logs, whatever
    spark.sql.shuffle.partitions says.

    Any number works that is not larger than the number of key groups (maxParallelism). One that divides it is read
    fastest by the first start; with another one, partitions read parts of each other's files until they have written
    files of their own.

    A driver that may be running is told by the last claim in the log: its process is looked for if it ran on this host;
    of another host nothing is known, and the command refuses. With --force it goes on; if the query runs all the same,
    one of both fails, and nothing is lost.

    If the command is interrupted, Spark refuses to start the query: run the same command again, and it goes on.

    \b
    Exit status: 0 done, 1 failed, 4 a driver may be running, 5 cannot be done here; with 4 and 5 nothing was changed.

    \b
    Examples:
      spark-ckpt rescale /checkpoints/orders --partitions 400 --dry-run
      spark-ckpt rescale s3://bucket/checkpoints/orders --partitions 100 --json
    """
    storage = storage_of(location)
    with progress_bar("assigning") as progress:
        rescaling = rescale(storage, partitions, settings=settings, force=force, dry_run=dry_run, progress=progress)
    session.output.rescaling(rescaling)
