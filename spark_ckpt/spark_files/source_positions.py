"""Positions in the sources of a query: Spark's offsets as typed values, one per partition of the source.

Spark records an offset as the source's own JSON, without the name of the connector. So the kind of a position is
inferred from the shape of the JSON, and a connector that writes the same shape as another has the kind of that one.
Any other shape is an `UnknownPosition`, with the JSON unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar


class SourcePosition:
    """Position in a source, or in one partition of it. The next batch starts here.

    Attributes:
        kind: kind of the source, inferred from the shape of the offset.
    """

    __slots__ = ()

    kind: ClassVar[str]

    @property
    def partition_key(self) -> tuple[str | int, ...]:
        """Identity of the partition within the source; empty for a source with a single position."""
        return ()

    @property
    def key(self) -> tuple[str | int, ...]:
        """Identity of the position within the source, and its place in the order of positions: kind and partition."""
        return self.kind, *self.partition_key


@dataclass(frozen=True, slots=True)
class KafkaPosition(SourcePosition):
    """Position in a partition of a Kafka topic (`KafkaSourceOffset`).

    Args:
        topic: name of the topic.
        partition: number of the partition.
        offset: offset of the next record to read.
    """

    kind: ClassVar[str] = "kafka"

    topic: str
    partition: int
    offset: int

    @property
    def partition_key(self) -> tuple[str | int, ...]:
        """Topic and partition."""
        return self.topic, self.partition


@dataclass(frozen=True, slots=True)
class DeltaPosition(SourcePosition):
    """Position in the log of a Delta table (`DeltaSourceOffset`).

    Args:
        table_id: id of the table (`reservoirId`).
        version: version of the table (`reservoirVersion`).
        index: index of the last file read in that version, as Delta writes it; negative before the first file.
        is_initial_snapshot: True while the query reads the snapshot of its first version, not the changes since
            (`isStartingVersion`).
    """

    kind: ClassVar[str] = "delta"

    table_id: str
    version: int
    index: int
    is_initial_snapshot: bool


@dataclass(frozen=True, slots=True)
class FilePosition(SourcePosition):
    """Position in the log of a file source (`FileStreamSourceOffset`), which lists the files of each entry.

    Args:
        log_offset: last entry read of the log, `sources/<source>/<entry>`; -1 before the first one.
    """

    kind: ClassVar[str] = "file"

    log_offset: int


@dataclass(frozen=True, slots=True)
class RateMicroBatchPosition(SourcePosition):
    """Position in the source `rate-micro-batch` (`RatePerMicroBatchStreamOffset`).

    Args:
        offset: number of rows before the next one.
        timestamp_ms: time of the next batch's rows, in milliseconds since 1970 UTC.
    """

    kind: ClassVar[str] = "rate-micro-batch"

    offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class PartitionPosition(SourcePosition):
    """Position in a numbered partition (`LowLatencyMemoryStreamOffset`).

    Args:
        partition: number of the partition.
        offset: number of rows before the next one.
    """

    kind: ClassVar[str] = "partitions"

    partition: int
    offset: int

    @property
    def partition_key(self) -> tuple[str | int, ...]:
        """The partition."""
        return (self.partition,)


@dataclass(frozen=True, slots=True)
class NumberPosition(SourcePosition):
    """Position that is a single number (`LongOffset`): of the sources `rate`, `memory` and `socket`, among others.

    Args:
        offset: the number. Its unit depends on the source; it is seconds since the start for `rate`.
    """

    kind: ClassVar[str] = "number"

    offset: int


@dataclass(frozen=True, slots=True)
class UnknownPosition(SourcePosition):
    """Position of any other source.

    Args:
        offset: text of the offset, usually JSON.
    """

    kind: ClassVar[str] = "unknown"

    offset: str


def positions_of(offset: str) -> tuple[SourcePosition, ...]:
    """Positions in an offset of a source, ascending by topic and partition. Never fails; see `UnknownPosition`.

    Args:
        offset: text of the offset in Spark's offset log, or of an element of it in our operator state.
    """
    try:
        value = json.loads(offset)
    except (ValueError, RecursionError):
        return (UnknownPosition(offset),)
    if _is_integer(value):
        return (NumberPosition(value),)
    if not isinstance(value, dict):
        return (UnknownPosition(offset),)
    return _by_partition(value) or _single(value) or (UnknownPosition(offset),)


def _by_partition(value: Mapping[str, Any]) -> tuple[SourcePosition, ...]:
    """Positions by topic and partition, or by partition alone; empty if the value has another shape."""
    if _are_partitions(value):
        return tuple(PartitionPosition(partition, offset) for partition, offset in _sorted(value))
    if not value or not all(_are_partitions(partitions) for partitions in value.values()):
        return ()
    return tuple(
        KafkaPosition(topic, partition, offset)
        for topic, partitions in sorted(value.items())
        for partition, offset in _sorted(partitions)
    )


def _single(value: Mapping[str, Any]) -> tuple[SourcePosition, ...]:
    """Position of a source with a single one; empty if the value has another shape."""
    match value:
        case {
            "reservoirId": str(table),
            "reservoirVersion": version,
            "index": index,
            "isStartingVersion": bool(is_initial),
        } if _is_integer(version) and _is_integer(index):
            return (DeltaPosition(table, version, index, is_initial),)
        case {"logOffset": entry, **others} if _is_integer(entry) and not others:
            return (FilePosition(entry),)
        case {"offset": offset, "timestamp": timestamp, **others} if not others:
            if _is_integer(offset) and _is_integer(timestamp):
                return (RateMicroBatchPosition(offset, timestamp),)
    return ()


def _are_partitions(value: object) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(name.isascii() and name.isdigit() and _is_integer(offset) for name, offset in value.items())
    )


def _sorted(partitions: Mapping[str, int]) -> list[tuple[int, int]]:
    return sorted((int(name), offset) for name, offset in partitions.items())


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
