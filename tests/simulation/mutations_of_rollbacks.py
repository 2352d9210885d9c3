"""Mistakes in rollbacks, and in the fence of Spark's logs."""

from __future__ import annotations

from spark_ckpt.spark_files.logs import SparkLog
from tests.simulation import rollbacks
from tests.simulation.mutation import Mutation, nothing, replaced
from tests.simulation.mutation_worlds import ROLLED_BACK

NO_HISTORY = "does not continue batch|with other offsets than those in the log"


def _none(log: SparkLog) -> list[str]:
    return []


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
}
"""Mistakes, by name."""
