"""Types of Flink's DataStream API for types of Spark.

A type of Spark becomes the Java type without loss: a timestamp an `Instant`, one without zone a `LocalDateTime`, a date
a `LocalDate`, a decimal a `BigDecimal`, an array a `List`, a map a `Map`, a struct a `Row`. Intervals become their
number of microseconds or months.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_ckpt.flink.export.export_type import (
    Convert,
    ExportType,
    NotForFlinkError,
    check_no_null,
    java_text,
    rows_of_kind,
    structs,
)
from spark_ckpt.flink.streams.types import big_numbers, primitives, times
from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.types.composites import ListSerializer, MapSerializer, RowSerializer, TupleSerializer
from spark_ckpt.flink.types.lookup import arrow_type
from spark_ckpt.flink.types.scalars import SCALARS
from spark_ckpt.spark_files.types import Array, Bytes, Decimal, Fixed, Map, SparkType, Struct

MAX_TUPLE_FIELDS = 25
"""Fields of Flink's largest tuple (`Tuple25`)."""

_Integers: TypeAlias = NDArray[np.int64]

_SECOND, _DAY = 1_000_000, 86_400_000_000
_SIMPLE = {scalar.arrow.type: scalar for scalar in SCALARS if scalar.java and scalar.arrow.convert is None}
"""Types that Spark and Flink have alike."""


def plain_type(kind: SparkType) -> ExportType:
    """Type of the DataStream API for a type of Spark.

    Raises:
        NotForFlinkError: it has none.
    """
    match kind:
        case Fixed() | Bytes():
            return _leaf(kind.arrow)
        case Decimal():
            return ExportType.of_scalar(big_numbers.BIG_DECIMAL, lambda values: values.cast(pa.string()))
        case Array():
            element = plain_type(kind.element)
            serializer = ListSerializer((element.serializer,))
            return ExportType(serializer, f"Types.LIST({element.java})", _lists(element, serializer))
        case Map():
            key, item = plain_type(kind.key), plain_type(kind.value)
            of_map = MapSerializer((key.serializer, item.serializer))
            return ExportType(of_map, f"Types.MAP({key.java}, {item.java})", _maps(key, item, of_map))
        case Struct() if kind.types:
            return _row(kind)
    raise NotForFlinkError(f"Flink has no type for Spark's {_name(kind)}")


def tuple_type(names: tuple[str, ...], parts: tuple[SparkType, ...], remedy: str) -> ExportType:
    """Flink's tuple of some columns. Its fields cannot be null.

    Args:
        names: names of the columns, for errors.
        parts: their types.
        remedy: what to do about a null.

    Raises:
        NotForFlinkError: a column has no type in Flink, or there are none or too many.
    """
    if not 0 < len(parts) <= MAX_TUPLE_FIELDS:
        raise NotForFlinkError(f"{len(parts)} columns are no tuple of Flink, which has 1 to {MAX_TUPLE_FIELDS} fields")
    fields = [plain_type(part) for part in parts]
    serializer = TupleSerializer.of(*[field.serializer for field in fields])
    kind = arrow_type(serializer).type

    def convert(values: pa.Array) -> pa.Array:
        columns = values.flatten()
        for name, column in zip(names, columns, strict=True):
            check_no_null(column, name, remedy)
        converted = [field.of(column) for field, column in zip(fields, columns, strict=True)]
        return structs(converted, kind, values)

    return ExportType(serializer, f"Types.TUPLE({', '.join(field.java for field in fields)})", convert)


def _row(kind: Struct) -> ExportType:
    fields = [plain_type(part) for part in kind.types]
    serializer = RowSerializer(tuple(field.serializer for field in fields))
    arrow = arrow_type(serializer).type

    def convert(values: pa.Array) -> pa.Array:
        converted = [field.of(column) for field, column in zip(fields, values.flatten(), strict=True)]
        return rows_of_kind(converted, arrow, values)

    names = ", ".join(map(java_text, kind.names))
    java = f"Types.ROW_NAMED(new String[] {{{names}}}, {', '.join(field.java for field in fields)})"
    return ExportType(serializer, java, convert)


def _lists(element: ExportType, serializer: Serializer) -> Convert:
    kind = arrow_type(serializer).type

    def convert(values: pa.Array) -> pa.Array:
        items = values.flatten()
        check_no_null(items, "an element of an array", "the value cannot be exported")
        offsets = _offsets(values)
        return pa.ListArray.from_arrays(offsets, element.of(items), type=kind, mask=_mask(values))

    return convert


def _maps(key: ExportType, item: ExportType, serializer: Serializer) -> Convert:
    kind = arrow_type(serializer).type

    def convert(values: pa.Array) -> pa.Array:
        # The entries of an array with an offset or with nulls are more than its own.
        lists = values.cast(pa.list_(pa.struct([("key", values.type.key_type), ("value", values.type.item_type)])))
        entries = lists.flatten()
        keys, items = entries.flatten()
        pairs = structs([key.of(keys), item.of(items)], pa.struct([kind.key_field, kind.item_field]), entries)
        offsets = pa.py_buffer(np.asarray(_offsets(lists), np.int32))
        validity = pc.is_valid(values).buffers()[1] if values.null_count else None
        return pa.Array.from_buffers(kind, len(values), [validity, offsets], children=[pairs])

    return convert


def _offsets(lists: pa.Array) -> pa.Array:
    """Offsets into the flattened elements; a null has none."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    return pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32())


def _mask(values: pa.Array) -> pa.Array | None:
    return values.is_null() if values.null_count else None


def _leaf(arrow: pa.DataType) -> ExportType:
    if (simple := _SIMPLE.get(arrow)) is not None:
        return ExportType.of_scalar(simple.serializer)
    if pa.types.is_duration(arrow):
        return ExportType.of_scalar(primitives.LONG, lambda values: values.view(pa.int64()))
    if pa.types.is_timestamp(arrow):
        return _of(times.LOCAL_DATE_TIME, _date_time) if arrow.tz is None else _of(times.INSTANT, _instant)
    if pa.types.is_date(arrow):
        return _of(times.LOCAL_DATE, _date)
    if pa.types.is_time(arrow):
        return _of(times.LOCAL_TIME, _time)
    raise NotForFlinkError(f"Flink has no type for Spark's {arrow}")


def _of(serializer: Serializer, parts: Callable[[_Integers], list[pa.Array]]) -> ExportType:
    """Type of structs, whose fields come from the integers of the values."""
    kind = arrow_type(serializer).type

    def convert(values: pa.Array) -> pa.Array:
        width = pa.int32() if values.type.bit_width == 32 else pa.int64()
        numbers = pc.fill_null(values.view(width), 0).to_numpy().astype(np.int64)
        return structs(parts(numbers), kind, values)

    return ExportType.of_scalar(serializer, convert)


def _instant(micros: _Integers) -> list[pa.Array]:
    # Floor division: the nanoseconds of a time before 1970 count from the earlier second.
    seconds, rest = np.divmod(micros, _SECOND)
    return [pa.array(seconds), pa.array(rest * 1000, pa.int32())]


def _date_time(micros: _Integers) -> list[pa.Array]:
    days, rest = np.divmod(micros, _DAY)
    date, time = arrow_type(times.LOCAL_DATE).type, arrow_type(times.LOCAL_TIME).type
    return [
        pa.StructArray.from_arrays(_date(days), fields=list(date)),
        pa.StructArray.from_arrays(_time(rest * 1000), fields=list(time)),
    ]


def _date(days: _Integers) -> list[pa.Array]:
    # NumPy's calendar is the proleptic Gregorian one, as java.time's.
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    since = months.astype(np.int64)
    year, month = np.divmod(since, 12)
    day = (dates - months.astype("datetime64[D]")).astype(np.int64)
    return [
        pa.array(year + 1970, pa.int32()),
        pa.array(month + 1, pa.int8()),
        pa.array(day + 1, pa.int8()),
    ]


def _time(nanos: _Integers) -> list[pa.Array]:
    seconds, rest = np.divmod(nanos, 1_000_000_000)
    minutes, second = np.divmod(seconds, 60)
    hour, minute = np.divmod(minutes, 60)
    return [
        pa.array(hour, pa.int8()),
        pa.array(minute, pa.int8()),
        pa.array(second, pa.int8()),
        pa.array(rest, pa.int32()),
    ]


def _name(kind: SparkType) -> str:
    return "empty struct" if isinstance(kind, Struct) else type(kind).__name__.lower()
