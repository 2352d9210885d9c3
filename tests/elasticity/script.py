"""A policy of the tests."""

from __future__ import annotations

from collections.abc import Iterable

from spark_ckpt.elasticity.observation import Observation
from spark_ckpt.elasticity.policy import Decision


class Script:
    """A policy that wants one number after another, as soon as it is asked. An exception in the script is raised."""

    def __init__(self, script: Iterable[int | Exception | None]) -> None:
        self.script = list(script)
        self.seen: list[Observation] = []

    def decide(self, observation: Observation) -> Decision | None:
        self.seen.append(observation)
        wanted = self.script.pop(0) if self.script else None
        if isinstance(wanted, Exception):
            raise wanted
        return None if wanted is None else Decision(wanted, "the script says so")
