"""Mistakes in rollbacks, of a person and of drivers, and in the fence of Spark's logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from spark_ckpt.clock import Clock
from spark_ckpt.completed import CompletedCheckpointStore
from spark_ckpt.recovery import rollback
from spark_ckpt.recovery.fence import FencedLogs
from spark_ckpt.spark_files.logs import SparkLog
from spark_ckpt.spark_files.rollbacks import ROLLBACK, Rollbacks
from spark_ckpt.storage import Storage
from tests.simulation import rollbacks
from tests.simulation.mutation import NOT_THERE, Mutation, nothing, replaced
from tests.simulation.mutation_worlds import DAMAGED, DAMAGED_OFTEN, ROLLED_BACK, ROLLED_BACK_FAR

NO_HISTORY = "does not continue batch|with other offsets than those in the log"
AFTER_A_CLAIM = "is completed by .* after the claim of"
NO_MARKER = "no marker of a rollback keeps drivers out"


def _none(log: SparkLog) -> list[str]:
    return []


@contextmanager
def _unfenced(
    storage: Storage,
    store: CompletedCheckpointStore,
    batch_id: int,
    clock: Clock,
    operation: str = ROLLBACK,
    *,
    may_run: bool,
) -> Iterator[FencedLogs]:
    yield FencedLogs(storage, store, Rollbacks(0, ()))


ROLLBACKS: dict[str, Mutation] = {
    "Spark's logs without a fence": Mutation(
        replaced(rollbacks.FencedLogs, "_check", nothing), NO_HISTORY, ROLLED_BACK
    ),
    "fence of Spark's logs without the temporary files": Mutation(
        replaced(SparkLog, "temporary_files", _none), NO_HISTORY, ROLLED_BACK
    ),
    "query started during a rollback": Mutation(
        replaced(rollbacks, "UNFINISHED_HOLDS", False), NO_HISTORY, ROLLED_BACK
    ),
    "checkpoint of a rollback not published again": Mutation(
        replaced(rollback, "publish_again", nothing), NOT_THERE, ROLLED_BACK_FAR
    ),
    "fence of the location, replaced by a second start": Mutation(
        replaced(rollbacks, "OF_RUN", False), NO_HISTORY, ROLLED_BACK
    ),
    "automatic rollback without a marker": Mutation(replaced(rollback, "fenced_logs", _unfenced), NO_MARKER, DAMAGED),
    "checkpoint of an automatic rollback not published again": Mutation(
        replaced(rollback, "publish_again", nothing), AFTER_A_CLAIM, DAMAGED_OFTEN
    ),
    "automatic rollback, and Spark's logs without a fence": Mutation(
        replaced(rollbacks.FencedLogs, "_check", nothing), NO_HISTORY, DAMAGED
    ),
}
"""Mistakes, by name."""
