"""Entries of a canonical savepoint: key and value of each row in bytes, and its key group.

`spark_ckpt.flink.streams.full_snapshot` describes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_ckpt.flink.export.errors import FlinkRowError
from spark_ckpt.flink.export.model import (
    KEY,
    MAP_KEY,
    NAMESPACE,
    TIMESTAMP,
    VALUE,
    FlinkOperator,
    FlinkState,
    StateKind,
)
from spark_ckpt.flink.streams.full_snapshot import prefix_bytes
from spark_ckpt.flink.streams.types.composites import NullableSerializer
from spark_ckpt.flink.types.arrow import list_type
from spark_ckpt.flink.types.composites import nullable_flags, of_elements, optional
from spark_ckpt.flink.types.encoded_columns import (
    BadValueError,
    Encoded,
    Part,
    fixed,
    joined,
    lengths_of,
    ragged,
    refuse_nulls,
)
from spark_ckpt.flink.types.hashes import key_groups_of
from spark_ckpt.flink.types.lookup import arrow_type, writer_of
from spark_ckpt.flink.types.record import Write

MAX_ROWS = 1 << 15
"""Rows that are encoded at once."""
_MAX_BYTES = 8 << 20
"""Bytes in Arrow that are encoded at once, unless a single row has more."""

_COMMA = pa.scalar(b",", pa.large_binary())
_SIGN = np.int64(-(1 << 63))
_NULL_KEY = "a null, and Flink has no null keys"
_NULL_VALUE = "a null, which in Flink is no value: leave the row out"


class Entries(NamedTuple):
    """Entries of some rows.

    Args:
        key_groups: key group of each.
        content: bytes of each: `i32` length of the key, key, `i32` length of the value, value.
    """

    key_groups: NDArray[np.int32]
    content: pa.LargeBinaryArray


class StateEncoder:
    """Encoder of the rows of a state.

    Args:
        operator: the operator, which has passed `check`.
        state: the state.
    """

    def __init__(self, operator: FlinkOperator, state: FlinkState) -> None:
        assert operator.key is not None
        self._operator = operator
        self._state = state
        self._max_parallelism = operator.max_parallelism
        self._prefix = f">u{prefix_bytes(operator.max_parallelism)}"
        self._key = writer_of(operator.key, codegen=operator.codegen)
        self._namespace = writer_of(state.namespace)
        self._map_key = None if state.map_key is None else writer_of(state.map_key, codegen=state.codegen)
        self._value = writer_of(state.value)
        self._with_lengths = not (
            operator.key.has_fixed_length or state.namespace.has_fixed_length or state.kind.is_timer
        )
        self._types = _types(operator, state)
        self._rows = 0
        self._places: NDArray[np.int64] | None = None

    def encode(self, batch: pa.RecordBatch) -> Iterator[Entries]:
        """Entries of a batch, in parts.

        Raises:
            FlinkRowError: other columns than those of the state, or a value that does not fit its serializer.
        """
        columns = self._columns(batch)
        rows = max(1, min(MAX_ROWS, batch.num_rows * _MAX_BYTES // max(1, batch.nbytes)))
        for at in range(0, batch.num_rows, rows):
            yield self._entries({name: column.slice(at, rows) for name, column in columns.items()})
            self._rows += min(rows, batch.num_rows - at)

    def _columns(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        if set(batch.schema.names) != set(self._types) or len(batch.schema.names) != len(self._types):
            found, expected = ", ".join(batch.schema.names), ", ".join(self._types)
            raise self._error(None, found, f"other columns than those of the state, which are {expected}")
        return {name: self._typed(name, batch.column(name), kind) for name, kind in self._types.items()}

    def _typed(self, name: str, column: pa.Array, kind: pa.DataType) -> pa.Array:
        if column.type == kind:
            return column
        if pa.types.is_nested(kind) and pa.types.is_nested(column.type):
            # Names of elements and nullability of fields are no part of a value.
            try:
                return column.cast(kind)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
                pass
        raise self._error(None, name, f"the type {column.type}; {kind} is expected")

    def _entries(self, columns: dict[str, pa.Array]) -> Entries:
        self._places = None
        if self._state.kind is StateKind.LIST:
            counts = pc.fill_null(pc.list_value_length(columns[VALUE]), 0)
            if pc.any(pc.equal(counts, 0)).as_py():
                # Flink has no empty lists: that key has no state.
                self._places = np.flatnonzero(counts.to_numpy(zero_copy_only=False))
                columns = {name: column.take(pa.array(self._places)) for name, column in columns.items()}
        rows = len(columns[KEY])
        key = self._encoded(self._key, KEY, columns[KEY], _NULL_KEY)
        assert key.hashes is not None
        key_groups = key_groups_of(key.hashes(), self._max_parallelism)
        parts: list[Part] = [fixed(key_groups, self._prefix)]
        if self._state.kind.is_timer:
            timestamps = self._encoded(_flipped, TIMESTAMP, columns[TIMESTAMP], "a null")
            parts += [*timestamps.parts, *key.parts, *self._namespace_of(columns, rows).parts]
        else:
            namespace = self._namespace_of(columns, rows)
            parts += self._with_length(key, rows)
            parts += self._with_length(namespace, rows)
            if self._map_key is not None:
                parts += self._encoded(self._map_key, MAP_KEY, columns[MAP_KEY]).parts
        value = self._value_of(columns, rows)
        framed = joined((*_framed(parts, rows), *_framed(value, rows)), rows)
        return Entries(key_groups, ragged(framed))

    def _namespace_of(self, columns: dict[str, pa.Array], rows: int) -> Encoded:
        if NAMESPACE not in columns:
            return self._namespace(pa.nulls(rows))
        return self._encoded(self._namespace, NAMESPACE, columns[NAMESPACE], "a null")

    def _with_length(self, encoded: Encoded, rows: int) -> tuple[Part, ...]:
        """A part of a key, followed by its length if the ends of key and namespace are not clear without."""
        if not self._with_lengths:
            return encoded.parts
        lengths = lengths_of(encoded.parts, rows).tolist()
        behind = [length.to_bytes(max(1, (length.bit_length() + 7) // 8), "little") for length in lengths]
        return (*encoded.parts, pa.array(behind, pa.large_binary()))

    def _value_of(self, columns: dict[str, pa.Array], rows: int) -> tuple[Part, ...]:
        if self._state.kind.is_timer:
            return ()
        column = columns[VALUE]
        if self._state.kind is StateKind.LIST:
            return self._encoded(
                lambda lists: Encoded((of_elements(self._value, lists, _COMMA)[1],)), VALUE, column
            ).parts
        if self._state.kind is StateKind.MAP:
            return self._encoded(
                lambda values: Encoded((optional(self._value, nullable_flags, values),)), VALUE, column
            ).parts
        no_nulls = None if isinstance(self._state.value, NullableSerializer) else _NULL_VALUE
        return self._encoded(self._value, VALUE, column, no_nulls).parts

    def _encoded(self, write: Write, name: str, column: pa.Array, no_nulls: str | None = None) -> Encoded:
        try:
            if no_nulls is not None:
                refuse_nulls(column, no_nulls)
            return write(column)
        except BadValueError as bad:
            index = bad.index
            if index is not None and self._places is not None:
                index = int(self._places[index])
            raise self._error(None if index is None else self._rows + index, name, bad.reason) from None

    def _error(self, row: int | None, column: str, reason: str) -> FlinkRowError:
        return FlinkRowError(self._operator.title, self._state.name, row, column, reason)


def _types(operator: FlinkOperator, state: FlinkState) -> dict[str, pa.DataType]:
    """Arrow types of the columns."""
    assert operator.key is not None
    types = {KEY: arrow_type(operator.key).type}
    for name in state.columns[1:]:
        if name == NAMESPACE:
            types[name] = arrow_type(state.namespace).type
        elif name == MAP_KEY:
            assert state.map_key is not None
            types[name] = arrow_type(state.map_key).type
        elif name == TIMESTAMP:
            types[name] = pa.int64()
        else:
            value = arrow_type(state.value)
            types[name] = (list_type(value) if state.kind is StateKind.LIST else value).type
    return types


def _flipped(timestamps: pa.Array) -> Encoded:
    """Timestamps with their sign bit flipped, so that bytes sort like numbers (`TimerSerializer`)."""
    return Encoded((fixed(timestamps.to_numpy(zero_copy_only=False) ^ _SIGN, ">i8"),))


def _framed(parts: list[Part] | tuple[Part, ...], rows: int) -> tuple[Part, ...]:
    return (fixed(lengths_of(parts, rows), ">i4"), *parts)
