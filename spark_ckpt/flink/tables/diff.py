"""Differences in keyed state between two checkpoints of a Flink job, key group by key group.

Keys and values are compared as Flink writes them: zeros of both signs differ, and a NaN equals itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from operator import itemgetter
from struct import Struct
from typing import Any, TypeAlias

import pyarrow as pa

from spark_ckpt.flink.streams.values import RowData
from spark_ckpt.flink.tables import read
from spark_ckpt.flink.tables.catalog import FlinkCatalog, FlinkState
from spark_ckpt.flink.tables.columns import KEY_GROUP, StateColumns, Values
from spark_ckpt.flink.tables.find import find_flink_state
from spark_ckpt.flink.types.arrow import list_type
from spark_ckpt.flink.types.record import ArrowType
from spark_ckpt.state.diff import CHANGES
from spark_ckpt.state.errors import UnsupportedFlinkStateError

_NONE = -1
"""Key group of a side that has no more."""

_DOUBLE = Struct(">d")

_Rows: TypeAlias = "dict[Any, tuple[Values, Any]]"
"""Keys and values, by the exact form of the keys."""


@dataclass(frozen=True, slots=True, eq=False)
class FlinkDiff:
    """Keys of a state with differing values in two checkpoints, read on demand.

    Args:
        before: the state of the first checkpoint.
        after: the state of the second one.
        state_before: the state in the first one.
        state_after: the state in the second one.
    """

    before: FlinkCatalog
    after: FlinkCatalog
    state_before: FlinkState
    state_after: FlinkState

    @property
    def schema(self) -> pa.Schema:
        """`change`, the columns of the key, the values `before` and `after`, and `key_group`.

        A list is one value. Timers have no values: both columns are null.
        """
        columns = self.state_after.columns
        key = [(column.name, column.arrow.type) for column in columns.columns[: columns.identity]]
        values = [
            (name, _value_type(state.columns).type)
            for name, state in (("before", self.state_before), ("after", self.state_after))
        ]
        return pa.schema([("change", pa.string()), *key, *values, (KEY_GROUP, pa.int32())])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The differences. Memory holds the rows of one key group of both checkpoints.

        Raises:
            StateStreamFormatError, RocksDbFormatError: a state file is damaged.
            StorageError: a state file cannot be read.
            UnsupportedFlinkStateError: the key of the state has another type, or Arrow cannot hold a value.
        """
        if _key_types(self.state_before) != _key_types(self.state_after):
            raise UnsupportedFlinkStateError(self.state_after.name, "its key has another type in the first checkpoint")
        rows: list[Values] = []
        sides = [_groups(self.before, self.state_before), _groups(self.after, self.state_after)]
        for key_group, old, new in _joined(*sides):
            rows += [(*change, key_group) for change in _changes(old, new)]
            while len(rows) >= read.BATCH_ROWS:
                yield self._batch(rows[: read.BATCH_ROWS])
                del rows[: read.BATCH_ROWS]
        if rows:
            yield self._batch(rows)

    def to_arrow(self) -> pa.Table:
        """All differences."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def _batch(self, rows: list[Values]) -> pa.RecordBatch:
        columns = self.state_after.columns
        kinds, keys, old, new, key_groups = zip(*rows, strict=True)
        arrays = [
            pa.array(kinds, pa.string()),
            *[columns.array(number, [key[number] for key in keys]) for number in range(columns.identity)],
            self.state_before.columns.converted("before", _value_type(self.state_before.columns), list(old)),
            columns.converted("after", _value_type(columns), list(new)),
            pa.array(key_groups, pa.int32()),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def diff_flink_state(
    location: str,
    before: int,
    after: int,
    *,
    operator: int | str | None = None,
    variable: str | None = None,
    moved: Sequence[tuple[str, str]] = (),
    allow_outside: bool = False,
) -> FlinkDiff | None:
    """Differences in keyed state between two checkpoints of a Flink job; None if the location belongs to a query of
    Spark.

    Args:
        location: directory of the job, with the directories of its checkpoints, as a path or URL.
        before: id of the first checkpoint.
        after: id of the second one.
        operator, variable, moved, allow_outside: as in `read_state`.

    Raises:
        SparkCkptError: as in `read_state`.
    """
    sides = [find_flink_state(location, each, moved=moved, allow_outside=allow_outside) for each in (before, after)]
    old, new = sides
    if old is None or new is None:
        return None
    return FlinkDiff(old, new, old.choose(operator, variable), new.choose(operator, variable))


def _value_type(columns: StateColumns) -> ArrowType:
    if columns.identity == len(columns.columns):
        return ArrowType(pa.null())
    arrow = columns.columns[-1].arrow
    return list_type(arrow) if columns.is_list else arrow


def _key_types(state: FlinkState) -> list[tuple[str, pa.DataType]]:
    return [(column.name, column.arrow.type) for column in state.columns.columns[: state.columns.identity]]


def _groups(catalog: FlinkCatalog, state: FlinkState) -> Iterator[tuple[int, _Rows]]:
    """Keys and values of each key group."""
    columns = state.columns
    last = _NONE
    for _, state_id, source in catalog.sources(state):
        for key_group, entries in groupby(source.entries(state_id), itemgetter(0)):
            if key_group <= last:
                raise UnsupportedFlinkStateError(state.name, f"several handles have key group {key_group}")
            last = key_group
            found: _Rows = {}
            for _, entry in entries:
                for row in columns.rows(entry):
                    key = row[: columns.identity]
                    if columns.is_list:
                        found.setdefault(_exact(key), (key, []))[1].append(row[-1])
                    else:
                        found[_exact(key)] = (key, row[-1] if columns.identity < len(row) else None)
            yield key_group, found


def _joined(
    before: Iterator[tuple[int, _Rows]], after: Iterator[tuple[int, _Rows]]
) -> Iterator[tuple[int, _Rows, _Rows]]:
    """Key groups of both sides, ascending."""
    old, new = next(before, None), next(after, None)
    while old is not None or new is not None:
        key_group = min(side[0] for side in (old, new) if side is not None)
        yield (
            key_group,
            old[1] if old is not None and old[0] == key_group else {},
            new[1] if new is not None and new[0] == key_group else {},
        )
        if old is not None and old[0] == key_group:
            old = next(before, None)
        if new is not None and new[0] == key_group:
            new = next(after, None)


def _changes(old: _Rows, new: _Rows) -> Iterator[tuple[str, Values, Any, Any]]:
    delete, update, insert = CHANGES
    for exact, (key, value) in old.items():
        if exact not in new:
            yield delete, key, value, None
        elif _exact(value) != _exact(now := new[exact][1]):
            yield update, key, value, now
    for exact, (key, value) in new.items():
        if exact not in old:
            yield insert, key, None, value


def _exact(value: Any) -> Any:  # noqa: ANN401  (values of all types)
    """A value that equals another only if Flink writes both with the same bytes."""
    if isinstance(value, float):
        return _DOUBLE.pack(value)
    if isinstance(value, Decimal):
        return value.as_tuple()
    if isinstance(value, RowData) and value.binary:
        return value.binary
    if isinstance(value, (tuple, list)):
        return tuple([_exact(item) for item in value])
    return value
