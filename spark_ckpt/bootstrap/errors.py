"""Errors of bootstraps."""

from __future__ import annotations

from collections.abc import Sequence

from spark_ckpt.errors import SparkCkptError


class BootstrapRefusedError(SparkCkptError):
    """The state of a new query cannot be written as requested. Nothing was written.

    Attributes:
        location: the checkpoint location.
        problems: every reason, each with a way out.
    """

    def __init__(self, location: str, problems: Sequence[str]) -> None:
        self.location = location
        self.problems = tuple(dict.fromkeys(problems))
        reasons = "".join(f"\n- {problem}" for problem in self.problems)
        super().__init__(f"{location}: the state cannot be written:{reasons}")
