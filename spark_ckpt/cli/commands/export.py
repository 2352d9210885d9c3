"""`spark-ckpt export`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import Session, dry_run_option, force_option, json_option, pass_session, path_argument
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.results.transferred import store_json, store_lines
from spark_ckpt.cli.spark_session import query_settings, session_options, spark_session
from spark_ckpt.cli.terminal import progress_bar
from spark_ckpt.operations.exporting import FORMATS, Export
from spark_ckpt.transfer import export_location


@dataclass(frozen=True, slots=True)
class ExportResult(Result):
    """An export, or its dry run.

    Args:
        exported: the checkpoint and its stores.
    """

    exported: Export

    def to_json(self) -> JsonObject:
        """`{"location", "new_location", "dry_run", "provider", "checkpoint_id", "batch_id", "has_begun",
        "checkpoint_format", "stores"}`.

        The stores are those of `store_json`.
        """
        exported = self.exported
        return {
            "location": exported.source,
            "new_location": exported.target,
            "dry_run": exported.dry_run,
            "provider": exported.provider,
            "checkpoint_id": exported.checkpoint_id,
            "batch_id": exported.batch_id,
            "has_begun": exported.has_begun,
            "checkpoint_format": exported.checkpoint_format,
            "stores": [store_json(store) for store in exported.stores],
        }

    def render(self) -> Iterator[str]:
        """A summary, the stores, and what to do next."""
        exported = self.exported
        did = "would be exported" if exported.dry_run else "exported"
        yield (
            f"{plain(exported.source)}: checkpoint {exported.checkpoint_id} of batch {exported.batch_id} {did} to "
            f"{exported.provider}"
        )
        yield from store_lines(exported.stores)
        if exported.has_begun:
            yield f"batch {exported.batch_id + 1} has begun and is repeated with the same offsets"
        if not exported.dry_run:
            target = plain(exported.target)
            yield f"start the query without spark-ckpt, with checkpointLocation {target}, and not at both locations"


@click.command("export")
@path_argument("location")
@path_argument("new_location")
@click.option(
    "--format", "state_format", type=click.Choice(tuple(FORMATS)), required=True, help="Provider of the new location."
)
@session_options
@force_option
@dry_run_option
@json_option
@pass_session
def export_query(
    session: Session,
    location: str,
    new_location: str,
    state_format: str,
    master: str | None,
    conf: Mapping[str, str],
    force: bool,
    dry_run: bool,
) -> None:
    """Give the state of a query to a provider of Spark.

    LOCATION is the checkpointLocation of a stopped query with spark-ckpt; it never changes. At NEW_LOCATION, a new
    directory, the query continues from the same batch with HDFSBackedStateStoreProvider (spark-hdfs, Spark's default)
    or RocksDBStateStoreProvider (spark-rocksdb).

    A Spark job writes the state through that provider and reads it back. If the command is interrupted, no query starts
    at NEW_LOCATION: delete it and run the command again.

    transformWithState and joins of state format 3 and 4 need column families, which only spark-rocksdb has. A query of
    checkpoint format 2 keeps it with spark-rocksdb; with spark-hdfs it continues in format 1.

    \b
    Exit status: 0 done, 1 failed, 4 a driver is running, 5 refused; 4 and 5 change nothing.

    \b
    Examples:
      spark-ckpt export /checkpoints/orders /checkpoints/orders-rocksdb --format spark-rocksdb
      spark-ckpt export s3a://bucket/orders s3a://bucket/orders-hdfs --format spark-hdfs --dry-run
    """
    with (
        spark_session("spark-ckpt export", master, conf) as spark,
        progress_bar("exporting") as progress,
    ):
        exported = export_location(
            spark,
            location,
            new_location,
            state_format,
            settings=query_settings(conf),
            force=force,
            dry_run=dry_run,
            progress=progress,
        )
    session.output.show(ExportResult(exported))
