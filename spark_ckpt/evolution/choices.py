"""What the user says where plans do not tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

SourceChoice: TypeAlias = int | str | None
"""Number of an earlier source, an offset, or None for the source's own start."""


@dataclass(frozen=True, slots=True)
class Choices:
    """Answers of the user.

    Args:
        functions: aggregate function of the earlier query by one of the changed query; None to begin without input.
        initial: buffers of a new aggregate function, instead of those without input.
        keys: key column of the earlier query by one of the changed query, although they are computed otherwise.
        values: value of an added column or field in earlier rows, by its name; null by default.
        operators: number in the earlier query by number in the changed one; None to begin empty.
        sources: where a source continues, by its number.
        drop: what may be left behind: numbers of operators, and state variables as `0/name`.
    """

    functions: Mapping[str, str | None] = field(default_factory=dict)
    initial: Mapping[str, Sequence[object]] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, object] = field(default_factory=dict)
    operators: Mapping[int, int | None] = field(default_factory=dict)
    sources: Mapping[int, SourceChoice] = field(default_factory=dict)
    drop: frozenset[str] = frozenset()


NO_CHOICES = Choices()
