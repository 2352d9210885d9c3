"""`spark-ckpt inspect`."""

from __future__ import annotations

import click

from spark_ckpt.cli.inspection import Inspection
from spark_ckpt.cli.options import Session, id_option, json_option, pass_session
from spark_ckpt.cli.stream_options import stream_options
from spark_ckpt.cli.stream_reader import StreamRequest, read_streams
from spark_ckpt.cli.stream_report import UnreadStreamsError
from spark_ckpt.locations.location import find_checkpoint


@click.command("inspect")
@click.argument("location")
@id_option
@stream_options
@json_option
@pass_session
def inspect_checkpoint(
    session: Session, location: str, checkpoint_id: int | None, streams: StreamRequest | None
) -> None:
    """Show everything in the metadata of one checkpoint.

    LOCATION is the checkpointLocation of a query, a directory of a Flink checkpoint or savepoint (or of a Flink job's
    checkpoints), or a _metadata file; a path or URL.
    """
    inspection = Inspection.of(find_checkpoint(location, checkpoint_id))
    reports = None if streams is None else list(read_streams(inspection, streams))
    session.output.inspection(inspection, reports)
    if reports and (unread := sum(report.has_failed for report in reports)):
        raise UnreadStreamsError(inspection.found.path, unread, len(reports))
