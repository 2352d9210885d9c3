"""`spark-ckpt export`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import (
    Session,
    checkpoint_options,
    dry_run_option,
    force_option,
    json_option,
    pass_session,
    path_argument,
)
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.results.savepoint_export import SavepointExportResult
from spark_ckpt.cli.results.transferred import store_json, store_lines
from spark_ckpt.cli.spark_session import query_settings, session_options, spark_session
from spark_ckpt.cli.terminal import progress_bar
from spark_ckpt.flink.export.check import MAX_KEY_GROUPS
from spark_ckpt.flink.export.exporting import OPERATOR_ID_BYTES, export_savepoint
from spark_ckpt.flink.export.sources import ONLY
from spark_ckpt.flink.export.struct_types import KeyForm, ValueForm
from spark_ckpt.migrate import export_location
from spark_ckpt.migrate.exporting import FORMATS, Export

_Command = TypeVar("_Command", bound=Callable[..., None])

FLINK = "flink"
"""Format of a savepoint of Flink."""


@dataclass(frozen=True, slots=True)
class ExportResult(Result):
    """An export, or its dry run.

    Args:
        exported: the checkpoint and its stores.
    """

    exported: Export

    def to_json(self) -> JsonObject:
        """The checkpoint and its stores."""
        exported = self.exported
        return described(
            "state_export",
            exported,
            location=exported.source,
            new_location=exported.target,
            stores=[store_json(store) for store in exported.stores],
        )

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


def _operator_id(_: click.Context, parameter: click.Parameter, value: str | None) -> bytes | None:
    if value is None:
        return None
    try:
        content = bytes.fromhex(value)
    except ValueError:
        content = b""
    if len(content) != OPERATOR_ID_BYTES:
        raise click.BadParameter(f"'{value}' is not {2 * OPERATOR_ID_BYTES} hexadecimal digits", param=parameter)
    return content


def _source_uids(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str] | None:
    uids = {}
    for value in values:
        name, equals, uid = value.partition("=")
        uids[name if equals else ONLY] = uid if equals else value
    return uids or None


def _flink_options(command: _Command) -> _Command:
    """Adds the options of the format `flink`, each with a default that tells if it was given."""
    for option in (
        checkpoint_options(default="the newest with a committed batch"),
        click.option(
            "--sql-aggregate", is_flag=True, help="flink: write an aggregate as that of a GROUP BY of Flink SQL."
        ),
        click.option(
            "--operator",
            type=click.IntRange(min=0),
            help="flink: Spark's operator number; required if there are several.",
        ),
        click.option(
            "--max-parallelism",
            type=click.IntRange(1, MAX_KEY_GROUPS),
            help="flink: number of key groups; the job must have the same.  [default: 128]",
        ),
        click.option(
            "--value",
            type=click.Choice([form.value for form in ValueForm]),
            help="flink: type of the values.  [default: plain]",
        ),
        click.option(
            "--key",
            type=click.Choice([form.value for form in KeyForm]),
            help="flink: type of the keys in the job; required.",
        ),
        click.option(
            "--operator-id", callback=_operator_id, metavar="HEX", help="flink: id of the operator, instead of its uid."
        ),
        click.option(
            "--source-uid",
            "source_uids",
            multiple=True,
            metavar="[SOURCE=]UID",
            callback=_source_uids,
            help="flink: uid of a source in the job, which continues from the positions of Spark's source with this "
            "name; it may omit the name if the query has only one. Repeatable.",
        ),
        click.option("--uid", help="flink: uid of the operator in the job."),
    ):
        command = option(command)
    return command


@click.command("export")
@path_argument("location")
@path_argument("new_location")
@click.option(
    "--format",
    "state_format",
    type=click.Choice((*FORMATS, FLINK)),
    required=True,
    help="Provider of the new location, or flink for a savepoint.",
)
@_flink_options
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
    uid: str | None,
    operator_id: bytes | None,
    key: str | None,
    value: str | None,
    max_parallelism: int | None,
    operator: int | None,
    sql_aggregate: bool,
    source_uids: dict[str, str] | None,
    checkpoint_id: int | None,
) -> None:
    """Export a query's state to Spark or Flink.

    LOCATION is the checkpointLocation of a stopped query with spark-ckpt; it never changes. At NEW_LOCATION, a new
    directory, the query continues from the same batch with HDFSBackedStateStoreProvider (spark-hdfs, Spark's default)
    or RocksDBStateStoreProvider (spark-rocksdb).

    A Spark job writes the state through that provider and reads it back. If the command is interrupted, no query starts
    at NEW_LOCATION: delete it and run the command again.

    transformWithState and joins of state format 3 and 4 need column families, which only spark-rocksdb has. A query of
    checkpoint format 2 keeps it with spark-rocksdb; with spark-hdfs it continues in format 1.

    With flink, NEW_LOCATION becomes a savepoint with the state of one operator, for the operator of a Flink job with
    this uid. Neither Spark nor Flink is needed. The output has the statements in Java that declare the states; the job
    must declare the same types. --dry-run prints them without a savepoint.

    \b
    Exit status: 0 done, 1 failed, 4 a driver is running, 5 refused; 4 and 5 change nothing.

    \b
    Examples:
      spark-ckpt export /checkpoints/orders /checkpoints/orders-rocksdb --format spark-rocksdb
      spark-ckpt export s3a://bucket/orders s3a://bucket/orders-hdfs --format spark-hdfs --dry-run
      spark-ckpt export /checkpoints/orders /savepoints/orders --format flink --uid orders --key string
    """
    of_flink = {
        "uid": uid,
        "operator_id": operator_id,
        "key": key,
        "value": value,
        "max_parallelism": max_parallelism,
        "operator": operator,
        "sql_aggregate": sql_aggregate or None,
        "source_uids": source_uids,
        "id": checkpoint_id,
    }
    flink_options = {name: value for name, value in of_flink.items() if value is not None}
    if state_format == FLINK:
        if master is not None or conf:
            raise click.UsageError("--master and --conf are for a Spark job, and --format flink has none")
        _export_to_flink(session, location, new_location, flink_options, force, dry_run)
        return
    if flink_options:
        option = next(iter(flink_options)).replace("source_uids", "source-uid").replace("_", "-")
        raise click.UsageError(f"--{option} is for --format flink only")
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


def _export_to_flink(
    session: Session, location: str, target: str, flink_options: dict[str, Any], force: bool, dry_run: bool
) -> None:
    if "key" not in flink_options:
        raise click.UsageError("--format flink needs --key: jobs that key by different types hash keys differently")
    if ("uid" in flink_options) == ("operator_id" in flink_options):
        raise click.UsageError("--format flink needs either --uid or --operator-id")
    with progress_bar("exporting") as progress:
        exported = export_savepoint(location, target, force=force, dry_run=dry_run, progress=progress, **flink_options)
    session.output.show(SavepointExportResult(exported))
