"""Columns of a state of Flink, named as those of Spark's `statestore` data source, and their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_ckpt.flink.streams import BackendStateType, Datum, Entry, Part, Serializer, StateMetaInfoSnapshot, Timer
from spark_ckpt.flink.streams.headers import KeyedHeader
from spark_ckpt.flink.streams.types import times
from spark_ckpt.flink.streams.types.composites import MapSerializer, TimerSerializer
from spark_ckpt.flink.streams.types.primitives import VOID_NAMESPACE
from spark_ckpt.flink.types.arrow import opaque_type
from spark_ckpt.flink.types.lookup import arrow_type
from spark_ckpt.flink.types.record import ArrowType
from spark_ckpt.state.errors import UnsupportedFlinkStateError

KEY_GROUP, PARTITION = "key_group", "partition_id"
"""The last columns: key group and subtask of the row."""

LIST_ELEMENT = "list_element"
"""Column with the elements of lists."""

_INT = ArrowType(pa.int32())
_TIMESTAMP = times.DATE
"""Serializer whose values are milliseconds since 1970, as the timestamps of timers."""

Values: TypeAlias = tuple[Any, ...]


class Column(NamedTuple):
    """A column.

    Args:
        name: name of the column.
        serializer: name of the serializer of its values.
        arrow: Arrow type of its values.
    """

    name: str
    serializer: str
    arrow: ArrowType


@dataclass(frozen=True, slots=True, eq=False)
class StateColumns:
    """Columns of a state.

    Args:
        state: name of the state, for errors.
        columns: columns with values of the state; key group and subtask follow.
        identity: number of first columns that make a row unique.
        rows: returns the values of these columns in the rows of an entry.
    """

    state: str
    columns: tuple[Column, ...]
    identity: int
    rows: Callable[[Entry], list[Values]]

    @classmethod
    def of(cls, header: KeyedHeader, state_id: int, *, is_heap: bool) -> StateColumns:
        """Columns of a state of a header.

        Args:
            header: the header.
            state_id: position of the state.
            is_heap: whether entries have no lengths, so that those with unknown parts cannot be separated.
        """
        meta = header.states[state_id]
        return cls(meta.name, *_columns(header, meta, is_heap))

    @property
    def schema(self) -> pa.Schema:
        """Names and Arrow types of all columns."""
        fields = [(column.name, column.arrow.type) for column in self.columns]
        return pa.schema([*fields, (KEY_GROUP, _INT.type), (PARTITION, _INT.type)])

    def batch(self, rows: Sequence[Values], key_groups: Sequence[int], subtask: int) -> pa.RecordBatch:
        """Batch of rows.

        Raises:
            UnsupportedFlinkStateError: Arrow cannot hold a value.
        """
        arrays = [self.array(number, [row[number] for row in rows]) for number in range(len(self.columns))]
        return self.of_arrays(arrays, key_groups, subtask)

    def of_arrays(
        self, arrays: Sequence[pa.Array], key_groups: Sequence[int] | NDArray[np.int32], subtask: int
    ) -> pa.RecordBatch:
        """Batch of columns."""
        partitions = pa.repeat(pa.scalar(subtask, _INT.type), len(key_groups))
        return pa.RecordBatch.from_arrays([*arrays, pa.array(key_groups, _INT.type), partitions], schema=self.schema)

    @property
    def is_list(self) -> bool:
        """True if the last column has the elements of lists."""
        return self.columns[-1].name == LIST_ELEMENT

    def array(self, number: int, values: list[Any]) -> pa.Array:
        """Values of a column in Arrow.

        Raises:
            UnsupportedFlinkStateError: Arrow cannot hold a value.
        """
        name, _, arrow = self.columns[number]
        return self.converted(name, arrow, values)

    def converted(self, name: str, arrow: ArrowType, values: list[Any]) -> pa.Array:
        """Values of a type in Arrow.

        Raises:
            UnsupportedFlinkStateError: Arrow cannot hold a value.
        """
        if arrow.convert is not None:
            values = [arrow.of(value) for value in values]
        try:
            return pa.array(values, arrow.type)
        except (pa.ArrowException, ValueError, OverflowError) as error:
            raise UnsupportedFlinkStateError(self.state, f"Arrow cannot hold a {name}: {error}") from error


_Layout: TypeAlias = tuple[tuple[Column, ...], int, Callable[[Entry], list[Values]]]


def _columns(header: KeyedHeader, meta: StateMetaInfoSnapshot, is_heap: bool) -> _Layout:
    if is_heap and header.is_opaque(meta):
        return (_opaque("value", header.opaque_class(meta)),), 1, _content(Part.VALUE)
    if meta.kind is BackendStateType.PRIORITY_QUEUE:
        return _of_queue(meta.value_serializer)
    key, namespace, value = header.key_serializer, meta.namespace_serializer, meta.value_serializer
    columns, parts, identity = _of_value(meta, value)
    if key is None or key.is_opaque or namespace.is_opaque:
        # Their ends are unknown.
        within = [part for part in (key, namespace) if part not in (None, VOID_NAMESPACE)]
        head = [_opaque("key", ", ".join([*map(str, within), *(column.serializer for column in columns[:identity])]))]
        columns, parts = columns[identity:], parts[identity:]
        return (*head, *columns), 1, _entry_rows((Part.COMPOSITE_KEY, *parts), columns)
    head, head_parts = [_column("key", key)], [Part.KEY]
    if namespace != VOID_NAMESPACE:
        head.append(_column("namespace", namespace))
        head_parts.append(Part.NAMESPACE)
    return (*head, *columns), len(head) + identity, _entry_rows((*head_parts, *parts), columns)


def _of_value(meta: StateMetaInfoSnapshot, value: Serializer) -> tuple[list[Column], list[Part], int]:
    """Columns behind key and namespace, their parts, and how many of them make a row unique."""
    if meta.keyed_state_type == "MAP" and isinstance(value, MapSerializer):
        return (
            [_column("user_map_key", value.parts[0]), _column("user_map_value", value.parts[1])],
            [Part.MAP_KEY, Part.VALUE],
            1,
        )
    if meta.keyed_state_type == "LIST" and not value.is_opaque and len(value.nested) == 1:
        return [_column(LIST_ELEMENT, value.nested[0])], [Part.VALUE], 0
    return [_column("value", value)], [Part.VALUE], 0


def _of_queue(element: Serializer) -> _Layout:
    if element.is_opaque or not isinstance(element, TimerSerializer):
        return (_column("element", element),), 1, _content(Part.ELEMENT)
    key, namespace = element.parts
    columns = [_column("key", key)]
    if namespace != VOID_NAMESPACE:
        columns.append(_column("namespace", namespace))
    columns.append(_column("expiration_timestamp_ms", _TIMESTAMP)._replace(arrow=ArrowType(pa.int64())))

    def rows(entry: Entry) -> list[Values]:
        timer = entry.parts[Part.ELEMENT].value
        assert isinstance(timer, Timer)
        if namespace == VOID_NAMESPACE:
            return [(timer.key, timer.timestamp)]
        return [(timer.key, timer.namespace, timer.timestamp)]

    return tuple(columns), len(columns), rows


def _entry_rows(parts: Sequence[Part], columns: Sequence[Column]) -> Callable[[Entry], list[Values]]:
    """Rows of an entry: one, or one per element of a list or per entry of a heap snapshot's map."""
    head = parts[:-1]
    is_list = columns[-1].name == LIST_ELEMENT

    def rows(entry: Entry) -> list[Values]:
        by_part = entry.parts
        value = _value(by_part[Part.VALUE])
        if is_list:
            first = tuple([_value(by_part[part]) for part in head])
            return [(*first, element) for element in value or ()]
        if Part.MAP_KEY in head and Part.MAP_KEY not in by_part:
            first = tuple([_value(by_part[part]) for part in head if part is not Part.MAP_KEY])
            return [(*first, key, item) for key, item in value or ()]
        return [(*[_value(by_part[part]) for part in head], value)]

    return rows


def _content(part: Part) -> Callable[[Entry], list[Values]]:
    return lambda entry: [(_value(entry.parts[part]),)]


def _value(datum: Datum) -> Any:  # noqa: ANN401  (values of all types)
    return datum.value if datum.known else datum.raw


def _column(name: str, serializer: Serializer) -> Column:
    return Column(name, str(serializer), arrow_type(serializer))


def _opaque(name: str, serializer: str) -> Column:
    return Column(name, serializer, opaque_type(serializer))
