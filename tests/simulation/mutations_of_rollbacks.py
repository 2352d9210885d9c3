"""Mistakes in rollbacks, and in the fence of Spark's logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from spark_ckpt.checkpoint.publish import Publisher
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.operations import rollback
from spark_ckpt.spark_files.rollbacks import RollbackMarker
from spark_ckpt.storage import Storage
from tests.simulation import rollbacks
from tests.simulation.mutation import NOT_THERE, Mutation, nothing, replaced
from tests.simulation.mutation_worlds import ROLLED_BACK

NO_HISTORY = "does not continue batch|with other offsets than those in the log"


@contextmanager
def _no_fence() -> Iterator[None]:
    """Spark's own file manager: a driver writes its entries, and reads any."""
    with (
        patch.object(rollbacks.FencedLogs, "_check", nothing),
        patch.object(rollbacks.FencedLogs, "_accept", nothing),
    ):
        yield


def _same(storage: Storage, publisher: Publisher, record: CheckpointRecord, clock: Any) -> CheckpointRecord:
    return record


ROLLBACKS: dict[str, Mutation] = {
    "Spark's logs without a fence": Mutation(_no_fence, NO_HISTORY, ROLLED_BACK),
    "stray entries read": Mutation(replaced(rollbacks.FencedLogs, "_accept", nothing), NO_HISTORY, ROLLED_BACK),
    "rollback never finished": Mutation(replaced(rollbacks, "UNFINISHED_HOLDS", False), NO_HISTORY, ROLLED_BACK),
    "checkpoint about to be dropped": Mutation(replaced(rollback, "_publish_again", _same), NOT_THERE, ROLLED_BACK),
    "entry one batch above those moved": Mutation(
        replaced(RollbackMarker, "covers", lambda self, batch: self.batch_id < batch <= self.last_batch_id),
        NO_HISTORY,
        ROLLED_BACK,
    ),
}
"""Mistakes, by name."""
