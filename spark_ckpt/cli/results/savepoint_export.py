"""Export to a savepoint of Flink, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.results.sources import position_line, source_json
from spark_ckpt.figures import count, human_size
from spark_ckpt.flink.export.export_savepoint import ExportedSource, ExportedState, FlinkExport


@dataclass(frozen=True, slots=True)
class SavepointExportResult(Result):
    """An export to Flink, or its dry run.

    Args:
        exported: the operator and its states.
    """

    exported: FlinkExport

    def to_json(self) -> JsonObject:
        """The operator, its states and the sources."""
        exported = self.exported
        return described(
            "savepoint_export",
            exported,
            operator_id=exported.operator,
            flink_operator=described("exported_operator", exported),
            sources=[described("exported_source", each, **source_json(each.source)) for each in exported.sources],
        )

    def render(self) -> Iterator[str]:
        """A summary, the operator and its states with their declarations, and what to do next."""
        exported = self.exported
        did = "would be exported" if exported.dry_run else "exported"
        yield (
            f"{plain(exported.location)}: checkpoint {exported.checkpoint_id} of batch {exported.batch_id}, operator "
            f"{exported.operator} ({plain(exported.name)}), {did} to {plain(exported.target)}"
        )
        uid = "no uid" if exported.uid is None else f"uid {plain(exported.uid)}"
        yield f"  operator {exported.operator_id}, {uid}, max parallelism {exported.max_parallelism}"
        yield f"  keyBy: {plain(exported.key)}"
        for state in exported.states:
            yield from _state_lines(state)
        for source in exported.sources:
            yield from _source_lines(source)
        if exported.files is not None and exported.bytes is not None:
            yield f"{count(exported.files, 'file')}, {human_size(exported.bytes)}"
            yield "start the Flink job from this savepoint, and do not start the query again"


def _source_lines(source: ExportedSource) -> Iterator[str]:
    into = "" if source.uid is None else f": operator {source.operator_id}, uid {plain(source.uid)}"
    yield f"  {plain(source.source.title)}{into}"
    if source.java:
        yield f"    {plain(source.java)}"
        return
    for position in source.source.positions:
        yield f"    {position_line(position)}"


def _state_lines(state: ExportedState) -> Iterator[str]:
    rows = "" if state.rows is None else f": {_entries(state)}"
    yield f"  {plain(state.name)}{rows}"
    yield f"    {plain(state.java)}"
    if state.note:
        yield f"    {plain(state.note)}"


def _entries(state: ExportedState) -> str:
    written = count(state.rows or 0, "timer" if state.kind.endswith("TIMER") else "row")
    return f"{written}, {count(state.skipped, 'expired one')} left out" if state.skipped else written
