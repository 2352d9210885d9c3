"""The completed checkpoints of a location, opened by a command."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Mapping
from dataclasses import replace

from spark_ckpt.clock import Clock
from spark_ckpt.completed import CompletedCheckpointStore, Owner, RecordFiles
from spark_ckpt.config import STORE, CheckpointConfig
from spark_ckpt.coordinator.stores import make_store
from spark_ckpt.operations.holding import OPERATION
from spark_ckpt.operations.spark_log import SparkLog
from spark_ckpt.storage import Storage


def open_store(
    storage: Storage, settings: Mapping[str, str], operation: str, clock: Clock
) -> tuple[CompletedCheckpointStore, Owner]:
    """The store that the settings name, neither recovered nor claimed; if they name none, the one that the location
    shows.

    Args:
        storage: of the checkpoint location.
        settings: those of the query that begin with `spark.sql.streaming.stateStore.ckpt.`.
        operation: name of the command.
        clock: where time comes from.

    Returns:
        The store, and who claims with it.

    Raises:
        SettingError: a setting has an impossible value.
        SparkLogFormatError: Spark's file with the query's id is damaged.
        StorageError: the location cannot be read.
    """
    config = CheckpointConfig.parse(settings)
    if STORE.key not in settings and not RecordFiles(storage).ids():
        config = replace(config, store="standalone")
    token = str(uuid.uuid4())
    run_id = f"{OPERATION}{operation} {token}"
    owner = Owner(socket.gethostname(), os.getpid(), token, SparkLog(storage).query_id(), run_id)
    return make_store(config, storage, owner, clock), owner
