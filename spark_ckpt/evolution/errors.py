"""Errors of evolutions."""

from __future__ import annotations

from spark_ckpt.errors import RefusedError, SparkCkptError


class EvolutionRefusedError(RefusedError):
    """The state of the earlier query has no meaning in the changed one, or the user has to say which."""

    refusal = "the changed query cannot continue from this state"


class EvolutionValueError(SparkCkptError):
    """A row of the state has a value that the changed query's type cannot have. Nothing was changed.

    Attributes:
        state: the state.
        reason: the value and the type.
    """

    def __init__(self, state: str, reason: str) -> None:
        self.state = state
        self.reason = reason
        super().__init__(
            f"{state}: {reason}. The state was not changed. Give the column a type that has all of its values"
        )


class QueryPlanError(SparkCkptError):
    """Spark cannot plan the query, so it could not start it either.

    Attributes:
        reason: Spark's message.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the query cannot be planned: {reason}")
