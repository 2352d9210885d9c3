"""Sources and their positions, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from spark_ckpt.checkpoint.sources import SourceState
from spark_ckpt.cli.end_offsets import EndOffsets
from spark_ckpt.cli.formatting import plain, shortened
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import Json, JsonObject, decoded_payload
from spark_ckpt.cli.terminal import Column, Table, number_column
from spark_ckpt.redaction import redacted, redacted_values
from spark_ckpt.spark_files.source_positions import (
    DeltaPosition,
    FilePosition,
    KafkaPosition,
    NumberPosition,
    PartitionPosition,
    RateMicroBatchPosition,
    SourcePosition,
    UnknownPosition,
)
from spark_ckpt.state.source_changes import PositionChange

POSITIONS = "source positions:"
"""Line above a table of positions."""

_NONE = "-"

_SOURCE_COLUMNS = (
    Column("SOURCE"),
    Column("KIND"),
    Column("TOPIC"),
    number_column("PARTITION"),
)


def source_json(source: SourceState, ends: EndOffsets | None = None) -> JsonObject:
    """The name and kind of a source, what it reads if that is known, and its positions, with their lag given end
    offsets."""
    text = {} if source.text is None else {"text": source.text}
    positions = [position_json(position, ends) for position in source.positions]
    return described("source", source, positions=positions, **text)


def position_json(position: SourcePosition | None, ends: EndOffsets | None = None) -> Json:
    """The fields of a position, with its kind as `type`; None for None. An unknown offset is JSON if possible.

    With end offsets, a position in Kafka has `end_offset` and `lag` as well.
    """
    if position is None:
        return None
    if isinstance(position, UnknownPosition):
        described: JsonObject = {"offset": _unknown_json(position)}
    else:
        described = asdict(position)  # type: ignore[call-overload]
    if ends is not None and isinstance(position, KafkaPosition):
        described |= {"end_offset": ends.of(position), "lag": ends.lag_of(position)}
    return {"type": position.kind, **described}


def change_json(change: PositionChange) -> JsonObject:
    """The source and kind of a changed position, and the position before and after."""
    before, after = position_json(change.before), position_json(change.after)
    return described("source_change", change, before=before, after=after)


def _unknown_json(position: UnknownPosition) -> Json:
    # The rows of `diff` are printed without redaction.
    value: Json = redacted_values(decoded_payload(position.offset.encode(errors="replace")))
    return value


def position_line(position: SourcePosition, ends: EndOffsets | None = None) -> str:
    """A position as one line: topic, partition and offset, and the lag if the end offsets are known."""
    topic, partition = _topic_and_partition(position)
    parts = (
        *(() if topic is None else (f"topic {plain(topic)}",)),
        *(() if partition is None else (f"partition {partition}",)),
        offset_text(position) if isinstance(position, DeltaPosition) else f"offset {offset_text(position)}",
        *(() if ends is None or not isinstance(position, KafkaPosition) else (_lag_text(position, ends),)),
    )
    return ", ".join(parts)


def _lag_text(position: KafkaPosition, ends: EndOffsets) -> str:
    end, lag = ends.of(position), ends.lag_of(position)
    return "no such partition at the broker" if lag is None else f"end offset {end}, lag {lag}"


def offset_text(position: SourcePosition) -> str:
    """The offset of a position, without topic and partition."""
    match position:
        case KafkaPosition() | PartitionPosition() | NumberPosition():
            return str(position.offset)
        case FilePosition():
            return str(position.log_offset)
        case DeltaPosition():
            snapshot = ", initial snapshot" if position.is_initial_snapshot else ""
            return f"table {plain(position.table_id)}, version {position.version}, index {position.index}{snapshot}"
        case RateMicroBatchPosition():
            return f"{position.offset}, timestamp {position.timestamp_ms} ms"
        case UnknownPosition():
            return plain(shortened(redacted(position.offset)))
    raise TypeError(f"no text for a {type(position).__name__}")


def source_table(checkpoints: Iterable[tuple[int, Sequence[SourceState]]], ends: EndOffsets | None = None) -> Table:
    """A table with one record per position.

    Args:
        checkpoints: checkpoint id and sources of each checkpoint.
        ends: end offsets, for two more columns with the end offset and the lag; None without them.
    """
    columns = [number_column("ID"), *_SOURCE_COLUMNS, number_column("OFFSET")]
    if ends is not None:
        columns += [number_column("END OFFSET"), number_column("LAG")]
    table = Table(columns)
    for checkpoint_id, sources in checkpoints:
        for source in sources:
            if not source.positions:
                table.add_row(str(checkpoint_id), source.name, *[_NONE] * (len(columns) - 2))
            for position in source.positions:
                cells = _position_cells(source.name, position)
                table.add_row(str(checkpoint_id), *cells, offset_text(position), *_lag_cells(position, ends))
    return table


def change_table(changes: Iterable[PositionChange]) -> Table:
    """A table with one record per changed position."""
    offsets = (number_column("BEFORE"), number_column("AFTER"))
    table = Table([Column("CHANGE"), *_SOURCE_COLUMNS, *offsets])
    for change in changes:
        texts = (_NONE if each is None else offset_text(each) for each in (change.before, change.after))
        table.add_row(change.change, *_position_cells(change.source, change.position), *texts)
    return table


def _lag_cells(position: SourcePosition, ends: EndOffsets | None) -> tuple[str, ...]:
    if ends is None:
        return ()
    if not isinstance(position, KafkaPosition):
        return _NONE, _NONE
    return tuple(_NONE if number is None else str(number) for number in (ends.of(position), ends.lag_of(position)))


def _position_cells(source: str, position: SourcePosition) -> tuple[str, str, str, str]:
    topic, partition = _topic_and_partition(position)
    return (
        source,
        position.kind,
        _NONE if topic is None else topic,
        _NONE if partition is None else str(partition),
    )


def _topic_and_partition(position: SourcePosition) -> tuple[str | None, int | None]:
    match position:
        case KafkaPosition():
            return position.topic, position.partition
        case PartitionPosition():
            return None, position.partition
    return None, None
