"""Rules for a new position of a source. No I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from spark_ckpt.spark_files.source_positions import (
    DeltaPosition,
    FilePosition,
    KafkaPosition,
    NumberPosition,
    PartitionPosition,
    RateMicroBatchPosition,
    SourcePosition,
    positions_of,
)


def why_not(source: str, before: str | None, after: str, last_entry: int | None = None) -> str | None:
    """Reason why a source cannot continue at a position; None if it can.

    Another cluster or another topic has the shape of the same source. A partition of a topic may not be left out: Spark
    would take it for new, and read it from its earliest offset.

    Args:
        source: name of the source.
        before: its offset in Spark's log; None before its first one.
        after: the new offset.
        last_entry: newest entry of its log, if it is a file source.
    """
    old, new = () if before is None else positions_of(before), positions_of(after)
    kinds = [{position.kind for position in positions} for positions in (old, new)]
    if "\n" in after or not after.strip():
        return f"source {source}: the position must be one line"
    if before is not None and kinds[0] != kinds[1]:
        return f"source {source} has a position like {before}; {after} is one of another kind of source"
    for position in new:
        if (reason := _why_not_there(position, last_entry)) is not None:
            return f"source {source}: {reason}"
    if missing := _missing_partitions(old, new):
        topic, partitions = missing
        numbers = ", ".join(map(str, partitions))
        return f"source {source}: the position names topic {topic}, but not its partitions {numbers}; name all"
    tables = {position.table_id for position in (*old, *new) if isinstance(position, DeltaPosition)}
    if len(tables) > 1:
        return f"source {source}: {' and '.join(sorted(tables))} are two Delta tables"
    return None


def only_advances(before: str | None, after: str) -> bool:
    """True if no part of a source goes back.

    A source of the first API is asked for the data between the last two entries of the offset log when a query starts
    (`MicroBatchExecution.populateStartOffsets`), and fails if the last one is earlier.

    Args:
        before: its offset in Spark's log; None before its first one.
        after: the new offset.
    """
    if before is None:
        return False
    old = {position.key: position for position in positions_of(before)}
    new = {position.key: position for position in positions_of(after)}
    if old.keys() - new.keys():
        return False
    return all(old[key] == new[key] or () < _rank(old[key]) <= _rank(new[key]) for key in old)


def _rank(position: SourcePosition) -> tuple[int, ...]:
    """Place of a position among those of its partition; empty if they have no order."""
    match position:
        case KafkaPosition() | PartitionPosition() | NumberPosition() | RateMicroBatchPosition():
            return (position.offset,)
        case FilePosition():
            return (position.log_offset,)
        case DeltaPosition():
            return position.version, position.index
    return ()


def _why_not_there(position: SourcePosition, last_entry: int | None) -> str | None:
    match position:
        case KafkaPosition(offset=offset) if offset < 0:
            return (
                f"{offset} is no offset of topic {position.topic}; --to earliest and --to latest ask the broker for one"
            )
        case FilePosition(log_offset=entry) if last_entry is not None and not -1 <= entry <= last_entry:
            return (
                f"its log has the entries 0 to {last_entry}, so a position is -1 (all files again) to {last_entry}; "
                f"found {entry}"
            )
        case FilePosition(log_offset=entry) if entry < -1:
            return f"a position is at least -1 (all files again); found {entry}"
        case NumberPosition(offset=offset) | PartitionPosition(offset=offset) if offset < 0:
            return f"{offset} is negative"
    return None


def _missing_partitions(
    old: tuple[SourcePosition, ...], new: tuple[SourcePosition, ...]
) -> tuple[str, list[int]] | None:
    had, has = _by_topic(old), _by_topic(new)
    for topic in had.keys() & has.keys():
        if missing := had[topic] - has[topic]:
            return topic, sorted(missing)
    return None


def _by_topic(positions: tuple[SourcePosition, ...]) -> Mapping[str, set[int]]:
    topics: dict[str, set[int]] = defaultdict(set)
    for position in positions:
        if isinstance(position, KafkaPosition):
            topics[position.topic].add(position.partition)
    return topics
