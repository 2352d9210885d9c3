"""The completed-checkpoint store that a query's settings name."""

from __future__ import annotations

from functools import partial

from spark_ckpt.clock import Clock
from spark_ckpt.completed import (
    CompletedCheckpointStore,
    FilesystemCompletedCheckpointStore,
    Owner,
    StandaloneCompletedCheckpointStore,
)
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.coordinator.scan import scan
from spark_ckpt.storage import Storage


def make_store(config: CheckpointConfig, storage: Storage, owner: Owner, clock: Clock) -> CompletedCheckpointStore:
    """The store, neither recovered nor claimed."""
    if config.store == "standalone":
        return StandaloneCompletedCheckpointStore(storage, partial(scan, storage), owner, clock)
    return FilesystemCompletedCheckpointStore(storage, owner, clock=clock)
