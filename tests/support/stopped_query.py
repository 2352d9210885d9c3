"""The checkpoint location of a stopped query with some state, made without Spark and without the coordinator."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spark_ckpt import metadata as m
from spark_ckpt.checkpoint.batch import Source, SparkBatch, state_ids
from spark_ckpt.checkpoint.chains import Chain, ChainTable
from spark_ckpt.checkpoint.compose import NO_DATA
from spark_ckpt.clock import SystemClock
from spark_ckpt.completed import CheckpointRecord, Owner
from spark_ckpt.format.key_groups import factors, key_group_of
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.format.segments import Section, SegmentKind
from spark_ckpt.spark_files.entries import CommitEntry, OffsetEntry
from spark_ckpt.spark_files.logs import SparkLog
from spark_ckpt.storage import LocalStorage
from tests.support.locations import LocationBuilder, store_state
from tests.support.state_location import schema_v2

QUERY_ID = "4b2c1a0e-0d1f-4a52-9a3e-0a1b2c3d4e5f"
FACTORS = tuple(factors(4, 64))
ROWS = 40
ENDED = Owner(socket.gethostname(), 2**31 - 1, "t", QUERY_ID, "run")
"""A driver whose process has ended."""
OFFSETS = OffsetEntry(
    1,
    {"batchWatermarkMs": 5, "batchTimestampMs": 7, "conf": {"spark.sql.shuffle.partitions": "4"}},
    {"0": '{"logOffset":3}', "1": None},
)


def hash_of(row: int) -> int:
    """Made-up hash of a row's key."""
    return (row * 2654435761) % 2**31


@dataclass
class StoppedQuery:
    """A query that has committed `batch_id`, and that batch's checkpoint.

    Args:
        directory: checkpoint location of the query.
        names: Spark's names of its stateful operators; one store each.
        checkpoint_format: with 2, Spark's commits carry state ids.
        offsets: Spark's offsets of the batch.
        metadata_version: version of Spark's operator metadata.
        inline: whether the state is inside `_metadata`.
        state_format_version: version of the operators' state format.
        owner: the driver that ran the query.
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
        self._builder = LocationBuilder(self.storage, self.owner).query(QUERY_ID)
        partitions = self.offsets.shuffle_partitions or 4
        chains = {}
        for operator_id, name in enumerate(self.names):
            schemas = {0: schema(["key"])}
            self._builder.operator(
                operator_id, name, partitions=partitions, version=self.metadata_version, schemas=schemas
            )
            for partition in range(partitions):
                self.storage.make_directory(f"state/{operator_id}/{partition}")
            chains[StoreKey(operator_id, "default")] = self._chains(1 if name == "globalLimit" else partitions)
        batch = self._batch(chains)
        sources = [Source(name, self.offsets.offsets.get(name)) for name in batch.sources]
        now_ms = SystemClock().now_ms()
        self.record = self._builder.complete(batch, chains, self.offsets.encode(), sources, now_ms, statistics=True)
        self.commit = CommitEntry(1, {"nextBatchWatermarkMs": 9})
        if self.checkpoint_format == 2:
            self.commit = CommitEntry(2, self.commit.metadata).with_state_ids(state_ids(batch))
        for entry in range(4):  # those of the file source up to the one that `OFFSETS` names
            self.storage.write_atomic(f"sources/0/{entry}", b"v1\n")
        self._builder.batch(self.batch_id, self.offsets, self.commit)

    def files(self) -> dict[str, bytes]:
        """Content of every file of the location, by name."""
        found = (path for path in self.directory.rglob("*") if path.is_file())
        return {str(path.relative_to(self.directory)): path.read_bytes() for path in found}

    def _chains(self, partitions: int) -> list[Chain]:
        chains = []
        for partition in range(partitions):
            rows = [row for row in range(ROWS) if hash_of(row) % partitions == partition]
            groups: dict[int, list[tuple[bytes, bytes]]] = {}
            for row in rows:
                groups.setdefault(key_group_of(hash_of(row), FACTORS), []).append((row.to_bytes(8, "big"), b"v" * 8))
            sections = {group: [Section(tuple(entries))] for group, entries in groups.items()}
            entry = self._builder.segment(SegmentKind.DELTA, 7, sections, inline=self.inline)
            assert entry is not None
            chains.append(Chain(str(uuid.uuid4()), len(rows), (entry,)))
        return chains

    def _batch(self, chains: ChainTable) -> SparkBatch:
        stores = [
            store_state(key, self.names[key.operator_id], chains[key], self.state_format_version) for key in chains
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
    """Subtask, key group and position of each block in the handles of an operator."""
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
