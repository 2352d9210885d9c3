"""`spark-ckpt history-of`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import Session, json_option, operator_option, pass_session, path_argument
from spark_ckpt.cli.output import Part, Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.results.state import cell, field_of, rows_json
from spark_ckpt.cli.terminal import Column, Table, number_column, progress_bar
from spark_ckpt.edit import FamilyHistory, KeyHistory, history_of
from spark_ckpt.edit.row_input import read_rows
from spark_ckpt.figures import count


@dataclass(frozen=True, slots=True, eq=False)
class HistoryOfResult(Result):
    """History of grouping keys.

    Args:
        history: the history.
    """

    has_state_rows: ClassVar[bool] = True

    history: KeyHistory

    def to_json(self) -> JsonObject:
        """The changes, by column family."""
        families = [
            described(
                "family_history",
                each.view.store.state.key,
                variable=each.view.family.name,
                columns=each.schema,
                changes=list(_changes(each)),
            )
            for each in self.history.families
        ]
        return described("history_of", self.history, families=families)

    def render(self) -> Iterator[Part]:
        """A table of the changes for each column family, and what was read."""
        history = self.history
        for each in history.families:
            yield f"{plain(str(each.view.store.state.key))}, {plain(each.view.family.name)}"
            yield _table(each)
        changes = sum(len(each.changes) for each in history.families)
        of_keys, checkpoints = count(history.keys, "key"), count(len(history.checkpoints), "checkpoint")
        yield f"{count(changes, 'change')} of {of_keys} in {checkpoints}; {count(history.segments, 'segment')} read"


def _changes(history: FamilyHistory) -> Iterator[JsonObject]:
    for batch in history.to_arrow().to_batches():
        yield from rows_json(batch)


def _table(history: FamilyHistory) -> Table:
    keys = [field.name for field in history.view.family.key.arrow]
    names = [number_column("BATCH"), *(Column(f"key.{key}") for key in keys), Column("CHANGE"), Column("VALUE")]
    table = Table(names)
    for row in _changes(history):
        first, last = row["first_batch"], row["last_batch"]
        batches = str(last) if first == last else f"{first} - {last}"
        of_key = (cell(field_of(row["key"], key)) for key in keys)
        table.add_row(batches, *of_key, str(row["change"]), cell(row["value"]))
    return table


@click.command("history-of")
@path_argument("location")
@click.argument("keys")
@operator_option
@json_option
@pass_session
def show_history_of_keys(session: Session, location: str, keys: str, operator: int | str | None) -> None:
    """Show what the files tell about a key, batch by batch.

    LOCATION is the checkpointLocation of a query, or a savepoint, as a path or URL. The query may be running.

    KEYS are JSON text, or a Parquet, Arrow or JSON file, with a column for each given column of the grouping key. Some
    columns may be left out, such as the window of an aggregation: then all state is read. Columns of a join have the
    names field0, field1, and so on.

    A checkpoint has the changes of each batch since its base snapshot, so two checkpoints tell of many batches. A range
    of batches means that deltas were merged or that a base has replaced them: one of these batches made the change, and
    others may have made earlier ones. `present` is a row of the oldest base. Of each segment, only the
    block of the key's key group is read.

    \b
    Examples:
      spark-ckpt history-of /path/to/checkpointLocation '{"user": "alice"}'
      spark-ckpt history-of s3://bucket/counts users.parquet --operator 1 --json
    """
    with progress_bar("reading") as progress:
        history = history_of(location, partial(read_rows, keys), operator=operator, progress=progress)
    session.output.show(HistoryOfResult(history))
