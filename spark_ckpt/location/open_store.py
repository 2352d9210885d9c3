"""The completed-checkpoint store of a query, by its settings, or by the files in its location."""

from __future__ import annotations

import hashlib
import os
import socket
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from spark_ckpt.checkpoint.batch import STANDALONE_PREFIX
from spark_ckpt.clock import Clock
from spark_ckpt.completed import (
    OPERATION,
    CompletedCheckpointStore,
    FilesystemCompletedCheckpointStore,
    JobStatus,
    Owner,
    RecordFiles,
    StandaloneCompletedCheckpointStore,
)
from spark_ckpt.completed.base import RecordStore
from spark_ckpt.completed.mirror import Mirror
from spark_ckpt.completed.process_claims import ProcessClaims
from spark_ckpt.completed.zookeeper import ZooKeeperCompletedCheckpointStore
from spark_ckpt.completed.zookeeper_client_file import read_client_file
from spark_ckpt.completed.zookeeper_session import ZooKeeperSession
from spark_ckpt.config import STORE, CheckpointConfig
from spark_ckpt.location.listing import list_completed, scan
from spark_ckpt.spark_files.logs import SparkLog
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


@contextmanager
def opened_store(
    storage: Storage, settings: Mapping[str, str] | None, operation: str, clock: Clock
) -> Iterator[tuple[CompletedCheckpointStore, Owner]]:
    """The completed-checkpoint store of the settings, or the one that the files in the location indicate.

    It is neither recovered nor claimed. On exit it is shut down; its checkpoints stay.

    Args:
        storage: storage of the checkpoint location.
        settings: settings of the query that begin with `spark.sql.streaming.stateStore.ckpt.`.
        operation: name of the command.
        clock: source of time.

    Yields:
        The store, and the owner for a claim.

    Raises:
        SettingError: a setting is invalid, contradicts another one, or is unknown.
        LogMissingError: the log of the location is gone.
        SparkLogFormatError: Spark's file with the query's id is damaged.
        StorageError: the location cannot be read.
    """
    config = CheckpointConfig.parse_strictly(settings or {})
    if STORE.key not in (settings or {}) and not RecordFiles(storage).ids():
        list_completed(storage)
        config = replace(config, store="standalone")
    owner = owner_of_command(operation, SparkLog(storage).query_id())
    store = make_store(config, storage, owner, clock)
    try:
        yield store, owner
    finally:
        store.shutdown(JobStatus.SUSPENDED)


def owner_of_command(operation: str, query_id: str) -> Owner:
    """What the records of a command of this process name as their owner.

    Args:
        operation: name of the command.
        query_id: Spark's id of the query.
    """
    token = str(uuid.uuid4())
    return Owner(socket.gethostname(), os.getpid(), token, query_id, f"{OPERATION}{operation} {token}")


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
