"""`spark-ckpt list`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from spark_ckpt.cli.formatting import human_size, iso_time
from spark_ckpt.cli.options import Session, json_option, pass_session
from spark_ckpt.cli.output import Part, Result
from spark_ckpt.cli.results.metadata_json import JsonObject, describe_record
from spark_ckpt.cli.terminal import Column, Table
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.location.find import CheckpointLocation

_COLUMNS = (
    Column("ID", is_number=True),
    Column("BATCH", is_number=True),
    Column("COMPLETED"),
    Column("DURATION", is_number=True),
    Column("SIZE", is_number=True),
    Column("NEW", is_number=True),
    Column("STATE ROWS", is_number=True),
)


@dataclass(frozen=True, slots=True)
class CheckpointList(Result):
    """The completed checkpoints of a location.

    Args:
        location: the location, as given by the user.
        checkpoints: their records, ascending by id.
    """

    location: str
    checkpoints: Sequence[CheckpointRecord]

    def to_json(self) -> JsonObject:
        """`{"location", "checkpoints": [each record]}`."""
        return {"location": self.location, "checkpoints": [describe_record(record) for record in self.checkpoints]}

    def render(self) -> Iterator[Part]:
        """A table with one record per checkpoint."""
        if not self.checkpoints:
            yield f"{self.location}: no checkpoint has completed yet"
            return
        table = Table(_COLUMNS)
        for record in self.checkpoints:
            table.add_row(
                str(record.id),
                str(record.batch_id),
                iso_time(record.timestamp_ms),
                f"{record.duration_ms:,} ms",
                human_size(record.state_bytes),
                human_size(record.new_bytes),
                f"{record.rows:,}",
            )
        yield table


@click.command("list")
@click.argument("location")
@json_option
@pass_session
def list_checkpoints(session: Session, location: str) -> None:
    """List completed checkpoints, oldest first.

    LOCATION is the checkpointLocation of a query, as a path or URL.
    """
    session.output.show(CheckpointList(location, CheckpointLocation.open(location).checkpoints()))
