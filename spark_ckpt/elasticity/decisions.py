"""Decisions of a policy, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["asked", "done", "refused", "withdrawn", "failed", "dry"]
"""`asked`: the query has not answered yet. `done`: it has the number. `refused`: it keeps its own. `withdrawn`: the
request was deleted before an answer. `failed`: it could not be made, or was lost. `dry`: none was made."""


@dataclass(frozen=True, slots=True)
class ElasticDecision:
    """A decision of a policy.

    Args:
        at_ms: when it was made, in milliseconds since 1970 UTC.
        batch_id: the batch after which it was made.
        before: number of partitions of that batch.
        after: the wanted number.
        reason: the policy's reason.
        outcome: what became of it.
        detail: why it has failed, or was refused or withdrawn; None for other outcomes.
        first_batch: first batch with the new number, once it is done.
    """

    at_ms: int
    batch_id: int
    before: int
    after: int
    reason: str
    outcome: Outcome
    detail: str | None = None
    first_batch: int | None = None

    def __str__(self) -> str:
        what = f"batch {self.batch_id}: {self.before} -> {self.after} partitions, {self.outcome}: {self.reason}"
        return what if self.detail is None else f"{what} ({self.detail})"
