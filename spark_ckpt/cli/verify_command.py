"""`spark-ckpt verify`."""

from __future__ import annotations

import click

from spark_ckpt.cli.options import Session, json_option, pass_session
from spark_ckpt.cli.progress import progress_bar
from spark_ckpt.cli.statuses import DAMAGED
from spark_ckpt.locations.location import storage_of_copy
from spark_ckpt.operations.verifying import verify


@click.command("verify")
@click.argument("location")
@click.option("--id", "checkpoint_id", type=click.IntRange(min=0), help="Read this checkpoint, and no other.")
@click.option("--all", "everything", is_flag=True, help="Read all retained checkpoints.")
@json_option
@pass_session
def verify_checkpoints(session: Session, location: str, checkpoint_id: int | None, everything: bool) -> None:
    """Read the checkpoints of LOCATION to the last byte, and tell what is damaged and what can still be restored.

    LOCATION is the checkpointLocation of a query, or a savepoint, as a path or URL. The query may be running. Unless
    told otherwise the newest checkpoint is read, and if that is damaged those before it until one is whole.

    Checked are the log of completed checkpoints, the digest of _metadata, the checksum of each block of state, its
    place, key group and version, the number of rows that all of them add up to, and that Spark's offsets and commits
    say the same.

    \b
    Exit status: 0 all is whole, 1 it could not be found out, 3 something is damaged.

    \b
    Examples:
      spark-ckpt verify /data/query
      spark-ckpt verify s3://bucket/query --all --json
    """
    if everything and checkpoint_id is not None:
        raise click.UsageError("--all and --id exclude one another")
    storage, checkpoint_id = storage_of_copy(location, checkpoint_id)
    with progress_bar("reading") as progress:
        verification = verify(storage, checkpoint_id, everything=everything, progress=progress)
    session.output.verification(verification)
    if not verification.is_whole:
        click.get_current_context().exit(DAMAGED)
