"""A checkpoint location as Spark and the coordinator leave it, made without either: a stopped query with some state."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spark_ckpt import metadata as m
from spark_ckpt.clock import SystemClock
from spark_ckpt.completed import CheckpointRecord, FilesystemCompletedCheckpointStore, Owner
from spark_ckpt.coordinator.batch_state import SegmentTable, SparkBatch, StoreState
from spark_ckpt.coordinator.chains import Chain, ChainEntry, ChainTable
from spark_ckpt.coordinator.compose import NO_DATA
from spark_ckpt.coordinator.messages import StoreKey
from spark_ckpt.keygroups import factors, key_group_of
from spark_ckpt.operations.new_checkpoint import complete, with_chains
from spark_ckpt.operations.rescale_plan import state_ids
from spark_ckpt.operations.spark_entries import CommitEntry, OffsetEntry, OperatorMetadata
from spark_ckpt.operations.spark_log import QUERY, SparkLog
from spark_ckpt.segments import Section, SegmentKind, encode_segment
from spark_ckpt.storage import LocalStorage
from tests.state.locations import schema_v2

QUERY_ID = "4b2c1a0e-0d1f-4a52-9a3e-0a1b2c3d4e5f"
FACTORS = tuple(factors(4, 64))
ROWS = 40
ENDED = Owner(socket.gethostname(), 2**31 - 1, "t", QUERY_ID, "run")
"""A driver whose process is not there."""
OFFSETS = OffsetEntry(
    1,
    {"batchWatermarkMs": 5, "batchTimestampMs": 7, "conf": {"spark.sql.shuffle.partitions": "4"}},
    {"0": '{"logOffset":3}', "1": None},
)


def hash_of(row: int) -> int:
    """The made-up hash of a row's key."""
    return (row * 2654435761) % 2**31


@dataclass
class Query:
    """A query that has committed `batch_id`, and the checkpoint of it.

    Args:
        directory: its checkpoint location.
        names: Spark's names of its stateful operators; one store each.
        checkpoint_format: with 2, Spark's commits have the ids of states.
        offsets: Spark's offsets of the batch.
        metadata_version: of what Spark keeps of operators.
        inline: whether the state is inside `_metadata`.
        state_format_version: of its operators' state.
        owner: the driver that has run it.
    """

    directory: Path
    names: Sequence[str] = ("stateStoreSave",)
    checkpoint_format: int = 1
    offsets: OffsetEntry = OFFSETS
    metadata_version: int = 1
    inline: bool = False
    state_format_version: int | None = None
    batch_id: int = 6
    owner: Owner = ENDED
    record: CheckpointRecord = field(init=False)

    def __post_init__(self) -> None:
        self.storage = LocalStorage(self.directory)
        self.log = SparkLog(self.storage)
        self.storage.write_atomic(QUERY, f'{{"id":"{QUERY_ID}"}}'.encode())
        partitions = self.offsets.shuffle_partitions or 4
        for operator_id in range(len(self.names)):
            self.storage.write_atomic(f"state/{operator_id}/0/_metadata/schema", schema(["key"]))
            for partition in range(partitions):
                self.storage.make_directory(f"state/{operator_id}/{partition}")
            self._write_operator(operator_id, partitions)
        table: ChainTable = {
            StoreKey(operator_id, "default"): self._chains(1 if name == "globalLimit" else partitions)
            for operator_id, name in enumerate(self.names)
        }
        store = FilesystemCompletedCheckpointStore(self.storage, self.owner)
        store.recover()
        store.claim()
        batch = with_chains(self._batch(), table)
        clock = SystemClock()
        now_ms = clock.now_ms()
        self.record = complete(self.storage, store, self.owner, batch, table, self.offsets, (), None, now_ms, clock)
        self.commit = CommitEntry(1, {"nextBatchWatermarkMs": 9})
        if self.checkpoint_format == 2:
            self.commit = CommitEntry(2, self.commit.metadata).with_state_ids(state_ids(batch))
        self.log.add_offsets(self.batch_id, self.offsets)
        self.log.add_commit(self.batch_id, self.commit)

    def files(self) -> dict[str, bytes]:
        """All files of the location."""
        found = (path for path in self.directory.rglob("*") if path.is_file())
        return {str(path.relative_to(self.directory)): path.read_bytes() for path in found}

    def _write_operator(self, operator_id: int, partitions: int) -> None:
        store = {"storeName": "default", "numColsPrefixKey": 0, "numPartitions": partitions}
        info = {"operatorId": operator_id, "operatorName": self.names[operator_id]}
        metadata = OperatorMetadata(self.metadata_version, {"operatorInfo": info, "stateStoreInfo": [store]})
        if self.metadata_version == 1:
            self.storage.write_atomic(f"state/{operator_id}/_metadata/metadata", metadata.encode())
        else:
            self.log.add_operator_metadata(0, metadata)

    def _chains(self, partitions: int) -> list[Chain]:
        chains = []
        for partition in range(partitions):
            rows = [row for row in range(ROWS) if hash_of(row) % partitions == partition]
            groups: dict[int, list[tuple[bytes, bytes]]] = {}
            for row in rows:
                groups.setdefault(key_group_of(hash_of(row), FACTORS), []).append((row.to_bytes(8, "big"), b"v" * 8))
            segment = encode_segment(SegmentKind.DELTA, 7, {g: [Section(tuple(e))] for g, e in groups.items()})
            path = None if self.inline else f"shared/delta-{uuid.uuid4().hex}"
            if path is not None:
                self.storage.write_atomic(f"ckpt/{path}", segment.data)
            size = len(segment.data)
            data = segment.data if self.inline else b""
            entry = ChainEntry(False, 7, segment.key_groups, segment.offsets, size, path, size, data)
            chains.append(Chain(uuid.uuid4().hex, len(rows), (entry,)))
        return chains

    def _batch(self) -> SparkBatch:
        stores = [
            StoreState(operator_id, "default", name, self.state_format_version, (), (), SegmentTable.of([]))
            for operator_id, name in enumerate(self.names)
        ]
        return SparkBatch(
            batch_id=self.batch_id,
            version=self.batch_id + 1,
            query_id=QUERY_ID,
            run_id="run",
            spark_version="4.2.0",
            checkpoint_format=self.checkpoint_format,
            max_parallelism=64,
            key_group_factors=FACTORS,
            sources=("0", "1"),
            stores=tuple(stores),
        )


def schema(columns: Sequence[str]) -> bytes:
    """A state schema file whose keys have these columns."""
    fields = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in columns]
    return schema_v2({"type": "struct", "fields": fields}, {"type": "struct", "fields": []})


def blocks(operator: m.OperatorState) -> Iterator[tuple[int, int, tuple[str, int]]]:
    """Subtask, key group and place of each block that the handles of an operator have."""
    for index, subtask in operator.subtask_states.items():
        state = subtask.managed_keyed_state
        if state is None:
            continue
        for handle in (
            state.materialized_state_handles if isinstance(state, m.ChangelogStateBackendHandle) else (state,)
        ):
            assert isinstance(handle, m.KeyGroupsStateHandle)
            assert isinstance(handle.delegate_state_handle, m.RelativeFileStateHandle)
            for group, offset in enumerate(handle.group_range_offsets.offsets.tolist(), handle.key_group_range.start):
                if offset != NO_DATA:
                    yield index, group, (handle.delegate_state_handle.relative_path, offset)
