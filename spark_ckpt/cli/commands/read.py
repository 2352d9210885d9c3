"""`spark-ckpt read`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import (
    Session,
    checkpoint_options,
    flink_files_options,
    json_option,
    limit_option,
    pass_session,
    path_argument,
    store_options,
)
from spark_ckpt.cli.output import Part, Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.results.state import cell, field_of, fields_of, rows_json, scan_json, title_of
from spark_ckpt.cli.terminal import Column, Table
from spark_ckpt.figures import count
from spark_ckpt.reading import read_state
from spark_ckpt.state.read import StateScan
from spark_ckpt.state.scan import Scan
from spark_ckpt.state.views import Side


@dataclass(frozen=True, slots=True, eq=False)
class RowsResult(Result):
    """The first rows of a scan.

    Args:
        scan: the scan.
        rows: the rows, by column.
        has_more: True if the scan has more rows.
    """

    has_state_rows: ClassVar[bool] = True

    scan: Scan
    rows: list[JsonObject]
    has_more: bool

    @classmethod
    def of(cls, scan: Scan, limit: int) -> RowsResult:
        """The first `limit` rows of a scan, or all if `limit` is 0."""
        rows: list[JsonObject] = []
        for batch in scan.batches():
            rows += rows_json(batch.slice(0, limit + 1 - len(rows)) if limit else batch)
            if limit and len(rows) > limit:
                return cls(scan, rows[:limit], True)
        return cls(scan, rows, False)

    def to_json(self) -> JsonObject:
        """The view of the state, its columns, and the rows."""
        return described(
            "read" if isinstance(self.scan, StateScan) else "flink_read",
            self,
            **scan_json(self.scan),
            columns=self.scan.schema,
        )

    def render(self) -> Iterator[Part]:
        """A table with a column for each field of the structs, and the number of rows."""
        names = fields_of(self.scan.schema)
        table = Table([Column(title_of(*name)) for name in names])
        for row in self.rows:
            table.add_row(*(cell(field_of(row[name], part)) for name, part in names))
        yield table
        shown = count(len(self.rows), "row")
        yield f"{shown} shown; there are more (see --limit)" if self.has_more else shown


@dataclass(frozen=True, slots=True, eq=False)
class ExportResult(Result):
    """Rows written to a file or table.

    Args:
        scan: the rows.
        target: the file or table.
        kind: `parquet` or `delta`.
        rows: number of rows.
    """

    scan: Scan
    target: str
    kind: str
    rows: int

    def to_json(self) -> JsonObject:
        """The view of the state, and the target."""
        return {
            **scan_json(self.scan),
            "target": self.target,
            "target_format": self.kind,
            "row_count": self.rows,
        }

    def render(self) -> Iterator[str]:
        """The number of rows and the target."""
        what = "Delta table" if self.kind == "delta" else "Parquet file"
        yield f"{count(self.rows, 'row')} written to {what} {plain(self.target)}"


@click.command("read")
@path_argument("location")
@store_options
@click.option("--side", type=click.Choice(["left", "right"]), help="Read the rows of one side of a join.")
@checkpoint_options()
@click.option("--where", metavar="CONDITION", help="Read only rows that match the condition.")
@limit_option
@click.option("--to-parquet", metavar="FILE", help="Write all rows to a new Parquet file instead.")
@click.option("--to-delta", metavar="DIRECTORY", help="Write all rows to a new Delta table instead.")
@flink_files_options
@json_option
@pass_session
def read_rows(
    session: Session,
    location: str,
    operator: int | str | None,
    store: str | None,
    variable: str | None,
    side: Side | None,
    checkpoint_id: int | None,
    where: str | None,
    limit: int,
    to_parquet: str | None,
    to_delta: str | None,
    moved: list[tuple[str, str]],
    allow_outside: bool,
) -> None:
    """Print rows of state, without Spark and Flink.

    LOCATION is the checkpointLocation of a query, or a checkpoint, savepoint or job directory of Flink; a path or URL.
    Columns are named as in Spark's `statestore` data source. `spark-ckpt state` lists operators, stores and states.

    A CONDITION compares columns with values: =, !=, <, <=, >, >=, in (...), is null. Combine comparisons with and, or,
    not. Write struct fields as key.user, strings in single quotes, and other names in backquotes.

    \b
    Examples:
      spark-ckpt read /path/to/checkpointLocation
      spark-ckpt read /path/to/checkpointLocation --where "key.user = 'a' and value.count > 3"
      spark-ckpt read /path/to/checkpointLocation --operator 1 --side left --limit 0 --json
      spark-ckpt read /path/to/checkpointLocation --variable count --to-parquet count.parquet
      spark-ckpt read /path/to/savepoint-4f1e2a --operator my-uid --variable counts --where "key = 'a'"
    """
    if to_parquet and to_delta:
        raise click.UsageError("--to-parquet and --to-delta are mutually exclusive")
    scan = read_state(
        location,
        operator=operator,
        store=store,
        variable=variable,
        side=side,
        id=checkpoint_id,
        where=where,
        moved=moved,
        allow_outside=allow_outside,
    )
    if to_parquet:
        session.output.show(ExportResult(scan, to_parquet, "parquet", scan.to_parquet(to_parquet)))
    elif to_delta:
        session.output.show(ExportResult(scan, to_delta, "delta", scan.to_delta(to_delta)))
    else:
        session.output.show(RowsResult.of(scan, limit))
