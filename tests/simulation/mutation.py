"""A deliberate mistake in the real code, and the violation by which the simulation finds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from inspect import Parameter, isfunction, signature
from typing import Any
from unittest.mock import patch

from spark_ckpt.coordinator.job import Job
from spark_ckpt.errors import SparkCkptError
from tests.simulation.profile import Profile

INCOMPLETE = "incomplete the moment it is recorded"
DELETED = "is deleted, and the retained checkpoints"
NOT_THERE = "is committed, and the retained checkpoints have versions"
SAID = "is said to be (complete|dropped), and is not"
FOLLOWS = "record [0-9]+ (of generation [0-9]+ )?follows"
CAME_BACK = "brought back after it was dropped"
WRONG_STATE = "Spark counts state|the answer is"


@dataclass(frozen=True)
class Mutation:
    """A mistake.

    Args:
        make: a context that puts the mistake into the code.
        sign: regular expression for the violation that reveals it.
        profile: kind of world that reveals it; None for random ones.
    """

    make: Callable[[], AbstractContextManager[Any]]
    sign: str
    profile: Profile | None = None


def replaced(where: object, name: str, by: object) -> Callable[[], AbstractContextManager[Any]]:
    """A context that replaces an attribute.

    Raises:
        TypeError: `by` cannot be called as the function that it replaces: the mistake would be another one.
    """
    original = getattr(where, name)
    if isfunction(original) and isfunction(by):
        parameters = signature(original).parameters.values()
        named = {parameter.name: None for parameter in parameters if parameter.kind is Parameter.KEYWORD_ONLY}
        ordered = [parameter for parameter in parameters if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD]
        signature(by).bind(*ordered, **named)
    return lambda: patch.object(where, name, by)


@contextmanager
def answered_first(name: str, answer: Callable[..., object], pause: float = 0.0) -> Iterator[None]:
    """Answers before the checkpoint is made, and makes it in the next housekeeping.

    Args:
        name: method of `Job` that makes the checkpoint.
        answer: the answer, from the arguments of the method.
        pause: seconds until the checkpoint is made.
    """
    waiting: list[Callable[[], object]] = []
    complete, housekeeping = getattr(Job, name), Job.housekeeping

    def complete_later(self: Job, *arguments: object) -> object:
        waiting.append(lambda: complete(self, *arguments))
        return answer(self, *arguments)

    def catch_up(self: Job) -> None:
        if pause:
            self._clock.sleep(pause)
        try:
            while waiting:
                waiting.pop(0)()
        except SparkCkptError:
            return
        housekeeping(self)

    with patch.object(Job, name, complete_later), patch.object(Job, "housekeeping", catch_up):
        yield


def nothing(*arguments: object, **named: object) -> None:
    """Replacement that does nothing."""
