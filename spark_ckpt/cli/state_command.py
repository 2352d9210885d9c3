"""`spark-ckpt state`."""

from __future__ import annotations

import click

from spark_ckpt.cli.options import Session, id_option, json_option, pass_session
from spark_ckpt.state.catalog import open_state


@click.command("state")
@click.argument("location")
@id_option
@json_option
@pass_session
def show_state(session: Session, location: str, checkpoint_id: int | None) -> None:
    """Show what state a checkpoint has: operators, their stores, and the types of their rows.

    LOCATION is the checkpointLocation of a query, as a path or URL. No row is read.

    \b
    Examples:
      spark-ckpt state /path/to/checkpointLocation
      spark-ckpt state s3://bucket/checkpointLocation --id 17 --json
    """
    session.output.state(open_state(location, checkpoint_id))
