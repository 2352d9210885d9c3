"""`spark-ckpt import-flink`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import (
    Session,
    dry_run_option,
    flink_files_options,
    force_option,
    id_option,
    json_option,
    pass_session,
    path_argument,
    settings_option,
)
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.terminal import progress_bar
from spark_ckpt.figures import count, human_size
from spark_ckpt.flink.importing import FlinkImport, import_flink_savepoint


@dataclass(frozen=True, slots=True)
class FlinkImportResult(Result):
    """An import of Flink's state, or its dry run.

    Args:
        imported: the states, and the new checkpoint except after a dry run.
    """

    imported: FlinkImport

    def to_json(self) -> JsonObject:
        """The states with their columns, and what stays behind."""
        return described("import_flink", self.imported, dry_run=self.imported.checkpoint_id is None)

    def render(self) -> Iterator[str]:
        """A summary, the states with their columns, what stays behind, and what to do next."""
        imported = self.imported
        is_dry = imported.checkpoint_id is None
        did = "would be imported" if is_dry else "imported"
        yield f"{plain(imported.location)}: state of {plain(imported.source)} {did}"
        for state in imported.states:
            rows = "" if state.rows is None else f", {count(state.rows, 'row')}"
            yield f"  {plain(state.flink)} -> {plain(state.spark)} ({state.spark_kind}{rows})"
            for flink, spark, flink_type, spark_type in state.columns:
                yield f"    {plain(flink)} {plain(flink_type)} -> {plain(spark)} {plain(spark_type)}"
        lists = (
            ("ignored", imported.ignored),
            ("without a state variable; refused if they have rows" if is_dry else "without rows", imported.unmapped),
            ("state variables that start empty", imported.empty),
        )
        for title, names in lists:
            if names:
                yield f"  {title}: {', '.join(map(plain, names))}"
        for each in imported.left_behind:
            yield f"  operator state, not imported: {plain(each.operator)}: {', '.join(map(plain, each.states))}"
        if imported.starting_offsets is not None:
            where = "continues there" if imported.continues_there else "does not continue there"
            yield f"Kafka positions of Flink; the query {where}: {plain(imported.starting_offsets)}"
        if imported.checkpoint_id is not None:
            yield (
                f"new checkpoint {imported.checkpoint_id}, batch {imported.batch_id}: "
                f"{human_size(imported.new_bytes)} written and read back. Start the query unchanged"
            )


def _pairs(_: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for value in values:
        state, equals, other = value.rpartition("=")
        if not (state and equals and other):
            raise click.BadParameter(f"'{value}' is not STATE=...", param=parameter)
        if state in pairs:
            raise click.BadParameter(f"{state} is given twice", param=parameter)
        pairs[state] = other
    return pairs


def _orders(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, list[str]]:
    return {state: fields.split(",") for state, fields in _pairs(context, parameter, values).items()}


@click.command("import-flink")
@path_argument("savepoint")
@path_argument("location")
@click.option(
    "--state",
    "states",
    multiple=True,
    metavar="STATE=VARIABLE",
    callback=_pairs,
    help="State variable of the query for a state of Flink with another name, both as NAME or OPERATOR/NAME. "
    "Repeatable.",
)
@click.option(
    "--ignore", multiple=True, metavar="STATE", help="State of Flink, as NAME or OPERATOR/NAME, that is not imported."
)
@click.option(
    "--key-order",
    multiple=True,
    metavar="STATE=FIELD,...",
    callback=_orders,
    help="Fields of a state's keys in Flink, in the order of the query's columns. Repeatable.",
)
@click.option(
    "--value-order",
    multiple=True,
    metavar="STATE=FIELD,...",
    callback=_orders,
    help="Fields of a state's values in Flink, in the order of the query's columns. Repeatable.",
)
@click.option(
    "--keep-offsets", is_flag=True, help="Let the query continue where it stands in Kafka, not where Flink does."
)
@id_option
@flink_files_options
@force_option
@settings_option
@dry_run_option
@json_option
@pass_session
def import_flink_state(
    session: Session,
    savepoint: str,
    location: str,
    states: dict[str, str],
    ignore: tuple[str, ...],
    key_order: dict[str, list[str]],
    value_order: dict[str, list[str]],
    keep_offsets: bool,
    checkpoint_id: int | None,
    moved: list[tuple[str, str]],
    allow_outside: bool,
    force: bool,
    settings: dict[str, str],
    dry_run: bool,
) -> None:
    """Import keyed state of a Flink job, without Spark and Flink.

    SAVEPOINT is a savepoint, checkpoint or job directory of Flink; LOCATION the checkpointLocation of the query that
    continues. Start that query once without input, such as at Kafka's latest offsets, let it commit one batch, and
    stop it: the location then has the types and the number of partitions. The command adds one batch without input
    with the state of Flink, and the positions of its Kafka sources.

    Value, list and map states and timers go to the state variables of the same names of a transformWithState, and the
    accumulators of a GROUP BY in Flink SQL to an aggregation, field by field. Types must fit: --dry-run lists them.
    Each row is read back and compared before the query can see it. A state without a variable is refused if it has
    rows, unless you add --ignore.

    If the command is interrupted at the end, Spark refuses to start the query: run the same command again.

    \b
    Exit status: 0 done, 1 failed, 4 a driver may be running, 5 refused; 4 and 5 change nothing.

    \b
    Examples:
      spark-ckpt import-flink /flink/savepoint-4f1e2a /checkpoints/orders --dry-run
      spark-ckpt import-flink s3://bucket/savepoint-4f1e2a s3://bucket/orders --ignore my-uid/seen
      spark-ckpt import-flink /flink/savepoint-4f1e2a /checkpoints/orders --state total=sum --value-order total=f1,f0
    """
    with progress_bar("importing") as progress:
        imported = import_flink_savepoint(
            savepoint,
            location,
            id=checkpoint_id,
            states=states,
            ignore=ignore,
            key_order=key_order,
            value_order=value_order,
            keep_offsets=keep_offsets,
            moved=moved,
            allow_outside=allow_outside,
            settings=settings,
            force=force,
            dry_run=dry_run,
            progress=progress,
        )
    session.output.show(FlinkImportResult(imported))
