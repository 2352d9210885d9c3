"""The completed-checkpoint store of a query, by its settings."""

from __future__ import annotations

import hashlib
from functools import partial

from spark_ckpt.checkpoint.batch import STANDALONE_PREFIX
from spark_ckpt.clock import Clock
from spark_ckpt.completed import (
    CompletedCheckpointStore,
    FilesystemCompletedCheckpointStore,
    Owner,
    StandaloneCompletedCheckpointStore,
)
from spark_ckpt.completed.base import RecordStore
from spark_ckpt.completed.mirror import Mirror
from spark_ckpt.completed.process_claims import ProcessClaims
from spark_ckpt.completed.zookeeper import ZooKeeperCompletedCheckpointStore
from spark_ckpt.completed.zookeeper_client_file import read_client_file
from spark_ckpt.completed.zookeeper_session import ZooKeeperSession
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.location.listing import scan
from spark_ckpt.storage import Storage


def make_store(
    config: CheckpointConfig,
    storage: Storage,
    owner: Owner,
    clock: Clock,
    claims: ProcessClaims | None = None,
    log_epoch: int | None = None,
    hung: int | None = None,
) -> CompletedCheckpointStore:
    """The store, neither recovered nor claimed.

    Args:
        config: the query's settings.
        storage: of the checkpoint location.
        owner: what its records name as their owner.
        clock: for timestamps and pauses.
        claims: of the runs of this driver, for a store without a fence.
        log_epoch: log epoch of the driver, for its claims.
        hung: number of side processes that the driver has killed, for its claims.
    """
    store = _make_store(config, storage, owner, clock, claims)
    store.log_epoch, store.hung = log_epoch, hung
    return store


def _make_store(
    config: CheckpointConfig, storage: Storage, owner: Owner, clock: Clock, claims: ProcessClaims | None
) -> RecordStore:
    if config.store == "standalone":
        return StandaloneCompletedCheckpointStore(storage, partial(scan, storage), owner, clock, claims)
    if config.store == "zookeeper":
        assert config.zookeeper_quorum is not None  # checked by CheckpointConfig.parse
        file = config.zookeeper_client_file
        security = None if file is None else read_client_file(file)
        session = ZooKeeperSession(config.zookeeper_quorum, config.zookeeper_session_timeout, clock, security)
        path = f"{config.zookeeper_path}/{_node_of(owner)}"
        return ZooKeeperCompletedCheckpointStore(session, path, Mirror(storage), owner, clock)
    return FilesystemCompletedCheckpointStore(storage, owner, clock=clock)


def _node_of(owner: Owner) -> str:
    """The name of a query's node. All spellings of a location lead to the same query id, so to the same node."""
    if owner.run_id.startswith(STANDALONE_PREFIX):
        return hashlib.sha256(owner.run_id.encode()).hexdigest()[:32]  # stores without a query share their query id
    return owner.query_id
