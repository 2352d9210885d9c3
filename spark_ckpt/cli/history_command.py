"""`spark-ckpt history`."""

from __future__ import annotations

import click

from spark_ckpt.cli.history import read_history, select
from spark_ckpt.cli.options import Session, json_option, pass_session


@click.command("history")
@click.argument("location")
@click.option("--id", "checkpoint_id", type=click.IntRange(min=0), help="Everything about one checkpoint.")
@json_option
@pass_session
def show_history(session: Session, location: str, checkpoint_id: int | None) -> None:
    """Show what the last checkpoints of LOCATION took, and why some failed, oldest first.

    LOCATION is the checkpointLocation of a query, as a path or URL. The newest completed checkpoint carries the
    statistics, so a failure shows once a later checkpoint is complete.
    """
    entries = read_history(location)
    if checkpoint_id is None:
        session.output.history(location, entries)
    else:
        session.output.history_entry(location, select(location, entries, checkpoint_id))
