"""Conversion of Flink's columns to those of a query's state: exact, or refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_ckpt.flink.importing.errors import FlinkTypeError
from spark_ckpt.flink.types.arrow import INSTANT, MILLIS, TIMESTAMP
from spark_ckpt.spark_files.types import Array, Decimal, Fixed, Map, SparkType, Struct
from spark_ckpt.state.unsafe_row import struct_array
from spark_ckpt.state.unsafe_row_encoder import encodable

Convert: TypeAlias = Callable[[pa.Array], pa.Array]

ROW_KIND = "kind"
"""Field of Flink's rows with the kind of a change, as a number; 0 for an insertion (`RowKind`)."""

_MICROS = pa.timestamp("us", "UTC")
_MICROS_NTZ = pa.timestamp("us")


class UnfitValueError(ValueError):
    """A value cannot be converted.

    Attributes:
        column: path of the column.
        index: its row in the array.
        reason: what is wrong.
    """

    def __init__(self, column: str, index: int, reason: str) -> None:
        super().__init__(f"{column}: {reason} (row {index})")
        self.column = column
        self.index = index
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Fit:
    """Conversion of a column of Flink to the rows of a query's state.

    Args:
        convert: makes non-null structs of the query's type; raises `UnfitValueError`.
        columns: name in Flink, name in the query, Arrow type in Flink and in the query, for each field.
    """

    convert: Convert
    columns: tuple[tuple[str, str, str, str], ...]


def fit_rows(
    source: pa.DataType,
    target: Struct,
    state: str,
    column: str,
    *,
    order: Sequence[str] | None = None,
    required: frozenset[str] = frozenset(),
) -> Fit:
    """Conversion of a state's keys, elements or values to rows.

    A row, tuple or object of Flink becomes the row with the same fields: by name if the names agree, else by position
    if Flink has none. Any other value becomes the only field.

    Args:
        source: Arrow type of the values.
        target: type of the rows.
        state: the state, for errors.
        column: the column, for errors.
        order: Flink's fields in the order of the query's, where their order differs or some are ignored.
        required: fields of the query that cannot be null.

    Raises:
        FlinkTypeError: the types do not fit.
    """
    if not all(map(encodable, target.types)):
        raise FlinkTypeError(state, column, str(source), str(target.arrow), "state of this type cannot be written")
    fields = _fields(source, target, state, column, order)
    if fields is None:
        if len(target.types) != 1 or order is not None:
            raise FlinkTypeError(state, column, str(source), str(target.arrow))
        only = _fit(source, target.types[0], state, column)
        return Fit(
            lambda array: _checked([only(array)], target, column, required),
            ((column, f"{column}.{target.names[0]}", str(source), str(target.types[0].arrow)),),
        )
    parts = [
        _fit(source.field(index).type, kind, state, f"{column}.{source.field(index).name}")
        for index, kind in zip(fields, target.types, strict=True)
    ]
    paths = [f"{column}.{source.field(index).name}" for index in fields]
    columns = tuple(
        (path, f"{column}.{name}", str(source.field(index).type), str(kind.arrow))
        for path, index, name, kind in zip(paths, fields, target.names, target.types, strict=True)
    )

    has_kind = _has_kind(source)

    def convert(array: pa.Array) -> pa.Array:
        flat = array.flatten()
        if has_kind:
            _check_kind(flat[0], column)
        return _checked(
            [part(flat[index]) for part, index in zip(parts, fields, strict=True)], target, column, required, len(array)
        )

    return Fit(convert, columns)


def _fields(
    source: pa.DataType, target: Struct, state: str, column: str, order: Sequence[str] | None
) -> list[int] | None:
    """Positions of Flink's fields, in the order of the target's; None if the source is a single value."""
    if not pa.types.is_struct(source):
        return None
    names = [field.name for field in source]
    if order is None and sorted(names) == sorted(target.names):
        return [names.index(name) for name in target.names]
    if source in (INSTANT.type, TIMESTAMP.type):
        return None
    if order is not None:
        unknown = [name for name in order if name not in names]
        if unknown or len(order) != len(target.names) or len({*order}) != len(order):
            reason = f"the order {','.join(order)} does not name {len(target.names)} of its fields"
            raise FlinkTypeError(state, column, str(source), str(target.arrow), reason)
        return [names.index(name) for name in order]
    plain = names[1:] if _has_kind(source) else names
    if plain != [f"f{number}" for number in range(len(target.names))]:
        raise FlinkTypeError(state, column, str(source), str(target.arrow))
    return [names.index(name) for name in plain]


def _has_kind(source: pa.DataType) -> bool:
    """True for a row of Flink (`RowData`, `Row`)."""
    names = [field.name for field in source]
    return names == [ROW_KIND, *(f"f{number}" for number in range(len(names) - 1))]


def _check_kind(kinds: pa.Array, column: str) -> None:
    """Checks that the rows of an array, none of which is null, are insertions."""
    wrong = np.flatnonzero(np.asarray(kinds))
    if wrong.size:
        index = int(wrong[0])
        raise UnfitValueError(column, index, f"a row of kind {kinds[index]}; only insertions (0) can be imported")


def _checked(
    columns: Sequence[pa.Array], target: Struct, column: str, required: frozenset[str], count: int | None = None
) -> pa.Array:
    for name, values in zip(target.names, columns, strict=True):
        if name in required and values.null_count:
            index = int(np.flatnonzero(np.asarray(values.is_null()))[0])
            raise UnfitValueError(f"{column}.{name}", index, "a null where the query's column has none")
    return struct_array(columns, list(target.arrow), len(columns[0]) if columns else count or 0)


# ---- single values ---------------------------------------------------------------------------------------------------


def _fit(source: pa.DataType, target: SparkType, state: str, column: str) -> Convert:
    """Conversion of single values, which may be null."""
    if source == target.arrow:
        return lambda array: array
    result = None
    match target:
        case Fixed():
            result = _fit_fixed(source, target.arrow, column)
        case Decimal() if pa.types.is_decimal128(source):
            if source.scale == target.arrow.scale and source.precision <= target.arrow.precision:
                result = _cast(target.arrow, column)
        case Struct() if pa.types.is_struct(source):
            return _fit_struct(source, target, state, column)
        case Array() if pa.types.is_list(source):
            _fit(source.value_type, target.element, state, f"{column}.element")
            result = _one_by_one(target)
        case Map() if pa.types.is_map(source):
            _fit(source.key_type, target.key, state, f"{column}.key")
            _fit(source.item_type, target.value, state, f"{column}.value")
            result = _one_by_one(target)
    if result is None:
        raise FlinkTypeError(state, column, str(source), str(target.arrow))
    return result


def _fit_fixed(source: pa.DataType, target: pa.DataType, column: str) -> Convert | None:
    is_wider = source.bit_width < target.bit_width if _is_number(source) and _is_number(target) else False
    if is_wider and pa.types.is_integer(source) == pa.types.is_integer(target):
        return _cast(target, column)
    if target == _MICROS and source == MILLIS.type:
        return _cast(target, column)
    if target in (_MICROS, _MICROS_NTZ) and source == TIMESTAMP.type:
        return lambda array: _micros(array, 1000, 1_000_000, target, column)
    if target == _MICROS and source == INSTANT.type:
        return lambda array: _micros(array, 1_000_000, None, target, column)
    return None


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_floating(kind))


def _cast(target: pa.DataType, column: str) -> Convert:
    def convert(array: pa.Array) -> pa.Array:
        try:
            return array.cast(target)
        except pa.ArrowInvalid as e:
            raise UnfitValueError(column, 0, f"a value of the batch does not fit {target}: {e}") from None

    return convert


def _micros(array: pa.Array, factor: int, modulus: int | None, target: pa.DataType, column: str) -> pa.Array:
    """Microseconds of a moment in larger units and nanoseconds, the latter within the larger unit."""
    major, nanos = (np.asarray(pc.fill_null(part, 0), np.int64) for part in array.flatten())
    below = nanos if modulus is None else nanos % modulus
    fine = np.flatnonzero(below % 1000)
    if fine.size:
        raise UnfitValueError(column, int(fine[0]), "a moment finer than microseconds")
    bound = np.iinfo(np.int64).max // factor - 1
    far = np.flatnonzero(np.abs(major) > bound)
    if far.size:
        raise UnfitValueError(column, int(far[0]), "a moment beyond the range of microseconds")
    return pa.array(major * factor + below // 1000, pa.int64(), mask=np.asarray(array.is_null())).cast(target)


def _fit_struct(source: pa.DataType, target: Struct, state: str, column: str) -> Convert:
    nested = fit_rows(source, target, state, column)

    def convert(array: pa.Array) -> pa.Array:
        nulls = np.asarray(array.is_null())
        if not nulls.any():
            return nested.convert(array)
        present = np.flatnonzero(~nulls)
        try:
            found = nested.convert(array.take(pa.array(present)))
        except UnfitValueError as e:
            raise UnfitValueError(e.column, int(present[e.index]), e.reason) from None
        return found.take(pa.array(np.cumsum(~nulls) - 1, mask=nulls))

    return convert


def _one_by_one(target: SparkType) -> Convert:
    """Conversion of lists and maps whose elements are converted: their types were checked."""

    def convert(array: pa.Array) -> pa.Array:
        return pa.array([_value(value, array.type, target) for value in array.to_pylist()], target.arrow)

    return convert


def _value(value: object, source: pa.DataType, target: SparkType) -> object:
    if value is None or source == target.arrow:
        return value
    match target:
        case Array():
            assert isinstance(value, list)
            return [_value(item, source.value_type, target.element) for item in value]
        case Map():
            assert isinstance(value, list)
            return [
                (_value(key, source.key_type, target.key), _value(item, source.item_type, target.value))
                for key, item in value
            ]
    # Structs and moments have array conversions only.
    (converted,) = _fit(source, target, "", "element")(pa.array([value], source)).to_pylist()
    return converted
