"""`spark-ckpt diff`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import click
import pyarrow as pa

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import (
    Session,
    flink_files_options,
    id_or_tag,
    json_option,
    limit_option,
    pass_session,
    path_argument,
    store_options,
)
from spark_ckpt.cli.output import Part, Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import Json, JsonObject
from spark_ckpt.cli.results.sources import POSITIONS, change_json, change_table
from spark_ckpt.cli.results.state import (
    cell,
    field_of,
    fields_of,
    flink_json,
    rows_json,
    title_of,
    view_json,
)
from spark_ckpt.cli.terminal import Column, Table
from spark_ckpt.flink.tables.diff import FlinkDiff, diff_flink_state
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.location.selecting import selected_id
from spark_ckpt.state.diff import CHANGES, StateDiff, diff_state
from spark_ckpt.state.source_changes import PositionChange


@dataclass(frozen=True, slots=True, eq=False)
class DiffResult(Result):
    """The first changes of a diff.

    Args:
        diff: the diff.
        rows: the changes, by column.
        counts: number of changes by kind.
        positions: the changed positions of the sources.
        position_counts: number of changed positions by kind.
    """

    has_state_rows: ClassVar[bool] = True

    diff: StateDiff
    rows: list[JsonObject]
    counts: dict[str, int]
    positions: list[PositionChange]
    position_counts: dict[str, int]

    @classmethod
    def of(cls, diff: StateDiff, limit: int) -> DiffResult:
        """The first `limit` changes of rows, and of positions, or all if `limit` is 0. All changes are counted."""
        rows, counts = _first(diff.batches(), limit)
        positions = list(diff.source_changes())
        position_counts = dict.fromkeys(CHANGES, 0)
        for change in positions:
            position_counts[change.change] += 1
        return cls(diff, rows, counts, positions[: limit or None], position_counts)

    def to_json(self) -> JsonObject:
        """The view of the state, its columns, and the changes of rows and source positions."""
        diff = self.diff
        return described(
            "diff",
            self,
            **view_json(diff.view_after, diff.after),
            before_id=diff.before.found.metadata.checkpoint_id,
            columns=diff.schema,
            changes=self.rows,
            source_counts=self.position_counts,
            source_changes=[change_json(change) for change in self.positions],
        )

    def render(self) -> Iterator[Part]:
        """A table of the changed fields, and the number of changes; then those of the positions of the sources."""
        if self.rows:
            keys = [field.name for field in self.diff.schema.field("key").type]
            table = Table([Column("CHANGE"), *(Column(f"key.{key}") for key in keys), Column("VALUE")])
            for row in self.rows:
                change = _changed(row["before"], row["after"])
                table.add_row(str(row["change"]), *(cell(field_of(row["key"], key)) for key in keys), change)
            yield table
        yield _total(self.counts, len(self.rows))
        if self.positions:
            yield POSITIONS
            yield change_table(self.positions)
            yield _total(self.position_counts, len(self.positions))


@dataclass(frozen=True, slots=True, eq=False)
class FlinkDiffResult(Result):
    """The first changes of a diff of Flink's state.

    Args:
        diff: the diff.
        rows: the changes, by column.
        counts: number of changes by kind.
    """

    has_state_rows: ClassVar[bool] = True

    diff: FlinkDiff
    rows: list[JsonObject]
    counts: dict[str, int]

    @classmethod
    def of(cls, diff: FlinkDiff, limit: int) -> FlinkDiffResult:
        """The first `limit` changes, or all if `limit` is 0. All changes are counted."""
        return cls(diff, *_first(diff.batches(), limit))

    def to_json(self) -> JsonObject:
        """The state, its columns, and the changes of rows."""
        diff = self.diff
        return described(
            "flink_diff",
            self,
            **flink_json(diff.state_after, diff.after),
            before_id=diff.before.metadata.checkpoint_id,
            columns=diff.schema,
            changes=self.rows,
        )

    def render(self) -> Iterator[Part]:
        """A table of the changed fields, and the number of changes."""
        if self.rows:
            columns = self.diff.state_after.columns
            names = fields_of(list(columns.schema)[: columns.identity])
            table = Table([Column("CHANGE"), *(Column(title_of(*name)) for name in names), Column("VALUE")])
            for row in self.rows:
                keys = (cell(field_of(row[name], part)) for name, part in names)
                has_value = columns.identity < len(columns.columns)
                change = _changed(row["before"], row["after"]) if has_value else ""
                table.add_row(str(row["change"]), *keys, change)
            yield table
        yield _total(self.counts, len(self.rows))


def _first(batches: Iterator[pa.RecordBatch], limit: int) -> tuple[list[JsonObject], dict[str, int]]:
    """The first `limit` changes, or all if `limit` is 0, and the number of changes by kind."""
    rows: list[JsonObject] = []
    counts = dict.fromkeys(CHANGES, 0)
    for batch in batches:
        rows += rows_json(batch.slice(0, limit - len(rows)) if limit else batch)
        for entry in batch.column("change").value_counts().to_pylist():
            counts[entry["values"]] += entry["counts"]
    return rows, counts


def _total(counts: dict[str, int], shown: int) -> str:
    total = f"{counts['insert']:,} inserted, {counts['update']:,} updated, {counts['delete']:,} deleted"
    hidden = sum(counts.values()) - shown
    return f"{total}; {hidden:,} not shown (see --limit)" if hidden else total


def _changed(before: Json, after: Json) -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        return ", ".join(
            f"{plain(name)} {cell(before.get(name))} -> {cell(after.get(name))}"
            for name in {**before, **after}
            if before.get(name) != after.get(name)
        )
    if before is not None and after is not None:
        return f"{cell(before)} -> {cell(after)}"
    return cell(after if before is None else before)


@click.command("diff")
@path_argument("location")
@click.argument("before", callback=id_or_tag)
@click.argument("after", callback=id_or_tag)
@store_options
@limit_option
@flink_files_options
@json_option
@pass_session
def diff_checkpoints(
    session: Session,
    location: str,
    before: int | str,
    after: int | str,
    operator: int | str | None,
    store: str | None,
    variable: str | None,
    limit: int,
    moved: list[tuple[str, str]],
    allow_outside: bool,
) -> None:
    """Print the changes in state between two checkpoints.

    LOCATION is the checkpointLocation of a query, or the directory of a Flink job; a path or URL. BEFORE and AFTER are
    ids of checkpoints, or tags. All changes are counted, regardless of --limit. Of a query, only differing key groups
    are read. Neither Spark nor Flink is needed.

    Below the rows are the changed positions of the query's sources, one per partition. KIND is inferred from the shape
    of the offset, because Spark records no connector.

    \b
    Examples:
      spark-ckpt diff /path/to/checkpointLocation 16 17
      spark-ckpt diff /path/to/checkpointLocation 2 17 --operator 1 --store left-keyWithIndexToValue --limit 0 --json
    """
    place = CheckpointLocation.open(location)
    first, second = (selected_id(place, each) for each in (before, after))
    assert first is not None
    assert second is not None
    flink = diff_flink_state(
        location, first, second, operator=operator, variable=variable, moved=moved, allow_outside=allow_outside
    )
    if flink is not None:
        if store is not None:
            raise click.UsageError("--store is for state of Spark: choose a state of Flink with --variable")
        session.output.show(FlinkDiffResult.of(flink, limit))
        return
    difference = diff_state(location, first, second, operator=operator, store=store, variable=variable)
    session.output.show(DiffResult.of(difference, limit))
