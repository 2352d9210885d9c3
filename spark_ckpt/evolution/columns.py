"""Columns of the changed query's rows, by where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spark_ckpt.evolution.type_changes import same_layout, widens
from spark_ckpt.spark_files.schemas import FamilySchema
from spark_ckpt.spark_files.types import SparkType, Struct


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field of a struct.

    Args:
        source: index of the earlier column; None for a column that is new.
        value: value of a new column in all rows, as Python or as Spark's text.
        is_widened: True if its type becomes wider.
        fields: for a struct with other fields, where they come from.
    """

    source: int | None
    value: object = None
    is_widened: bool = False
    fields: tuple[Column, ...] | None = None

    def is_kept_at(self, index: int) -> bool:
        """True if the bytes of the column stay the same at this place."""
        return self.source == index and not self.is_widened and self.fields is None


@dataclass(frozen=True, slots=True)
class FamilyMapping:
    """Rows of a column family, from those of one of the earlier query.

    Args:
        old: the earlier family.
        new: the family.
        grouping: columns of the grouping key.
        value: columns of the value.
        merges: what makes one value of those whose keys become equal, by column: `sum`, `min`, `max`, or `any`.
        old_grouping: type of the earlier grouping key.
    """

    old: FamilySchema
    new: FamilySchema
    grouping: tuple[Column, ...]
    value: tuple[Column, ...]
    merges: tuple[str, ...] = ()
    old_grouping: Struct = field(default=Struct((), ()))

    @property
    def keeps_places(self) -> bool:
        """True if each row stays in its partition and key group."""
        return not self.merges and are_kept(self.grouping, self.old_grouping.types)

    @property
    def is_identity(self) -> bool:
        """True if the bytes of the rows stay the same."""
        return self.keeps_places and self.old.name == self.new.name and are_kept(self.value, self.old.value.types)


def are_kept(columns: Sequence[Column], types: Sequence[SparkType]) -> bool:
    """True if columns are the earlier ones, in their order."""
    return len(columns) == len(types) and all(column.is_kept_at(index) for index, column in enumerate(columns))


def fitted(old: Struct, at: int, kind: SparkType) -> Column | None:
    """The column with the values of an earlier column; None if its type does not have all of them.

    Args:
        old: the earlier columns.
        at: index of the earlier column.
        kind: type of the column.
    """
    was = old.types[at]
    if same_layout(was, kind):
        return Column(at)
    if widens(was, kind):
        return Column(at, is_widened=True)
    if isinstance(was, Struct) and isinstance(kind, Struct) and set(was.names) & set(kind.names):
        fields = []
        for name, field_kind in zip(kind.names, kind.types, strict=True):
            part = Column(None) if name not in was.names else fitted(was, was.names.index(name), field_kind)
            if part is None:
                return None
            fields.append(part)
        return Column(at, fields=tuple(fields))
    return None
