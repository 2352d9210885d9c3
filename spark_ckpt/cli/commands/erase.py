"""`spark-ckpt erase`."""

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
    operator_option,
    pass_session,
    path_argument,
    settings_option,
)
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.terminal import progress_bar
from spark_ckpt.edit import Erasure, erase_state
from spark_ckpt.edit.row_input import read_rows
from spark_ckpt.figures import count, human_size


@dataclass(frozen=True, slots=True)
class EraseResult(Result):
    """Grouping keys whose state was removed.

    Args:
        erasure: the removed rows, the deleted files, and the new checkpoint except after a dry run.
        dry_run: True after a dry run.
    """

    erasure: Erasure
    dry_run: bool = False

    def to_json(self) -> JsonObject:
        """The removed rows, the deleted files, and the new checkpoint."""
        return described("erase", self.erasure)

    def render(self) -> Iterator[str]:
        """The removed rows by column family, what was deleted, and the new checkpoint."""
        erasure = self.erasure
        rows = sum(family.rows for family in erasure.families)
        yield f"{plain(erasure.location)}: {count(rows, 'row')} of {count(erasure.keys, 'key')} removed"
        for family in erasure.families:
            if family.rows:
                name = f"{family.operator_id}/{plain(family.store)}/{plain(family.variable)}"
                yield f"  {name}: {count(family.rows, 'row')}"
        if erasure.rewritten or erasure.dropped or erasure.deleted:
            yield (
                f"{count(erasure.rewritten, 'partition')} rewritten, {count(len(erasure.dropped), 'checkpoint')} "
                f"dropped, {count(len(erasure.deleted), 'file')} deleted"
            )
        for savepoint in erasure.savepoints:
            yield f"savepoint {plain(savepoint)}: {'has these keys' if self.dry_run else 'deleted'}"
        if erasure.checkpoint_id is not None:
            yield (
                f"checkpoint {erasure.checkpoint_id}, batch {erasure.batch_id}, from checkpoint "
                f"{erasure.from_checkpoint}: {human_size(erasure.new_bytes)} written. Start the query as before"
            )
        else:
            yield "no state was written"


@click.command("erase")
@path_argument("location")
@click.option("--keys", required=True, metavar="KEYS", help="Grouping keys: a file, or JSON.")
@operator_option
@click.option("--purge", is_flag=True, help="Leave no trace in any file of the location.")
@click.option(
    "--savepoint",
    "savepoints",
    multiple=True,
    metavar="PATH",
    help="Savepoint to delete if it has the keys. Repeatable.",
)
@force_option
@settings_option
@dry_run_option
@json_option
@pass_session
def erase_keys(
    session: Session,
    location: str,
    keys: str,
    operator: int | str | None,
    purge: bool,
    savepoints: tuple[str, ...],
    force: bool,
    settings: dict[str, str],
    dry_run: bool,
) -> None:
    """Remove all state of some grouping keys from a stopped query.

    LOCATION is the checkpointLocation of the query, as a path or URL. Stop the query between two batches first, and
    start it again as before. Every store, column family, list, map and timer of the operator loses the rows of KEYS.

    KEYS are a Parquet, Arrow or JSON file, or JSON text, with a column for each given column of the grouping key. Some
    columns may be left out, such as the window of an aggregation: then all state is read, and the rows of every window
    go. Columns of a join have the names field0, field1, and so on.

    Earlier checkpoints still have the keys, and so do files until the next base snapshots. --purge rewrites the
    partitions whose files have them, deletes the earlier checkpoints and what rollbacks have moved away, and leaves no
    trace in any file of the location: `spark-ckpt verify --absent` proves it. --savepoint also deletes a savepoint that
    has them. A purge cannot be taken back. It does not touch other savepoints, sources and sinks.

    If the command is interrupted, Spark refuses to start the query: run the same command again.

    \b
    Exit status: 0 done, 1 failed, 4 a driver may be running, 5 refused; 4 and 5 change nothing.

    \b
    Examples:
      spark-ckpt erase /data/counts --keys '{"user": "alice"}' --dry-run
      spark-ckpt erase s3://bucket/counts --keys users.parquet --purge --savepoint s3://bucket/saved/counts
    """
    if savepoints and not purge:
        raise click.UsageError("--savepoint requires --purge")
    with progress_bar("reading") as progress:
        erasure = erase_state(
            location,
            partial(read_rows, keys),
            operator=operator,
            purge_files=purge,
            savepoints=savepoints,
            settings=settings,
            force=force,
            dry_run=dry_run,
            progress=progress,
        )
    session.output.show(EraseResult(erasure, dry_run))
