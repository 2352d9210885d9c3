"""`spark-ckpt diff`."""

from __future__ import annotations

import click

from spark_ckpt.cli.options import Session, json_option, pass_session
from spark_ckpt.cli.state_options import limit_option, store_options
from spark_ckpt.cli.state_rows import rows_of_diff
from spark_ckpt.state.diffing import diff_state


@click.command("diff")
@click.argument("location")
@click.argument("before", type=click.IntRange(min=0))
@click.argument("after", type=click.IntRange(min=0))
@store_options
@limit_option
@json_option
@pass_session
def diff_checkpoints(
    session: Session,
    location: str,
    before: int,
    after: int,
    operator: int | None,
    store: str | None,
    variable: str | None,
    limit: int,
) -> None:
    """Print what changed in the state of a query from checkpoint BEFORE to checkpoint AFTER, without Spark.

    LOCATION is the checkpointLocation of the query, as a path or URL. All changes are counted, whatever is printed.
    Only key groups whose files differ are read.

    \b
    Examples:
      spark-ckpt diff /path/to/checkpointLocation 16 17
      spark-ckpt diff /path/to/checkpointLocation 2 17 --operator 1 --store left-keyWithIndexToValue --limit 0 --json
    """
    difference = diff_state(location, before, after, operator=operator, store=store, variable=variable)
    session.output.difference(rows_of_diff(difference, limit))
