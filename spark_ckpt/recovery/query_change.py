"""Check of a starting query against what the state that it starts from means."""

from __future__ import annotations

import logging

from spark_ckpt.checkpoint.load import CheckpointState
from spark_ckpt.checkpoint.meaning import QueryMeaning
from spark_ckpt.checkpoint.silent_changes import silent_changes
from spark_ckpt.config import ON_QUERY_CHANGE, CheckpointConfig
from spark_ckpt.messages import Trigger
from spark_ckpt.recovery.errors import QueryChangedError

_log = logging.getLogger(__name__)


def check_query(trigger: Trigger, parent: CheckpointState, config: CheckpointConfig) -> None:
    """Check that the state of a query means what it meant for the query that wrote it.

    Texts of plans differ between minor versions of Spark, so that a difference is only a warning after an upgrade.

    Raises:
        QueryChangedError: it means something else, and the settings do not accept that.
        CheckpointError: the meaning in the checkpoint is malformed.
    """
    if trigger.meaning is None or parent.batch is None or parent.batch.meaning is None:
        return
    changes = silent_changes(QueryMeaning.decode(parent.batch.meaning), trigger.meaning)
    if not changes:
        return
    error = QueryChangedError(trigger.location, changes, ON_QUERY_CHANGE.key)
    is_upgraded = _minor(parent.batch.spark_version) != _minor(trigger.spark_version)
    if config.on_query_change == "fail" and not is_upgraded:
        raise error
    why = f"Spark was {parent.batch.spark_version} before. " if is_upgraded else ""
    _log.warning("%s%s", why, error)


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]
