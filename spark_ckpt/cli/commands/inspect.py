"""`spark-ckpt inspect`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar, cast

import click
from rich.tree import Tree

from spark_ckpt.cli.end_offsets import read_end_offsets, topics_of
from spark_ckpt.cli.options import (
    Session,
    checkpoint_options,
    flink_files_options,
    json_option,
    lag_option,
    pass_session,
    path_argument,
)
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.inspection import Inspection, inspection_tree
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.results.stream_reader import StreamRequest, read_streams
from spark_ckpt.cli.results.streams import StreamReport, UnreadStreamsError, streams_tree
from spark_ckpt.location.find import CheckpointLocation

_Command = TypeVar("_Command", bound=Callable[..., None])


@dataclass(frozen=True, slots=True)
class InspectResult(Result):
    """The metadata of a checkpoint, and the content of its streams if they were opened.

    Args:
        inspection: the metadata.
        streams: a report on each stream; None unless requested.
    """

    inspection: Inspection
    streams: Sequence[StreamReport] | None = None

    def to_json(self) -> JsonObject:
        """The fields of the metadata, and `streams` if opened."""
        described = self.inspection.to_json()
        if self.streams is not None:
            described["streams"] = [report.to_json() for report in self.streams]
        return described

    def render(self) -> Iterator[Tree]:
        """A tree of master states, operators, subtasks and handles, and a tree of streams."""
        yield inspection_tree(self.inspection)
        if self.streams is not None:
            yield streams_tree(self.streams)


def _stream_options(command: _Command) -> _Command:
    """Adds `--streams` and its options; the command gets `streams`, a `StreamRequest` or None."""

    @click.option("--streams", is_flag=True, help="Also open the state streams and count their entries.")
    @click.option("--entries", type=click.IntRange(min=1), help="Print the first N entries of each state.", metavar="N")
    @flink_files_options
    @wraps(command)
    def with_request(
        *arguments: Any,  # noqa: ANN401
        streams: bool,
        entries: int | None,
        moved: list[tuple[str, str]],
        allow_outside: bool,
        **others: Any,  # noqa: ANN401
    ) -> None:
        if not streams and (entries or moved or allow_outside):
            raise click.UsageError("--entries, --map and --allow-outside require --streams")
        request = StreamRequest(entries or 0, moved, allow_outside) if streams else None
        command(*arguments, streams=request, **others)

    return cast(_Command, with_request)


@click.command("inspect")
@path_argument("location")
@checkpoint_options()
@lag_option
@_stream_options
@json_option
@pass_session
def inspect_checkpoint(
    session: Session, location: str, checkpoint_id: int | None, servers: str | None, streams: StreamRequest | None
) -> None:
    """Show all metadata of one checkpoint.

    LOCATION is the checkpointLocation of a query, the directory of a Flink checkpoint or savepoint (or of all
    checkpoints of a Flink job), or a _metadata file; a path or URL.

    A source is an operator with one position per partition, such as topic, partition and offset. Its kind is inferred
    from the shape of the offset, because Spark records no connector.
    """
    inspection = Inspection.of(CheckpointLocation.open(location).find(checkpoint_id))
    if servers is not None:
        inspection = replace(inspection, ends=read_end_offsets(servers, topics_of(inspection.sources.values())))
    reports = None if streams is None else list(read_streams(inspection, streams))
    session.output.show(InspectResult(inspection, reports))
    if reports and (unread := sum(report.has_failed for report in reports)):
        raise UnreadStreamsError(inspection.found.path, unread, len(reports))
