"""`spark-ckpt read`."""

from __future__ import annotations

import click

from spark_ckpt.cli.options import Session, id_option, json_option, pass_session
from spark_ckpt.cli.state_options import limit_option, store_options
from spark_ckpt.cli.state_rows import Exported, rows_of_scan
from spark_ckpt.state.reading import read_state
from spark_ckpt.state.views import Side


@click.command("read")
@click.argument("location")
@store_options
@click.option("--side", type=click.Choice(["left", "right"]), help="Of a join: the rows that this side keeps.")
@id_option
@click.option("--where", metavar="CONDITION", help="Rows that meet a condition only.")
@limit_option
@click.option("--to-parquet", metavar="FILE", help="Write all rows to a new Parquet file instead.")
@click.option("--to-delta", metavar="DIRECTORY", help="Write all rows to a new Delta table instead.")
@json_option
@pass_session
def read_rows(
    session: Session,
    location: str,
    operator: int | None,
    store: str | None,
    variable: str | None,
    side: Side | None,
    checkpoint_id: int | None,
    where: str | None,
    limit: int,
    to_parquet: str | None,
    to_delta: str | None,
) -> None:
    """Print the rows of the state that a query has, without Spark.

    LOCATION is the checkpointLocation of the query, as a path or URL. The columns are those of Spark's `statestore`
    data source; `state` shows what there is.

    A CONDITION compares columns with values and joins that with and, or, not: =, !=, <, <=, >, >=, in (...), is null.
    A field of a struct is key.user; a text stands between single quotes.

    \b
    Examples:
      spark-ckpt read /path/to/checkpointLocation
      spark-ckpt read /path/to/checkpointLocation --where "key.user = 'a' and value.count > 3"
      spark-ckpt read /path/to/checkpointLocation --operator 1 --side left --limit 0 --json
      spark-ckpt read /path/to/checkpointLocation --variable count --to-parquet count.parquet
    """
    if to_parquet and to_delta:
        raise click.UsageError("--to-parquet and --to-delta go to one place each: name one of them")
    scan = read_state(
        location, operator=operator, store=store, variable=variable, side=side, id=checkpoint_id, where=where
    )
    if to_parquet:
        session.output.export(Exported(scan, to_parquet, "parquet", scan.to_parquet(to_parquet)))
    elif to_delta:
        session.output.export(Exported(scan, to_delta, "delta", scan.to_delta(to_delta)))
    else:
        session.output.rows(rows_of_scan(scan, limit))
