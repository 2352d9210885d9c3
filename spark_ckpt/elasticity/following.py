"""A query followed batch by batch: observations to the policy, its decisions to the query."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from spark_ckpt.clock import Clock
from spark_ckpt.elasticity.asking import GONE, Asking
from spark_ckpt.elasticity.decisions import ElasticDecision, Outcome
from spark_ckpt.elasticity.observation import Observation
from spark_ckpt.elasticity.policy import Decision, Policy
from spark_ckpt.location.rescale_request import RescaleAnswer

_log = logging.getLogger(__name__)

_KEPT = 1000
"""Decisions, and errors, that are kept."""

_PATIENCE_MS, _PATIENT_BATCHES = 120_000, 5
"""Age of a request, and batches since it, after which no answer is expected."""

OnDecision = Callable[[ElasticDecision], None]


class Following:
    """Follows one query. Not thread-safe, except that other threads may copy `decisions` and `errors`.

    Args:
        name: name of the query in logs.
        policy: decides.
        asking: asks the query.
        resources: cores and executors of the application, each None if unknown.
        dry: True to ask for nothing.
        clock: source of time.
        on_decision: called with each decision and each new outcome.
    """

    def __init__(
        self,
        name: str,
        policy: Policy,
        asking: Asking,
        resources: Callable[[], tuple[int | None, int | None]],
        *,
        dry: bool,
        clock: Clock,
        on_decision: OnDecision | None,
    ) -> None:
        self.decisions: deque[ElasticDecision] = deque(maxlen=_KEPT)
        self.errors: deque[Exception] = deque(maxlen=_KEPT)
        self._name = name
        self._policy = policy
        self._asking = asking
        self._resources = resources
        self._dry = dry
        self._clock = clock
        self._on_decision = on_decision
        self._last_batch: int | None = None
        self._batches_asked = 0

    def step(self, progress: Mapping[str, Any] | None) -> None:
        """Looks for an answer, and at a batch if it is a new one. Never raises.

        Args:
            progress: the newest progress of the query.
        """
        try:
            observation = self._new_batch(progress or {})
            if self._asking.is_pending:
                self._settle(self._asking.look())
            if observation is not None and self._asking.is_pending:
                self._wait_for_answer()
            elif observation is not None:
                self._decide(observation)
        except Exception as e:
            self.keep(e)

    def end(self) -> None:
        """Withdraws a request that has no answer, so that a later run does not find it. Never raises."""
        if self._asking.is_pending:
            self._withdraw("the query or its policy has ended")

    def keep(self, error: Exception) -> None:
        """Keeps and logs an error. The one before, repeated, is neither."""
        before = self.errors[-1] if self.errors else None
        if type(error) is not type(before) or str(error) != str(before):
            self.errors.append(error)
            _log.warning("elastic query %s: %s: %s", self._name, type(error).__name__, error)

    def _new_batch(self, progress: Mapping[str, Any]) -> Observation | None:
        if progress.get("batchId") == self._last_batch:
            return None
        observation = Observation.of(progress, cores=None, executors=None)
        if observation is None:
            return None
        self._last_batch = observation.batch_id
        cores, executors = self._resources()
        return replace(observation, cores=cores, executors=executors)

    # ---- a decision --------------------------------------------------------------------------------------------------

    def _decide(self, observation: Observation) -> None:
        decision = self._policy.decide(observation)
        before = observation.partitions
        if decision is None or before is None or decision.partitions == before:
            return
        outcome, detail = self._ask(decision)
        made = ElasticDecision(
            self._clock.now_ms(), observation.batch_id, before, decision.partitions, decision.reason, outcome, detail
        )
        self.decisions.append(made)
        self._tell(made)

    def _ask(self, decision: Decision) -> tuple[Outcome, str | None]:
        if type(decision.partitions) is not int or decision.partitions < 1:
            return "failed", f"{decision.partitions!r} is not a number of partitions"
        if self._dry:
            return "dry", None
        self._batches_asked = 0
        try:
            if self._asking.ask(decision.partitions):
                return "asked", None
        except Exception as e:
            self.keep(e)
            return ("asked" if self._asking.is_pending else "failed"), str(e)
        return "failed", "another process has asked for a number of partitions"

    # ---- its outcome -------------------------------------------------------------------------------------------------

    def _settle(self, answer: RescaleAnswer | None) -> None:
        if answer is None:
            return
        if answer.refused is not None:
            self._come_out("failed" if answer is GONE else "refused", answer.refused)
        else:
            self._come_out("done", None, answer.batch_id)

    def _wait_for_answer(self) -> None:
        self._batches_asked += 1
        if self._batches_asked >= _PATIENT_BATCHES and self._asking.age_ms >= _PATIENCE_MS:
            self._withdraw(f"no answer after {self._batches_asked} batches")

    def _withdraw(self, why: str) -> None:
        try:
            answer = self._asking.withdraw()
        except Exception as e:
            self.keep(e)
            self._come_out("failed", f"{why}, and the request cannot be deleted: {e}")
            return
        if answer is not None:
            self._settle(answer)
        else:
            self._come_out("withdrawn", why)

    def _come_out(self, outcome: Outcome, detail: str | None, first_batch: int | None = None) -> None:
        now = replace(self.decisions[-1], outcome=outcome, detail=detail, first_batch=first_batch)
        self.decisions[-1] = now
        self._tell(now)

    def _tell(self, decision: ElasticDecision) -> None:
        _log.log(logging.WARNING if decision.detail else logging.INFO, "elastic query %s: %s", self._name, decision)
        if self._on_decision is not None:
            try:
                self._on_decision(decision)
            except Exception as e:
                self.keep(e)
