"""Positions of Flink's Kafka sources, for the query that continues from them.

A `KafkaSource` has a list state `SourceReaderState` of byte arrays, each `i32` version, `i32` length and the bytes of a
split (`SourceOperator`, `SimpleVersionedSerialization`): topic as `writeUTF`, `i32` partition, `i64` offset of the next
record, `i64` offset to stop at (`KafkaPartitionSplitSerializer`, version 0). Other sources of the same interface have
other splits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from spark_ckpt import metadata as m
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.flink.importing.errors import FlinkImportRefusedError
from spark_ckpt.flink.streams.operator_state import ManagedOperatorState
from spark_ckpt.flink.tables.catalog import FlinkCatalog
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.spark_files.entries import OffsetEntry
from spark_ckpt.spark_files.source_positions import KafkaPosition, positions_of

READER_STATE = "SourceReaderState"
"""List state with the splits of a source (`SourceOperator.SPLITS_STATE_DESC`)."""

_SPLIT_VERSION = 0
_EARLIEST, _COMMITTED = -2, -3
_LATEST = -1


@dataclass(frozen=True, slots=True)
class KafkaOffsets:
    """Positions of Flink's Kafka sources.

    Args:
        location: location of Flink's checkpoint, for errors.
        topics: by topic and partition, the offset of the next record. A negative one is no offset yet: -2 the
            earliest, -3 the one that the consumer group has committed.
    """

    location: str
    topics: Mapping[str, Mapping[int, int]]

    @property
    def starting_offsets(self) -> str:
        """JSON for the option `startingOffsets` of Spark's Kafka source."""
        return json.dumps(
            {topic: {str(number): parts[number] for number in sorted(parts)} for topic, parts in self.topics.items()},
            separators=(",", ":"),
        )


def kafka_offsets(catalog: FlinkCatalog) -> KafkaOffsets | None:
    """Positions of the Kafka sources of a checkpoint; None if it has none.

    Raises:
        FlinkImportRefusedError: two sources are at different positions of the same partition.
        StateStreamFormatError, StorageError: operator state is damaged, or cannot be read.
    """
    topics: dict[str, dict[int, int]] = {}
    for operator in catalog.metadata.operator_states:
        splits = [_split(element) for element in _elements(catalog, operator)]
        for split in splits:
            if split is None:
                continue
            known = topics.setdefault(split.topic, {}).setdefault(split.partition, split.offset)
            if known != split.offset:
                reason = f"two sources are at offsets {known} and {split.offset} of {split.topic}-{split.partition}"
                raise FlinkImportRefusedError(
                    catalog.location, f"{reason}; start the query at one of them, and pass --keep-offsets"
                )
    return KafkaOffsets(catalog.location, dict(sorted(topics.items()))) if topics else None


def with_offsets(entry: OffsetEntry, found: KafkaOffsets) -> tuple[OffsetEntry, bool]:
    """An entry of the offset log with the positions of Flink for its Kafka sources.

    Args:
        entry: the entry.
        found: positions of Flink.

    Returns:
        The entry, and False if it has no Kafka source with a topic of Flink.

    Raises:
        FlinkImportRefusedError: Flink has no position of some partition of such a source.
    """
    offsets = dict(entry.offsets)
    for source, text in entry.offsets.items():
        positions = positions_of(text or "")
        kafka = [position for position in positions if isinstance(position, KafkaPosition)]
        if len(kafka) != len(positions) or not any(position.topic in found.topics for position in kafka):
            continue
        offsets[source] = _source_offset(kafka, found)
    return replace(entry, offsets=offsets), offsets != dict(entry.offsets)


def _source_offset(positions: list[KafkaPosition], found: KafkaOffsets) -> str:
    topics: dict[str, dict[str, int]] = {}
    for position in positions:
        offset = found.topics.get(position.topic, {}).get(position.partition)
        if offset is None or offset < 0:
            has = "has no position" if offset is None else f"has not begun ({offset})"
            raise FlinkImportRefusedError(
                found.location,
                f"its source {has} in partition {position.partition} of topic {position.topic}, which the query reads. "
                "Start the query at the offsets that it should continue from, and pass --keep-offsets",
            )
        topics.setdefault(position.topic, {})[str(position.partition)] = offset
    # Partitions that the query has not seen begin at their first record, unless Flink knows more.
    for topic, partitions in topics.items():
        known = found.topics[topic]
        partitions |= {str(number): offset for number, offset in known.items() if offset >= 0}
    return json.dumps(topics, separators=(",", ":"))


def _elements(catalog: FlinkCatalog, operator: m.OperatorState) -> Iterator[bytes]:
    """Elements of the state of a source's readers."""
    for _, subtask in sorted(operator.subtask_states.items()):
        handle = subtask.managed_operator_state
        if handle is None or READER_STATE not in handle.state_name_to_partition_offsets:
            continue
        with catalog.files.open(handle.delegate_state_handle) as stream:
            state = ManagedOperatorState(handle, stream)
            for entry in state.entries():
                (element,) = entry.parts.values()
                if state.states[entry.state].name == READER_STATE and isinstance(element.value, bytes):
                    yield element.value


def _split(element: bytes) -> KafkaPosition | None:
    """The position in a split; None for that of another source."""
    data = DataInput(element, READER_STATE)
    try:
        version, length = data.i32("version"), data.i32("length")
        if version != _SPLIT_VERSION or length != data.remaining:
            return None
        topic, partition = data.utf("topic"), data.i32("partition")
        offset = data.i64("offset")
        data.i64("stopping offset")
    except SparkCkptError:
        return None
    is_offset = offset >= 0 or offset in (_EARLIEST, _COMMITTED, _LATEST)
    if data.remaining or not topic or partition < 0 or not is_offset:
        return None
    return KafkaPosition(topic, partition, offset)
