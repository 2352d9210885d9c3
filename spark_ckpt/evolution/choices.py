"""What the user says where plans do not tell."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

SourceChoice: TypeAlias = int | str | None
"""Number of an earlier source, an offset, or None for the source's own start."""


@dataclass(frozen=True, slots=True)
class Choices:
    """Answers of the user.

    Args:
        functions: aggregate function of the earlier query by one of the changed query, such as
            `{"sum(w)": "sum(v)"}`; None to begin without input.
        initial: values of the buffers of a new aggregate function in all rows, by the function.
        keys: key column of the earlier query by one of the changed query that has the same values, although they are
            computed otherwise.
        values: value of an added column or field in earlier rows, by its name; null by default.
        operators: number of an operator in the earlier query by its number in the changed one; None to begin empty.
        sources: for sources by number: the number of an earlier one whose position it takes, an offset as Spark writes
            it, or None for its own start.
        drop: numbers of earlier operators whose state may be left behind.
    """

    functions: Mapping[str, str | None] = field(default_factory=dict)
    initial: Mapping[str, Sequence[object]] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, object] = field(default_factory=dict)
    operators: Mapping[int, int | None] = field(default_factory=dict)
    sources: Mapping[int, SourceChoice] = field(default_factory=dict)
    drop: Collection[int] = ()


NO_CHOICES = Choices()
