"""A checkpoint location as the coordinator leaves it, made without Spark."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from spark_ckpt.completed import (
    CheckpointRecord,
    FilesystemCompletedCheckpointStore,
    MetadataReference,
    Owner,
)
from spark_ckpt.coordinator.batch_state import SegmentTable, SparkBatch, StoreState
from spark_ckpt.coordinator.chains import Chain, ChainEntry, ChainTable
from spark_ckpt.coordinator.compose import compose
from spark_ckpt.coordinator.messages import Source, StoreKey
from spark_ckpt.metadata import dumps
from spark_ckpt.storage import LocalStorage

OWNER = Owner("node-1", 4711, "token", "query-1", "run-1")
KEY = StoreKey(0, "default")
OFFSETS = b'v1\n{"batchWatermarkMs":0}\n{"orders":{"0":17,"1":40}}'
FIRST_COMPLETED_MS = 1_700_000_000_000


def chains(version: int) -> list[Chain]:
    """Two subtasks: a base in a shared file with an inline delta, and one without any row."""
    groups = np.array([0, 2], dtype=np.uint32)
    base = ChainEntry(True, version - 1, groups, np.array([0, 500]), 1000, "shared/base-1", 4096)
    delta = ChainEntry(False, version, groups[:1], np.array([0]), 40, None, 40, b"d" * 40)
    return [Chain(f"{version:031x}a", 12, (base, delta)), Chain(f"{version:031x}b", 0)]


def make_batch(version: int) -> SparkBatch:
    parts = chains(version)
    store = StoreState(
        operator_id=0,
        store="default",
        name="stateStoreSave",
        state_format_version=2,
        rows=tuple(chain.rows for chain in parts),
        ckpt_ids=tuple(chain.ckpt_id for chain in parts),
        segments=SegmentTable.of(parts),
    )
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
        sources=("kafka",),
        stores=(store,),
    )


def make_location(directory: Path, batches: int = 2) -> str:
    """A checkpoint location with a claim (id 1) and so many checkpoints (ids from 2), of batches from 1."""
    storage = LocalStorage(directory)
    store = FilesystemCompletedCheckpointStore(storage, OWNER)
    store.recover()
    store.claim()
    for number in range(batches):
        batch = make_batch(number + 2)
        complete(storage, store, batch, {KEY: chains(batch.version)}, FIRST_COMPLETED_MS + 1000 * number)
    return str(directory)


def complete(
    storage: LocalStorage,
    store: FilesystemCompletedCheckpointStore,
    batch: SparkBatch,
    table: ChainTable,
    timestamp_ms: int = FIRST_COMPLETED_MS,
    offsets: bytes = OFFSETS,
) -> int:
    """Completes a checkpoint, and tells its id."""
    checkpoint_id = store.counter.get()
    sources = [Source("kafka", '{"orders":{"0":17,"1":40}}')]
    content = dumps(compose(checkpoint_id, batch, table, sources, offsets))
    path = f"chk-{checkpoint_id}/_metadata"
    storage.write_atomic(f"ckpt/{path}", content)
    operators = batch.summaries()
    record = CheckpointRecord(
        id=checkpoint_id,
        generation=store.generation,
        owner=OWNER,
        attempt="",
        batch_id=batch.batch_id,
        version=batch.version,
        timestamp_ms=timestamp_ms,
        duration_ms=1234,
        state_bytes=sum(operator.state_bytes for operator in operators),
        new_bytes=3 * 1024 * 1024,
        rows=sum(operator.rows for operator in operators),
        operators=operators,
        metadata=MetadataReference(path, len(content), hashlib.sha256(content).hexdigest()),
    )
    store.add(lambda _, attempt: replace(record, attempt=attempt))
    return checkpoint_id
