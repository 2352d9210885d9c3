"""`spark-ckpt list`."""

from __future__ import annotations

import click

from spark_ckpt.cli.options import Session, json_option, pass_session
from spark_ckpt.locations.location import completed_checkpoints


@click.command("list")
@click.argument("location")
@json_option
@pass_session
def list_checkpoints(session: Session, location: str) -> None:
    """List the completed checkpoints of LOCATION, oldest first.

    LOCATION is the checkpointLocation of a query, as a path or URL.
    """
    session.output.checkpoints(location, completed_checkpoints(location))
