"""`spark-ckpt offsets`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from operator import attrgetter

import click

from spark_ckpt.checkpoint.compose import spark_batch_of
from spark_ckpt.checkpoint.sources import SourceState, sources_of
from spark_ckpt.cli.end_offsets import EARLIEST, LATEST, EndOffsets, read_end_offsets, read_offsets_at, topics_of
from spark_ckpt.cli.options import (
    Session,
    dry_run_option,
    force_option,
    json_option,
    lag_option,
    pass_session,
    path_argument,
    servers_of,
    settings_option,
)
from spark_ckpt.cli.output import Part, Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.results.sources import POSITIONS, change_json, change_table, source_json, source_table
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.figures import count
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.operations.offsets import MovedOffsets, move_offsets
from spark_ckpt.spark_files.source_positions import positions_of
from spark_ckpt.state.source_changes import PositionChange, position_changes

_TIMES = {"earliest": EARLIEST, "latest": LATEST}


@dataclass(frozen=True, slots=True)
class OffsetsResult(Result):
    """Positions of a query's sources.

    Args:
        location: the checkpoint location.
        record: its newest checkpoint.
        sources: sources in that checkpoint.
        ends: end offsets of their Kafka partitions; None unless requested.
    """

    location: str
    record: CheckpointRecord
    sources: Sequence[SourceState]
    ends: EndOffsets | None

    def to_json(self) -> JsonObject:
        """The checkpoint, and its sources with their positions."""
        sources = [source_json(source, self.ends) for source in self.sources]
        return described("offsets", self, checkpoint_id=self.record.id, batch_id=self.record.batch_id, sources=sources)

    def render(self) -> Iterator[Part]:
        """A table of positions."""
        yield f"{self.location}: checkpoint {self.record.id}, batch {self.record.batch_id}"
        yield POSITIONS
        yield source_table([(self.record.id, self.sources)], self.ends)


@dataclass(frozen=True, slots=True)
class MovedOffsetsResult(Result):
    """Sources at other positions.

    Args:
        moved: the positions before and after, and the new checkpoint except after a dry run.
    """

    moved: MovedOffsets

    @property
    def _changes(self) -> list[PositionChange]:
        sides = [
            [SourceState(each.name, b"", positions_of(text)) for each in self.moved.sources if (text := of(each))]
            for of in (attrgetter("before"), attrgetter("after"))
        ]
        return list(position_changes(*sides))

    def to_json(self) -> JsonObject:
        """The changed positions, and the new checkpoint."""
        return described("moved_offsets", self.moved, changes=[change_json(change) for change in self._changes])

    def render(self) -> Iterator[Part]:
        """A table of changed positions, and the new checkpoint."""
        moved = self.moved
        did = "would move" if moved.checkpoint_id is None else "moved"
        yield f"{moved.location}: {count(len(moved.sources), 'source')} {did}"
        yield change_table(self._changes)
        if moved.checkpoint_id is not None:
            batches = "batch" if moved.batches == 1 else f"batches {moved.batch_id - 1} and"
            yield (
                f"new checkpoint {moved.checkpoint_id}, {batches} {moved.batch_id}, from checkpoint "
                f"{moved.from_checkpoint}. Start the query as before"
            )


def _positions(_: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    positions = {}
    for value in values:
        name, equals, position = value.partition("=")
        if not (name and equals and position):
            raise click.BadParameter(f"'{value}' is not NAME=POSITION", param=parameter)
        positions[name] = position
    return positions


def _time(_: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Milliseconds since 1970 UTC, `EARLIEST` or `LATEST`."""
    if value is None or value in _TIMES:
        return None if value is None else _TIMES[value]
    try:
        moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        raise click.BadParameter(
            f"'{value}' is not earliest, latest or a time such as 2026-01-31T12:00:00Z", param=parameter
        ) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    return round(moment.timestamp() * 1000)


@click.command("offsets")
@path_argument("location")
@click.option(
    "--source",
    "positions",
    multiple=True,
    metavar="NAME=POSITION",
    callback=_positions,
    help="New position of a source, as Spark writes it. Repeatable.",
)
@click.option(
    "--to",
    "at_ms",
    metavar="TIME",
    callback=_time,
    help="Move all Kafka sources to earliest, latest or a time in UTC. Needs --kafka.",
)
@click.option("--kafka", "broker", metavar="HOST:PORT,...", callback=servers_of, help="Kafka broker to ask for --to.")
@lag_option
@force_option
@settings_option
@dry_run_option
@json_option
@pass_session
def show_or_move_offsets(
    session: Session,
    location: str,
    positions: dict[str, str],
    at_ms: int | None,
    broker: str | None,
    servers: str | None,
    force: bool,
    settings: dict[str, str],
    dry_run: bool,
) -> None:
    """Show the positions of a query's sources, or move them.

    LOCATION is the checkpointLocation of the query, as a path or URL. Without --source and --to, the command shows the
    positions in the newest checkpoint, from which the next batch starts.

    To move them, stop the query between two batches first, and start it again as before. The state stays as it is, so a
    query may count records again that it reads once more, or never see those that it skips. Spark's logs get one batch
    without input, or two if a source goes back.

    NAME is Spark's name of the source: its number in the query, from 0, unless the query names its sources. POSITION is
    the offset as Spark writes it: of Kafka {"topic":{"0":12}} with all partitions of the topic, of files
    {"logOffset":7}, where -1 reads all files again. Kafka's positions may name another topic, which the query must then
    subscribe to.

    To take a move back, roll back to the checkpoint before it. If the command is interrupted, Spark refuses to start
    the query: run the same command again.

    \b
    Exit status: 0 done, 1 failed, 4 a driver may be running, 5 refused; 4 and 5 change nothing.

    \b
    Examples:
      spark-ckpt offsets /data/query --lag broker:9092
      spark-ckpt offsets /data/query --source '0={"orders":{"0":1200,"1":900}}' --dry-run
      spark-ckpt offsets s3://bucket/query --to 2026-01-31T12:00:00Z --kafka broker:9092
    """
    if (at_ms is None) != (broker is None):
        raise click.UsageError("--to and --kafka belong together")
    checkpoint_location = CheckpointLocation.open(location)
    if not positions and at_ms is None:
        session.output.show(_shown(checkpoint_location, servers))
        return
    if servers is not None:
        raise click.UsageError("--lag shows positions: omit it to move them")
    storage = checkpoint_location.of_query()
    if at_ms is not None and broker is not None:
        positions = {**_positions_at(checkpoint_location, broker, at_ms), **positions}
    moved = move_offsets(storage, positions, settings=settings, force=force, dry_run=dry_run)
    session.output.show(MovedOffsetsResult(moved))


def _shown(location: CheckpointLocation, servers: str | None) -> OffsetsResult:
    found = location.find()
    assert found.record is not None
    sources = sources_of(found.metadata, spark_batch_of(found.metadata))
    ends = None if servers is None else read_end_offsets(servers, topics_of(sources))
    return OffsetsResult(location.path, found.record, sources, ends)


def _positions_at(location: CheckpointLocation, broker: str, at_ms: int) -> Mapping[str, str]:
    """Positions of the Kafka sources in the newest checkpoint at a time."""
    found = location.find()
    moved = {}
    for source in sources_of(found.metadata, spark_batch_of(found.metadata)):
        topics: dict[str, dict[str, int]] = {topic: {} for topic in topics_of([source])}
        if not topics:
            continue
        for (topic, partition), offset in sorted(read_offsets_at(broker, topics, at_ms).items()):
            topics[topic][str(partition)] = offset
        if missing := [topic for topic, partitions in topics.items() if not partitions]:
            raise click.UsageError(f"the broker has no topic {missing[0]}")
        moved[source.name] = json.dumps(topics, separators=(",", ":"))
    if not moved:
        raise click.UsageError("--to moves Kafka sources, and the query has none")
    return moved
