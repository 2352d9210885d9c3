"""`spark-ckpt history`."""

from __future__ import annotations

import click

from spark_ckpt.cli.options import Session, json_option, pass_session
from spark_ckpt.cli.results.history import History, HistoryEntry, read_history, read_subtasks, select


@click.command("history")
@click.argument("location")
@click.option("--id", "checkpoint_id", type=click.IntRange(min=0), help="Show all statistics of this checkpoint.")
@click.option("--subtasks", is_flag=True, help="With --id: show each subtask, in the order of acknowledgement.")
@json_option
@pass_session
def show_history(session: Session, location: str, checkpoint_id: int | None, subtasks: bool) -> None:
    """Show recent checkpoint durations and failures.

    LOCATION is the checkpointLocation of a query, as a path or URL. Checkpoints are listed oldest first. The newest
    completed checkpoint carries the statistics, so a failure appears once a later checkpoint completes.

    DURATION is the time from the trigger to the last acknowledgement, COMPLETING the time from there until the
    checkpoint was durable, which only the next checkpoint can record.
    """
    if subtasks and checkpoint_id is None:
        raise click.UsageError("--subtasks needs --id")
    entries = read_history(location)
    if checkpoint_id is None:
        session.output.show(History(location, entries))
    else:
        by_subtask = read_subtasks(location, checkpoint_id) if subtasks else None
        session.output.show(HistoryEntry(location, select(location, entries, checkpoint_id), by_subtask))
