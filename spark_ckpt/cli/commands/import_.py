"""`spark-ckpt import`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import Session, dry_run_option, force_option, json_option, pass_session, path_argument
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.results.transferred import store_json, store_lines
from spark_ckpt.cli.spark_session import query_settings, session_options, spark_session
from spark_ckpt.cli.terminal import progress_bar
from spark_ckpt.figures import human_size
from spark_ckpt.migrate import import_location, undo_import_of_location
from spark_ckpt.migrate.importing import Import
from spark_ckpt.migrate.undo import Undo


@dataclass(frozen=True, slots=True)
class ImportResult(Result):
    """An import, or its dry run.

    Args:
        imported: the stores, and the new checkpoint except after a dry run.
    """

    imported: Import

    def to_json(self) -> JsonObject:
        """The import and its stores; no new location for an import in place."""
        imported = self.imported
        return described(
            "import",
            imported,
            location=imported.source,
            new_location=None if imported.is_in_place else imported.target,
            dry_run=imported.checkpoint_id is None,
            undone=False,
            stores=[store_json(store) for store in imported.stores],
        )

    def render(self) -> Iterator[str]:
        """A summary, the stores, and what to do next."""
        imported = self.imported
        is_dry = imported.checkpoint_id is None
        did = "would be imported" if is_dry else "imported"
        yield f"{plain(imported.source)}: state of batch {imported.batch_id} {did} from {imported.provider}"
        yield from store_lines(imported.stores)
        if imported.has_begun:
            yield f"batch {imported.batch_id + 1} has begun and is repeated with the same offsets"
        if is_dry:
            return
        yield f"new checkpoint {imported.checkpoint_id}"
        if imported.is_in_place:
            undo = f"spark-ckpt import --undo {plain(imported.source)}"
            yield f"start the query with spark-ckpt. The way back until its next commit: {undo}"
        else:
            yield f"start the query with spark-ckpt and checkpointLocation {plain(imported.target)}"


@dataclass(frozen=True, slots=True)
class UndoResult(Result):
    """An undone import, or its dry run.

    Args:
        undo: the provider that the query returns to.
    """

    undo: Undo

    def to_json(self) -> JsonObject:
        """The return, with the bytes of the deleted checkpoint."""
        return described("import_undo", self.undo, undone=True)

    def render(self) -> Iterator[str]:
        """One line."""
        undo = self.undo
        did = "would return" if undo.dry_run else "returns"
        deleted = "would be deleted" if undo.dry_run else "deleted"
        yield (
            f"{plain(undo.location)}: the query {did} to {undo.provider} after batch {undo.batch_id}; "
            f"{human_size(undo.size)} of spark-ckpt {deleted}"
        )


@click.command("import")
@path_argument("location")
@path_argument("new_location", required=False)
@click.option("--undo", is_flag=True, help="Undo an import in place, if the query has committed no batch since.")
@session_options
@force_option
@dry_run_option
@json_option
@pass_session
def import_query(
    session: Session,
    location: str,
    new_location: str | None,
    undo: bool,
    master: str | None,
    conf: Mapping[str, str],
    force: bool,
    dry_run: bool,
) -> None:
    """Import a query's state from a Spark provider.

    LOCATION is the checkpointLocation of a stopped query with HDFSBackedStateStoreProvider (Spark's default) or
    RocksDBStateStoreProvider. The query then continues with spark-ckpt from the same batch, at the same location or,
    with NEW_LOCATION, at a new one. Sources, watermarks and offsets stay as they are.

    A Spark job reads the state through its own provider, writes it as a checkpoint and reads it back. One step at the
    end switches the query; until then the command can be interrupted and repeated.

    The earlier providers leave no sign of a running query. The command refuses if Spark's logs were written within the
    last minute, unless you add --force, and looks at them again before the switch.

    After an import in place, --undo returns the query to the earlier provider until it has committed its next batch.
    Then `spark-ckpt gc` deletes the earlier state.

    \b
    Exit status: 0 done, 1 failed, 4 a driver may be running, 5 refused; 4 and 5 change nothing.

    \b
    Examples:
      spark-ckpt import /checkpoints/orders --dry-run
      spark-ckpt import hdfs://nn/checkpoints/orders --master yarn --conf spark.executor.memory=8g
      spark-ckpt import --undo /checkpoints/orders
    """
    if undo and new_location is not None:
        raise click.UsageError("--undo takes no NEW_LOCATION: it undoes an import in place")
    settings = query_settings(conf)
    with spark_session("spark-ckpt import", master, conf) as spark:
        result: Result
        if undo:
            undone = undo_import_of_location(spark, location, settings=settings, force=force, dry_run=dry_run)
            result = UndoResult(undone)
        else:
            with progress_bar("importing") as progress:
                imported = import_location(
                    spark, location, new_location, settings=settings, force=force, dry_run=dry_run, progress=progress
                )
            result = ImportResult(imported)
    session.output.show(result)
