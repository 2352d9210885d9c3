"""Results as text: tables and trees."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from io import TextIOWrapper

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from spark_ckpt.cli.collecting import collection_lines
from spark_ckpt.cli.copies import restored_lines, savepoint_lines
from spark_ckpt.cli.describe import decoded_payload
from spark_ckpt.cli.going_back import rollback_lines
from spark_ckpt.cli.history_view import history_table, history_tree, subtask_table
from spark_ckpt.cli.inspection import Inspection
from spark_ckpt.cli.output import Output
from spark_ckpt.cli.rescaled import rescaling_lines
from spark_ckpt.cli.rewriting import Rewriting
from spark_ckpt.cli.rewriting_view import conversion_lines, relocation_lines
from spark_ckpt.cli.state_rows import Exported, ShownDiff, ShownRows
from spark_ckpt.cli.state_view import diff_end, diff_table, export_line, rows_end, rows_table, state_tree
from spark_ckpt.cli.stream_report import StreamReport
from spark_ckpt.cli.stream_view import streams_tree
from spark_ckpt.cli.summary import (
    Branch,
    count,
    human_size,
    iso_time,
    kind_of,
    plain,
    readable_by,
    shortened,
    summarise,
)
from spark_ckpt.cli.verification import verification_lines
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.coordinator.batch_state import SPARK_BATCH
from spark_ckpt.coordinator.collection import Collection
from spark_ckpt.coordinator.statistics import CheckpointStats, SubtaskStateStats
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.metadata import MasterState, OperatorState, OperatorSubtaskState, Relocation
from spark_ckpt.operations.copying import CheckpointCopy
from spark_ckpt.operations.rescaling import Rescaling
from spark_ckpt.operations.rollback import Rollback
from spark_ckpt.operations.verifying import Verification
from spark_ckpt.state.catalog import StateCatalog

_UNLIMITED_WIDTH = 10_000


class ConsoleOutput(Output):
    """Text, with colours where standard output is a terminal; elsewhere lines of any length, so that nothing is cut."""

    def checkpoints(self, location: str, checkpoints: Sequence[CheckpointRecord]) -> None:
        """A table, a line for each checkpoint."""
        if not checkpoints:
            click.echo(f"{location}: no checkpoint has completed yet")
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("ID", "BATCH"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("COMPLETED", no_wrap=True)
        for name in ("DURATION", "SIZE", "NEW", "STATE ROWS"):
            table.add_column(name, justify="right", no_wrap=True)
        for record in checkpoints:
            table.add_row(
                str(record.id),
                str(record.batch_id),
                iso_time(record.timestamp_ms),
                f"{record.duration_ms:,} ms",
                human_size(record.state_bytes),
                human_size(record.new_bytes),
                f"{record.rows:,}",
            )
        self._console().print(table)

    def inspection(self, inspection: Inspection, streams: Sequence[StreamReport] | None = None) -> None:
        """A tree: header, master states, operators with their subtasks and handles. A second one for the streams."""
        tree = Tree(Text(_title(inspection), style="bold"), highlight=False)
        for line in _header(inspection):
            tree.add(Text(line))
        if states := inspection.found.metadata.master_states:
            branch = tree.add(Text(count(len(states), "master state")))
            for state in states:
                _add(branch, _master_state(state, inspection))
        if operators := inspection.found.metadata.operator_states:
            branch = tree.add(Text(count(len(operators), "operator")))
            for operator in operators:
                _add_operator(branch, inspection, operator)
        console = self._console()
        console.print(tree)
        if streams is not None:
            console.print(streams_tree(streams))

    def conversion(self, rewriting: Rewriting) -> None:
        """Lines; warnings on standard error."""
        self._rewriting(rewriting, conversion_lines(rewriting))

    def relocation(self, rewriting: Rewriting, relocation: Relocation) -> None:
        """Lines; warnings on standard error."""
        self._rewriting(rewriting, relocation_lines(rewriting, relocation))

    def collection(self, collection: Collection) -> None:
        """Lines; what could not be deleted on standard error."""
        for line in collection_lines(collection):
            click.echo(line)
        for _, reason in collection.failed:
            click.echo(f"Error: {plain(reason)}", err=True)

    def verification(self, verification: Verification) -> None:
        """Lines."""
        for line in verification_lines(verification):
            click.echo(line)

    def rollback(self, rollback: Rollback) -> None:
        """Lines."""
        for line in rollback_lines(rollback):
            click.echo(line)

    def savepoint(self, copy: CheckpointCopy) -> None:
        """Lines."""
        for line in savepoint_lines(copy):
            click.echo(line)

    def restored(self, copy: CheckpointCopy) -> None:
        """Lines."""
        for line in restored_lines(copy):
            click.echo(line)

    def rescaling(self, rescaling: Rescaling) -> None:
        """Lines."""
        for line in rescaling_lines(rescaling):
            click.echo(line)

    def history(self, location: str, entries: Sequence[CheckpointStats]) -> None:
        """A table, a line for each checkpoint."""
        self._console().print(history_table(entries))

    def history_entry(
        self, location: str, stats: CheckpointStats, by_subtask: Sequence[SubtaskStateStats] | None
    ) -> None:
        """A tree, and a table of the subtasks."""
        self._console().print(history_tree(stats))
        if by_subtask is not None:
            self._console().print(subtask_table(by_subtask))

    def state(self, catalog: StateCatalog) -> None:
        """A tree."""
        self._console().print(state_tree(catalog))

    def rows(self, shown: ShownRows) -> None:
        """A table, and how many rows they are."""
        self._console().print(rows_table(shown))
        click.echo(rows_end(shown))

    def export(self, exported: Exported) -> None:
        """A line."""
        click.echo(export_line(exported))

    def difference(self, shown: ShownDiff) -> None:
        """A table of the changes, and how many there are."""
        if shown.rows:
            self._console().print(diff_table(shown))
        click.echo(diff_end(shown))

    def error(self, error: SparkCkptError) -> None:
        """The message, behind `Error: ` as click has it for usage errors."""
        click.echo(f"Error: {plain(str(error))}", err=True)

    def _rewriting(self, rewriting: Rewriting, lines: Iterator[str]) -> None:
        for line in lines:
            self._console().print(Text(line))
        for warning in rewriting.warnings:
            click.echo(f"Warning: {plain(warning)}", err=True)

    @staticmethod
    def _console() -> Console:
        # Made for each result: whoever runs commands within a process exchanges standard output.
        if isinstance(sys.stdout, TextIOWrapper):
            # A terminal without Unicode shows a name with escapes rather than nothing at all.
            sys.stdout.reconfigure(errors="backslashreplace")
        width = None if sys.stdout.isatty() else _UNLIMITED_WIDTH
        return Console(file=sys.stdout, width=width, soft_wrap=True, highlight=False)


def _title(inspection: Inspection) -> str:
    metadata = inspection.found.metadata
    return (
        f"checkpoint {metadata.checkpoint_id}, metadata version {metadata.version}, "
        f"{human_size(inspection.found.size)}, {plain(inspection.found.path)}"
    )


def _header(inspection: Inspection) -> Iterator[str]:
    if (record := inspection.found.record) is not None:
        yield (
            f"completed {iso_time(record.timestamp_ms)} in {record.duration_ms:,} ms, generation {record.generation}, "
            f"by {plain(str(record.owner))}"
        )
        yield f"state {human_size(record.state_bytes)}, {record.rows:,} rows; {human_size(record.new_bytes)} new"
    if (batch := inspection.batch) is not None:
        name = f" '{plain(batch.query_name)}'" if batch.query_name else ""
        yield f"batch {batch.batch_id}, state version {batch.version}, Spark {plain(batch.spark_version)}"
        yield f"query {plain(batch.query_id)}{name}, run {plain(batch.run_id)}"
        yield f"{batch.max_parallelism:,} key groups, chain {list(batch.key_group_factors)}"
    if (properties := inspection.properties) is not None:
        yield kind_of(properties)
    yield readable_by(inspection.found.metadata)


def _master_state(state: MasterState, inspection: Inspection) -> Branch:
    line = f"{plain(state.name)}, version {state.version}, {human_size(len(state.payload))}"
    if state.name == SPARK_BATCH and inspection.batch is not None:
        # Its numbers stand in the header and beside the subtasks.
        stores = [
            f"{store.name} {store.operator_id}/{store.store}: {sum(store.rows):,} rows"
            for store in inspection.batch.stores
        ]
        return line, [(plain(text), []) for text in stores]
    payload = decoded_payload(state.payload)
    if isinstance(payload, dict):
        return line, [_json_field(name, value) for name, value in payload.items()]
    text = state.payload.hex() if payload is None else str(payload)
    return line, [(plain(shortened(part)), []) for part in text.splitlines()]


def _json_field(name: str, value: object) -> Branch:
    if isinstance(value, dict) and value:
        return plain(name), [_json_field(inner, item) for inner, item in value.items()]
    return plain(shortened(f"{name}: {value}")), []


def _add_operator(parent: Tree, inspection: Inspection, operator: OperatorState) -> None:
    name = inspection.name_of(operator)
    line = Text(plain(name) if name else operator.operator_id.hex(), style="bold")
    details = [
        *([f"id {operator.operator_id.hex()}"] if name else []),
        f"parallelism {operator.parallelism:,} of {operator.max_parallelism:,}",
        "fully finished" if operator.is_fully_finished else human_size(inspection.state_size_of(operator)),
    ]
    if (store := inspection.stores.get(operator.operator_id)) is not None:
        details.append(f"{sum(store.rows):,} rows")
    branch = parent.add(line.append(f", {', '.join(details)}", style="not bold"))
    if operator.coordinator_state is not None:
        branch.add(Text(f"coordinator: {summarise(operator.coordinator_state)[0]}"))
    for index, subtask in sorted(operator.subtask_states.items()):
        _add(branch, _subtask(inspection, operator, index, subtask))


def _subtask(inspection: Inspection, operator: OperatorState, index: int, subtask: OperatorSubtaskState) -> Branch:
    if subtask.is_finished:
        return f"subtask {index}, finished", []
    line = f"subtask {index}, {human_size(subtask.state_size)}"
    below: list[Branch] = []
    store = inspection.stores.get(operator.operator_id)
    if store is not None and index < store.parallelism:
        line = f"subtask {index}, {store.rows[index]:,} rows, state id {store.ckpt_ids[index]}"
        segments = inspection.segments_of(operator, index)
        chain = [f"{'base' if s.is_base else 'delta'} v{s.version} {human_size(s.size)}" for s in segments]
        below.append((f"chain: {', '.join(chain) or 'empty'}", []))
    kinds = (
        ("managed operator state", subtask.managed_operator_state),
        ("raw operator state", subtask.raw_operator_state),
        ("managed keyed state", subtask.managed_keyed_state),
        ("raw keyed state", subtask.raw_keyed_state),
    )
    for kind, handle in kinds:
        if handle is not None:
            text, parts = summarise(handle)
            below.append((f"{kind}: {text}", parts))
    channels = (
        *(("input", handle) for handle in subtask.input_channel_state),
        *(("result", handle) for handle in subtask.result_subpartition_state),
    )
    below += [(f"{kind} {summarise(channel)[0]}", []) for kind, channel in channels]
    return line, below


def _add(parent: Tree, branch: Branch) -> None:
    text, below = branch
    added = parent.add(Text(text))
    for part in below:
        _add(added, part)
