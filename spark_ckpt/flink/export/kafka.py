"""Positions in Kafka as state of Flink's `KafkaSource`. All numbers are big-endian.

SourceReaderState   list of byte[]: i32 version, i32 length, split (`SourceOperator`, `SimpleVersionedSerialization`)
split               version 0: UTF topic, i32 partition, i64 offset of the next record, i64 offset to stop at or the
                    minimum (`KafkaPartitionSplitSerializer`)
coordinator         i32 1, i32 version, i32 length, state of the enumerator (`SourceCoordinator`)
enumerator          version 1: i32 n, then for each assigned partition UTF topic, i32 partition
                    (`KafkaSourceEnumStateSerializer`, which reads its earlier versions too)

Without the state of the enumerator, the source would assign all partitions as new ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from spark_ckpt.flink.export.export_type import java_text
from spark_ckpt.flink.export.model import SOURCE_READER_STATE, FlinkOperator, FlinkOperatorState
from spark_ckpt.flink.streams.types.primitives import BYTES
from spark_ckpt.metadata.data_output import DataOutput
from spark_ckpt.spark_files.source_positions import KafkaPosition

_SPLIT_VERSION, _COORDINATOR_VERSION, _ENUMERATOR_VERSION = 0, 1, 1
_NO_STOPPING_OFFSET = -(1 << 63)


def kafka_source(
    uid: str, operator_id: bytes, positions: Sequence[KafkaPosition], max_parallelism: int
) -> FlinkOperator:
    """A `KafkaSource` that continues from these positions.

    Args:
        uid: its uid in the job.
        operator_id: id of the uid.
        positions: one per partition.
        max_parallelism: number of key groups of the job.
    """
    splits = [_versioned(_SPLIT_VERSION, _split(position)) for position in positions]
    state = FlinkOperatorState(SOURCE_READER_STATE, BYTES, splits)
    coordinator = _i32(_COORDINATOR_VERSION) + _versioned(_ENUMERATOR_VERSION, _assigned(positions))
    return FlinkOperator(
        uid,
        operator_id,
        None,
        max_parallelism=max_parallelism,
        operator_states=(state,),
        coordinator_state=coordinator,
    )


def starting_offsets(positions: Sequence[KafkaPosition]) -> str:
    """Expression in Java for the positions, for a `KafkaSource` that starts without state."""
    entries = [
        f"entry(new TopicPartition({java_text(position.topic)}, {position.partition}), {position.offset}L)"
        for position in positions
    ]
    return f"OffsetsInitializer.offsets(Map.ofEntries({', '.join(entries)}))"


def _split(position: KafkaPosition) -> bytes:
    out = DataOutput()
    _write_partition(out, position)
    out.i64(position.offset, "offset")
    out.i64(_NO_STOPPING_OFFSET, "stopping_offset")
    return out.getvalue()


def _assigned(positions: Sequence[KafkaPosition]) -> bytes:
    out = DataOutput()
    out.i32(len(positions), "partitions")
    for position in positions:
        _write_partition(out, position)
    return out.getvalue()


def _write_partition(out: DataOutput, position: KafkaPosition) -> None:
    out.utf(position.topic, "topic")
    out.i32(position.partition, "partition")


def _versioned(version: int, content: bytes) -> bytes:
    return _i32(version) + _i32(len(content)) + content


def _i32(number: int) -> bytes:
    return number.to_bytes(4, "big")
