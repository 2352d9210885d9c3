"""`spark-ckpt edit`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import (
    Session,
    dry_run_option,
    force_option,
    json_option,
    pass_session,
    path_argument,
    settings_option,
    store_options,
)
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.edit import StateEdit, edit_state
from spark_ckpt.edit.row_input import read_rows
from spark_ckpt.figures import count, human_size


@dataclass(frozen=True, slots=True)
class EditResult(Result):
    """Rows that were set and deleted.

    Args:
        edit: the numbers, and the new checkpoint except after a dry run.
    """

    edit: StateEdit

    def to_json(self) -> JsonObject:
        """The numbers of rows, and the new checkpoint."""
        return described("edit", self.edit)

    def render(self) -> Iterator[str]:
        """The numbers of rows, and the new checkpoint."""
        edit = self.edit
        parts = [
            f"{count(edit.inserted, 'row')} inserted",
            f"{edit.updated:,} updated",
            f"{edit.deleted:,} deleted",
            *([f"{count(edit.missing, 'key')} to delete not there"] if edit.missing else []),
        ]
        where = f"{edit.operator_id}/{plain(edit.store)}"
        name = f"{where}/{plain(edit.variable)}" if edit.variable != edit.store else where
        yield f"{plain(edit.location)} {name}: {', '.join(parts)}, in {count(edit.subtasks, 'partition')}"
        if edit.checkpoint_id is not None:
            yield (
                f"new checkpoint {edit.checkpoint_id}, batch {edit.batch_id}, from checkpoint {edit.from_checkpoint}: "
                f"{human_size(edit.new_bytes)} written. Start the query as before"
            )
        else:
            yield "nothing was written"


@click.command("edit")
@path_argument("location")
@click.option("--set", "to_set", metavar="ROWS", help="Rows to set: a file, or JSON.")
@click.option("--delete", "to_delete", metavar="KEYS", help="Keys to delete: a file, or JSON.")
@store_options
@force_option
@settings_option
@dry_run_option
@json_option
@pass_session
def edit_rows(
    session: Session,
    location: str,
    to_set: str | None,
    to_delete: str | None,
    operator: int | str | None,
    store: str | None,
    variable: str | None,
    force: bool,
    settings: dict[str, str],
    dry_run: bool,
) -> None:
    """Set and delete rows in the state of a stopped query.

    LOCATION is the checkpointLocation of the query, as a path or URL. Stop the query between two batches first, and
    start it again as before: it continues from the new checkpoint. Spark's logs get one batch without input.

    ROWS and KEYS are a Parquet, Arrow or JSON file, or JSON text. Rows have the columns that `spark-ckpt read` shows,
    key and value (of a map: key, user_map_key and user_map_value), and keys have no value. JSON is an object per line,
    a list, or the output of `spark-ckpt read --json`.

    The state of aggregations, de-duplications and flatMapGroupsWithState has rows that can be set, and so have state
    variables of kind value and map without a time to live. Rows of lists, timers, joins and session windows depend on
    each other: see `spark-ckpt erase`.

    To take an edit back, roll back to the checkpoint before it. If the command is interrupted, Spark refuses to start
    the query: run the same command again.

    \b
    Exit status: 0 done, 1 failed, 4 a driver may be running, 5 refused; 4 and 5 change nothing.

    \b
    Examples:
      spark-ckpt edit /data/counts --set '{"key": {"user": "a"}, "value": {"count": 7}}' --dry-run
      spark-ckpt edit s3://bucket/counts --set rows.parquet --delete keys.json
    """
    if to_set is None and to_delete is None:
        raise click.UsageError("give --set, --delete or both")
    edit = edit_state(
        location,
        None if to_set is None else partial(read_rows, to_set),
        None if to_delete is None else partial(read_rows, to_delete),
        operator=operator,
        store=store,
        variable=variable,
        settings=settings,
        force=force,
        dry_run=dry_run,
    )
    session.output.show(EditResult(edit))
