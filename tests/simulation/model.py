"""The query's computation, the number of occurrences of each key, and thereby the batch answer after each batch."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from spark_ckpt.format.key_groups import factors, owned_ranges
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.messages import Operator
from tests.support.driver import apply

Rows: TypeAlias = dict[int, dict[bytes, bytes]]
"""Rows of a store in a subtask, by key group; a key group without rows is left out."""

Changes: TypeAlias = dict[int, dict[bytes, bytes | None]]

REMOVED_AT = 5
"""Count at which a key is removed, so that state also shrinks."""


@dataclass
class Query:
    """A query with its input. Counts reveal a lost batch as well as a repeated one.

    Args:
        seed: seed of the input.
        operators: stateful operators; those of one inner list run in one stage.
        max_parallelism: number of key groups.
        idle: first of the partitions without input after the first batch.
    """

    seed: int
    stages: tuple[tuple[Operator, ...], ...]
    max_parallelism: int
    idle: int | None = None
    first: Query | None = None
    """The query before its first rescale, whose input it has; None if it is that one."""
    _rescaled: dict[int, Query] = field(default_factory=dict)
    _answers: dict[tuple[int, SubtaskKey], Rows] = field(default_factory=dict)
    _key_groups: dict[SubtaskKey, list[int]] = field(default_factory=dict)

    @property
    def operators(self) -> tuple[Operator, ...]:
        return tuple(operator for stage in self.stages for operator in stage)

    @property
    def parallelism(self) -> int:
        """Number of partitions of all operators."""
        return self.stages[0][0].parallelism

    def at(self, parallelism: int) -> Query:
        """The query with another number of partitions, and the same input."""
        first = self.first or self
        if parallelism == first.parallelism:
            return first
        if parallelism not in first._rescaled:
            stages = tuple(tuple(replace(o, parallelism=parallelism) for o in stage) for stage in first.stages)
            first._rescaled[parallelism] = replace(
                first, stages=stages, first=first, _rescaled={}, _answers={}, _key_groups={}
            )
        return first._rescaled[parallelism]

    def subtasks(self) -> list[SubtaskKey]:
        return [
            SubtaskKey(operator.operator_id, store, partition)
            for operator in self.operators
            for store in operator.stores
            for partition in range(operator.parallelism)
        ]

    def changes(self, offset: int, key: SubtaskKey, before: Rows) -> Changes:
        """Changes to a subtask's rows by the input that leads to an offset."""
        if self.idle is not None and key.partition >= self.idle:
            return {} if offset > 1 else {self._groups(key)[0]: {b"k0": b"1"}}
        changes: Changes = {}
        for group, row in self._input(offset, key):
            count = int(before.get(group, {}).get(row, b"0")) + 1
            changes.setdefault(group, {})[row] = None if count == REMOVED_AT else b"%d" % count
        return changes

    def _input(self, offset: int, key: SubtaskKey) -> Iterator[tuple[int, bytes]]:
        """Key group and row of each occurrence of a key in the input that leads to an offset. The input does not depend
        on the number of partitions."""
        if self.first is not None:
            own = set(self._groups(key))
            for partition in range(self.first.parallelism):
                found = self.first._input(offset, key._replace(partition=partition))
                yield from ((group, row) for group, row in found if group in own)
            return
        rng = random.Random(f"{self.seed}/{offset}/{key.operator_id}/{key.store}/{key.partition}")
        groups = self._groups(key)
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            yield rng.choice(groups), b"k%d" % rng.randrange(2)

    def changes_between(self, start: int, end: int, key: SubtaskKey, before: Rows) -> Changes:
        """Changes to a subtask's rows by the input from one offset to another."""
        changes: Changes = {}
        for offset in range(start + 1, end + 1):
            further = self.changes(offset, key, before)
            before = applied(before, further)
            for group, entries in further.items():
                changes.setdefault(group, {}).update(entries)
        return changes

    def answer(self, offset: int, key: SubtaskKey) -> Rows:
        """Rows of a subtask for the input up to an offset, as computed by a batch job."""
        if offset == 0:
            return {}
        known = self._answers.get((offset, key))
        if known is None:
            before = self.answer(offset - 1, key)
            known = self._answers[offset, key] = applied(before, self.changes(offset, key, before))
        return known

    def _groups(self, key: SubtaskKey) -> list[int]:
        if key not in self._key_groups:
            self._key_groups[key] = self._groups_of(key)
        return self._key_groups[key]

    def _groups_of(self, key: SubtaskKey) -> list[int]:
        parallelism = next(o.parallelism for o in self.operators if o.operator_id == key.operator_id)
        chain = tuple(factors((self.first or self).parallelism, self.max_parallelism))
        return [group for r in owned_ranges(key.partition, parallelism, chain) for group in r]


def applied(rows: Rows, changes: Changes) -> Rows:
    """The rows with the changes applied."""
    after = {group: dict(entries) for group, entries in rows.items()}
    apply(after, changes)
    return {group: entries for group, entries in after.items() if entries}
