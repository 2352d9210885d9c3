"""`spark-ckpt list`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import click

from spark_ckpt.checkpoint.compose import spark_batch_of
from spark_ckpt.checkpoint.sources import SourceState, sources_of
from spark_ckpt.cli.end_offsets import EndOffsets, read_end_offsets, topics_of
from spark_ckpt.cli.options import Session, json_option, lag_option, pass_session, path_argument
from spark_ckpt.cli.output import Part
from spark_ckpt.cli.results.described import describe_record
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.results.sources import POSITIONS, source_json, source_table
from spark_ckpt.cli.terminal import Column, Table, number_column, text_column
from spark_ckpt.cli.watch import Watchable, follow, last_option, newest, watch_option
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.figures import human_size, iso_time
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.operations.tagging import with_tags

_COLUMNS = (
    number_column("ID", lambda record: str(record.id)),
    number_column("BATCH", lambda record: str(record.batch_id)),
    text_column("COMPLETED", lambda record: iso_time(record.timestamp_ms)),
    number_column("DURATION", lambda record: f"{record.duration_ms:,} ms"),
    number_column("SIZE", lambda record: human_size(record.state_bytes)),
    number_column("NEW", lambda record: human_size(record.new_bytes)),
    number_column("STATE ROWS", lambda record: f"{record.rows:,}"),
)


@dataclass(frozen=True, slots=True)
class CheckpointList(Watchable):
    """The completed checkpoints of a location.

    Args:
        location: the location, as given by the user.
        checkpoints: their records, ascending by id; also those that only tags retain.
        sources: sources of each checkpoint, by checkpoint id; None unless requested.
        ends: end offsets of their Kafka partitions; None unless requested.
        printed: number of the first checkpoints that are on the screen already.
        tags: names of the tags of checkpoints, by checkpoint id.
    """

    location: str
    checkpoints: Sequence[CheckpointRecord]
    sources: Mapping[int, Sequence[SourceState]] | None = None
    ends: EndOffsets | None = None
    printed: int = 0
    tags: Mapping[int, Sequence[str]] = field(default_factory=dict)

    def to_json(self) -> JsonObject:
        """`{"location", "checkpoints": [each record]}`, with `sources` in each record if requested."""
        return {"location": self.location, "checkpoints": [self._described(record) for record in self._new]}

    def entries(self) -> Mapping[object, object]:
        """The checkpoints by id, with their sources and tags."""
        return {
            record.id: (record, (self.sources or {}).get(record.id), self.ends, tuple(self.tags.get(record.id, ())))
            for record in self.checkpoints
        }

    def only(self, keys: Collection[object], *, continues: bool) -> CheckpointList:
        """The checkpoints with these ids."""
        old = [record for record in self.checkpoints if continues and record.id not in keys]
        new = [record for record in self.checkpoints if record.id in keys]
        return replace(self, checkpoints=[*old, *new], printed=len(old))

    @property
    def _new(self) -> Sequence[CheckpointRecord]:
        return self.checkpoints[self.printed :]

    def _described(self, record: CheckpointRecord) -> JsonObject:
        values: dict[str, object] = {"tags": names} if (names := self.tags.get(record.id)) else {}
        if self.sources is not None:
            values["sources"] = [source_json(source, self.ends) for source in self.sources[record.id]]
        return describe_record(record, **values)

    @property
    def _columns(self) -> Sequence[Column]:
        if not self.tags:
            return _COLUMNS
        return (*_COLUMNS, text_column("TAGS", lambda record: ", ".join(self.tags.get(record.id, ()))))

    def render(self) -> Iterator[Part]:
        """A table with one record per checkpoint, and a table of the positions of their sources."""
        if not self.checkpoints:
            yield f"{self.location}: no checkpoint has completed yet"
            return
        if self.sources is None:
            yield Table.of(self._columns, self.checkpoints, self.printed)
        else:
            yield Table.of(self._columns, self._new)
            yield POSITIONS
            yield source_table(((record.id, self.sources[record.id]) for record in self._new), self.ends)


def list_with_sources(
    location: CheckpointLocation, servers: str | None = None, last: int | None = None
) -> CheckpointList:
    """The completed checkpoints of a location with their sources. Reads each `_metadata`.

    Checkpoints that a running query subsumes meanwhile are skipped.

    Args:
        location: the location.
        servers: addresses of the Kafka brokers to ask for end offsets; None for none.
        last: number of the newest checkpoints to list; None for all.

    Raises:
        KafkaClientNotFoundError, KafkaUnavailableError: as in `read_end_offsets`.
        StateFileNotFoundError: the metadata of a checkpoint is missing.
        SparkCkptError: as in `CheckpointLocation.checkpoints` and `CheckpointLocation.checkpoint_of`.
    """
    listed, sources = [], {}
    records, tags = with_tags(location)
    for record in newest(records, last):
        try:
            metadata = location.checkpoint_of(record).metadata
        except StateFileNotFoundError:
            if record.id in {retained.id for retained in with_tags(location)[0]}:
                raise
            continue
        listed.append(record)
        sources[record.id] = sources_of(metadata, spark_batch_of(metadata))
    ends = None
    if servers is not None:
        ends = read_end_offsets(servers, topics_of(source for each in sources.values() for source in each))
    return CheckpointList(location.path, listed, sources, ends, tags=tags)


@click.command("list")
@path_argument("location")
@click.option("--sources", is_flag=True, help="Also read each checkpoint's metadata and print its source positions.")
@lag_option
@last_option
@watch_option
@json_option
@pass_session
def list_checkpoints(
    session: Session, location: str, sources: bool, servers: str | None, last: int | None, watch_seconds: float | None
) -> None:
    """List completed checkpoints, oldest first.

    LOCATION is the checkpointLocation of a query, as a path or URL. TAGS names the tags of a checkpoint, if any has one
    (see `spark-ckpt tag`).

    With --sources, SOURCE is Spark's name of the source: its number in the query, from 0, unless the query names its
    sources. KIND is inferred from the shape of the offset, because Spark records no connector.

    --lag implies --sources. LAG is the number of offsets from the position to the end of the partition.

    \b
    Examples:
      spark-ckpt list /data/query --last 5
      spark-ckpt list /data/query --watch
      spark-ckpt list s3://bucket/query --watch 10s --json
    """

    def read() -> CheckpointList:
        checkpoint_location = CheckpointLocation.open(location)
        if sources or servers is not None:
            return list_with_sources(checkpoint_location, servers, last)
        records, tags = with_tags(checkpoint_location)
        return CheckpointList(location, newest(records, last), tags=tags)

    if watch_seconds is None:
        session.output.show(read())
    else:
        follow(session, watch_seconds, read)
