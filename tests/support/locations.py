"""Checkpoint locations built piece by piece, without Spark and without the coordinator."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from spark_ckpt.checkpoint.batch import Source, SparkBatch, StoreState
from spark_ckpt.checkpoint.chains import Chain, ChainTable
from spark_ckpt.checkpoint.encode import encode_metadata
from spark_ckpt.checkpoint.segment_table import SegmentTable
from spark_ckpt.checkpoint.statistics import CheckpointStats, CheckpointStatus, StateSize
from spark_ckpt.checkpoint.statistics_state import statistics_states
from spark_ckpt.completed import (
    CheckpointRecord,
    FilesystemCompletedCheckpointStore,
    MetadataReference,
    Owner,
)
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.format.segments import Section, SegmentKind
from spark_ckpt.metadata import MasterState
from spark_ckpt.spark_files.entries import CommitEntry, OffsetEntry
from spark_ckpt.spark_files.logs import QUERY, SparkLog
from spark_ckpt.storage import LocalStorage, Storage
from tests.support.segments import encode_segment, segment_ref

OWNER = Owner("node-1", 4711, "token", "query-1", "run-1")
KEY = StoreKey(0, "default")
OFFSETS = b'v1\n{"batchWatermarkMs":0}\n{"orders":{"0":17,"1":40}}'
ORDERS = (Source("kafka", '{"orders":{"0":17,"1":40}}'),)
FIRST_COMPLETED_MS = 1_700_000_000_000
DURATION_MS = 1234
NEW_BYTES = 3 * 1024 * 1024


class LocationBuilder:
    """Builds a checkpoint location: Spark's files, state files, and completed checkpoints.

        LocationBuilder(storage).query("4b2c").operator(0, "stateStoreSave").batch(6, offsets).complete(batch, table)

    Args:
        storage: storage of the location.
        owner: the driver that claims the log of completed checkpoints, through `claim` or with the first checkpoint.
    """

    def __init__(self, storage: Storage, owner: Owner = OWNER) -> None:
        self.storage = storage
        self.owner = owner

    @cached_property
    def checkpoints(self) -> FilesystemCompletedCheckpointStore:
        """The claimed log of completed checkpoints."""
        store = FilesystemCompletedCheckpointStore(self.storage, self.owner)
        store.recover()
        store.claim()
        return store

    def claim(self) -> LocationBuilder:
        """Writes the owner's claim, for a location without checkpoints; `complete` claims by itself."""
        assert self.checkpoints.generation
        return self

    def query(self, query_id: str) -> LocationBuilder:
        """Writes Spark's file with the query id."""
        self.storage.write_atomic(QUERY, json.dumps({"id": query_id}).encode())
        return self

    def operator(
        self,
        operator_id: int,
        name: str,
        stores: Sequence[str] = ("default",),
        partitions: int = 4,
        *,
        version: int = 1,
        schemas: Mapping[int, bytes] | None = None,
    ) -> LocationBuilder:
        """Writes Spark's files of a stateful operator.

        Args:
            operator_id: Spark's number of the operator.
            name: Spark's short name of the operator.
            stores: names of its stores.
            partitions: number of partitions of each store.
            version: version of the operator metadata, 1 or 2.
            schemas: content of state schema files of the default store, by partition.
        """
        infos = [{"storeName": store, "numColsPrefixKey": 0, "numPartitions": partitions} for store in stores]
        fields = {"operatorInfo": {"operatorId": operator_id, "operatorName": name}, "stateStoreInfo": infos}
        return self.operator_metadata(operator_id, fields, version, schemas)

    def operator_metadata(
        self,
        operator_id: int,
        fields: Mapping[str, object],
        version: int,
        schemas: Mapping[int, bytes] | None = None,
    ) -> LocationBuilder:
        """Like `operator`, with arbitrary metadata."""
        directory = f"state/{operator_id}"
        file = "metadata" if version == 1 else "v2/0"
        self.storage.write_atomic(f"{directory}/_metadata/{file}", f"v{version}\n{json.dumps(fields)}".encode())
        for partition, schema in (schemas or {}).items():
            self.storage.write_atomic(f"{directory}/{partition}/_metadata/schema", schema)
        return self

    def batch(self, batch_id: int, offsets: OffsetEntry, commit: CommitEntry | None = None) -> LocationBuilder:
        """Writes Spark's entries of a batch; without `commit` the batch is planned but not committed."""
        log = SparkLog(self.storage)
        log.add_offsets(batch_id, offsets)
        if commit is not None:
            log.add_commit(batch_id, commit)
        return self

    def segment(
        self, kind: SegmentKind, version: int, groups: Mapping[int, Sequence[Section]], *, inline: bool
    ) -> SegmentRef | None:
        """A segment with sections by key group, in a file of its own unless inline; None if it would be empty."""
        segment = encode_segment(kind, version, groups)
        size = len(segment.data)
        if not size:
            return None
        path = None if inline else f"shared/{kind.name.lower()}-{uuid.uuid4().hex}"
        if path is not None:
            self.storage.write_atomic(f"ckpt/{path}", segment.data)
        data = segment.data if inline else b""
        first_version = 0 if kind is SegmentKind.BASE else version
        return segment_ref(first_version, version, segment.key_groups, segment.offsets, size, path, size, data)

    def complete(
        self,
        batch: SparkBatch,
        table: ChainTable,
        offsets: bytes = OFFSETS,
        sources: Sequence[Source] = ORDERS,
        timestamp_ms: int = FIRST_COMPLETED_MS,
        *,
        statistics: bool = False,
    ) -> CheckpointRecord:
        """Completes a checkpoint, with made-up figures for its duration and new bytes.

        Args:
            batch: the batch that the checkpoint covers.
            table: the chains of all subtasks.
            offsets: Spark's offset log.
            sources: the sources, with their offsets.
            timestamp_ms: completion time, in milliseconds since 1970 UTC.
            statistics: whether `_metadata` includes the checkpoint's statistics.
        """
        checkpoint_id = self.checkpoints.counter.get()
        operators = batch.summaries()
        size = StateSize(sum(each.state_bytes for each in operators), NEW_BYTES, sum(each.rows for each in operators))
        states: tuple[MasterState, ...] = ()
        if statistics:
            stats = CheckpointStats(
                status=CheckpointStatus.COMPLETED,
                batch_id=batch.batch_id,
                version=batch.version,
                triggered_ms=timestamp_ms - DURATION_MS,
                duration_ms=DURATION_MS,
                acks=0,
                expected=0,
                checkpoint_id=checkpoint_id,
                size=size,
            )
            states = statistics_states((stats,), ())
        content = encode_metadata(checkpoint_id, batch, table, sources, offsets, states)
        path = f"chk-{checkpoint_id}/_metadata"
        self.storage.write_atomic(f"ckpt/{path}", content)
        record = CheckpointRecord(
            id=checkpoint_id,
            generation=self.checkpoints.generation,
            owner=self.owner,
            attempt="",
            batch_id=batch.batch_id,
            version=batch.version,
            timestamp_ms=timestamp_ms,
            duration_ms=DURATION_MS,
            state_bytes=size.state_bytes,
            new_bytes=NEW_BYTES,
            rows=size.rows,
            operators=operators,
            metadata=MetadataReference(path, len(content), hashlib.sha256(content).hexdigest()),
        )
        return self.checkpoints.add(lambda _, attempt: replace(record, attempt=attempt))


def store_state(key: StoreKey, name: str, chains: Sequence[Chain], state_format: int | None) -> StoreState:
    """State of an operator's store, with one chain per subtask."""
    return StoreState(
        operator_id=key.operator_id,
        store=key.store,
        name=name,
        state_format_version=state_format,
        rows=tuple(chain.rows for chain in chains),
        state_ids=tuple(chain.state_id for chain in chains),
        segments=SegmentTable.of(chains),
    )


def chains(version: int) -> list[Chain]:
    """Chains of two subtasks: one with a base in a shared file and an inline delta, one without any rows."""
    groups = np.array([0, 2], dtype=np.uint32)
    base = segment_ref(0, version - 1, groups, np.array([0, 500]), 1000, "shared/base-1", 4096)
    delta = segment_ref(version, version, groups[:1], np.array([0]), 40, data=b"d" * 40)
    ids = [str(uuid.UUID(int=16 * version + digit)) for digit in (10, 11)]
    return [Chain(ids[0], 12, (base, delta)), Chain(ids[1], 0)]


def make_batch(version: int, sources: Sequence[Source] = ORDERS) -> SparkBatch:
    return SparkBatch(
        batch_id=version - 1,
        version=version,
        query_id=OWNER.query_id,
        run_id=OWNER.run_id,
        spark_version="4.2.0",
        checkpoint_format=1,
        max_parallelism=8,
        key_group_factors=(2, 2, 2),
        query_name="orders by [hour]",
        sources=tuple(source.name for source in sources),
        stores=(store_state(KEY, "stateStoreSave", chains(version), 2),),
    )


def make_location(directory: Path, batches: int = 2, sources: Sequence[Source] = ORDERS) -> str:
    """A checkpoint location with a claim (id 1) and `batches` checkpoints (ids from 2), of the batches from 1."""
    builder = LocationBuilder(LocalStorage(directory)).claim()
    for number in range(batches):
        batch = make_batch(number + 2, sources)
        time = FIRST_COMPLETED_MS + 1000 * number
        builder.complete(batch, {KEY: chains(batch.version)}, sources=sources, timestamp_ms=time)
    return str(directory)
