"""A deliberate mistake in the real code, and the violation by which the simulation finds it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

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
    """A context that replaces an attribute."""
    return lambda: patch.object(where, name, by)


def nothing(*arguments: object) -> None:
    """Replacement that does nothing."""
