"""Mistakes in rollbacks, and in the fence of Spark's logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from tests.simulation import rollbacks
from tests.simulation.mutation import Mutation, nothing, replaced
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


ROLLBACKS: dict[str, Mutation] = {
    "Spark's logs without a fence": Mutation(_no_fence, NO_HISTORY, ROLLED_BACK),
    "query started during a rollback": Mutation(
        replaced(rollbacks, "UNFINISHED_HOLDS", False), NO_HISTORY, ROLLED_BACK
    ),
}
"""Mistakes, by name."""
