"""A query under load, without Spark: rows arrive, batches take them all, and a policy chooses the partitions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from spark_ckpt.elasticity import Decision, Observation, Policy


@dataclass
class Load:
    """A query with a trigger interval.

    Args:
        policy: chooses the partitions.
        partitions: number at the start.
        cores: cores of the application.
        trigger_ms: interval of the trigger.
        fixed_ms: cost of a batch without rows.
        row_ms: work of a row on one core.
        first_ms: what the first batch of the run takes longer.
    """

    policy: Policy
    partitions: int = 4
    cores: int = 16
    trigger_ms: float = 1000
    fixed_ms: float = 100
    row_ms: float = 4
    first_ms: float = 2000
    batch_id: int = 0
    waiting: float = 0
    decided: dict[int, Decision] = field(default_factory=dict)
    changes: list[int] = field(default_factory=list)

    def run(self, rates: Iterable[float]) -> list[int]:
        """Runs a batch per rate, in rows per second; returns the numbers of partitions, changes only."""
        for rate in rates:
            rows = int(self.waiting + rate * self.trigger_ms / 1000)
            batch_ms = self.fixed_ms + rows * self.row_ms / min(self.partitions, self.cores)
            batch_ms += 0 if self.batch_id else self.first_ms
            self.waiting = rate * max(0, batch_ms - self.trigger_ms) / 1000
            self._see(rows, batch_ms)
        return self.changes

    def _see(self, rows: int, batch_ms: float) -> None:
        seen = Observation(
            "run-1",
            self.batch_id,
            partitions=self.partitions,
            cores=self.cores,
            executors=1,
            rows=rows,
            batch_ms=batch_ms,
            overhead_ms=self.fixed_ms / 2,
        )
        if (decision := self.policy.decide(seen)) is not None:
            self.decided[self.batch_id] = decision
            self.changes.append(decision.partitions)
            self.partitions = decision.partitions
        self.batch_id += 1
