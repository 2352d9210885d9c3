"""`spark-ckpt history`."""

from __future__ import annotations

import click

from spark_ckpt.cli.history import read_history, read_subtasks, select
from spark_ckpt.cli.options import Session, json_option, pass_session


@click.command("history")
@click.argument("location")
@click.option("--id", "checkpoint_id", type=click.IntRange(min=0), help="Everything about one checkpoint.")
@click.option("--subtasks", is_flag=True, help="With --id: a line for each subtask, the last to acknowledge last.")
@json_option
@pass_session
def show_history(session: Session, location: str, checkpoint_id: int | None, subtasks: bool) -> None:
    """Show what the last checkpoints of LOCATION took, and why some failed, oldest first.

    LOCATION is the checkpointLocation of a query, as a path or URL. The newest completed checkpoint carries the
    statistics, so a failure shows once a later checkpoint is complete.
    """
    if subtasks and checkpoint_id is None:
        raise click.UsageError("--subtasks needs --id")
    entries = read_history(location)
    if checkpoint_id is None:
        session.output.history(location, entries)
    else:
        by_subtask = read_subtasks(location, checkpoint_id) if subtasks else None
        session.output.history_entry(location, select(location, entries, checkpoint_id), by_subtask)
