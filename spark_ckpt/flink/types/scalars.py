"""Types whose serializers have no configuration: a line for each in `SCALARS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_ckpt.flink.streams.types import arrays, big_numbers, cep, primitives, text, times
from spark_ckpt.flink.streams.types.base import SimpleSerializer
from spark_ckpt.flink.streams.values import Instant, LocalDate, LocalDateTime, LocalTime, SqlTimestamp
from spark_ckpt.flink.types.arrow import INSTANT, MILLIS, STRING, TIMESTAMP, fields_type
from spark_ckpt.flink.types.encoded_columns import (
    BadValueError,
    Encoded,
    Hashes,
    constant,
    fixed,
    joined,
    refuse_nulls,
)
from spark_ckpt.flink.types.hashes import hashes_of_booleans, hashes_of_numbers, hashes_of_tuples
from spark_ckpt.flink.types.record import ArrowType, Convert, FlinkType, Read, Write
from spark_ckpt.flink.types.text import read_bytes, read_strings, write_bytes, write_strings
from spark_ckpt.metadata.data_output import DataOutput
from spark_ckpt.metadata.errors import MetadataValueError
from spark_ckpt.state.vector_rows import ByteRows, Column, NotPlainError

_MIN_LONG = -(1 << 63)


def with_one_nan(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """The numbers, and instead of each NaN that of Java, on which the hash of a key depends."""
    return np.where(np.isnan(values), values.dtype.type(np.nan), values)


def numbers_of(array: pa.Array) -> NDArray[Any]:
    """Numbers of a column; of times, milliseconds since 1970.

    Raises:
        BadValueError: there is a null.
    """
    refuse_nulls(array)
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    found: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return with_one_nan(found) if found.dtype.kind == "f" else found


def write_numbers(kind: str) -> Write:
    """Writer of numbers as a NumPy type, such as `>i8`."""

    def write(array: pa.Array) -> Encoded:
        values = numbers_of(array)
        return Encoded((fixed(values, kind),), lambda: hashes_of_numbers(values))

    return write


def read_millis(rows: ByteRows) -> Column:
    """Milliseconds since 1970."""
    return Column(pa.array(rows.numbers(">i8")).cast(MILLIS.type))


def write_millis(array: pa.Array) -> Encoded:
    """Milliseconds since 1970."""
    return Encoded((fixed(numbers_of(array), ">i8"),))


def struct_reader(readers: Sequence[Read | None], kind: pa.DataType, *, hashed: bool = False) -> Read | None:
    """Reader of structs from those of their fields; None if one of these is None.

    Args:
        readers: readers of the fields.
        kind: Arrow type of the structs.
        hashed: True if their hashes are those of tuples.
    """
    plain = [reader for reader in readers if reader is not None]
    if len(plain) != len(readers):
        return None
    fields = list(kind)

    def read(rows: ByteRows) -> Column:
        columns = [reader(rows) for reader in plain]
        array = pa.StructArray.from_arrays([column.array for column in columns], fields=fields)
        hashes = [column.hashes for column in columns if column.hashes is not None]
        is_key = hashed and len(hashes) == len(columns)
        return Column(array, hashes_of_tuples(hashes, len(array)) if is_key else None)

    return read


def struct_writer(writers: Sequence[Write], *, hashed: bool = False) -> Write:
    """Writer of structs from those of their fields, which follow each other.

    Args:
        writers: writers of the fields.
        hashed: True if their hashes are those of tuples, unless a field has none.
    """

    def write(array: pa.Array) -> Encoded:
        refuse_nulls(array)
        found = [write(column) for write, column in zip(writers, array.flatten(), strict=True)]
        hashes = [each.hashes for each in found if each.hashes is not None]
        is_key = hashed and len(hashes) == len(found)
        return Encoded(
            (joined([part for each in found for part in each.parts], len(array)),),
            (lambda: hashes_of_tuples([each() for each in hashes], len(array))) if is_key else None,
        )

    return write


def _read_numbers(kind: str) -> Read:
    def read(rows: ByteRows) -> Column:
        values = rows.numbers(kind)
        # Floats as keys are rare, and not each NaN has the hash of its bits.
        return Column(pa.array(values), None if kind[1] == "f" else hashes_of_numbers(values))

    return read


def _read_booleans(rows: ByteRows) -> Column:
    return Column(pa.array(rows.numbers("u1") != 0))


def _write_booleans(array: pa.Array) -> Encoded:
    refuse_nulls(array)
    values = array.to_numpy(zero_copy_only=False)
    return Encoded((fixed(values, "u1"),), lambda: hashes_of_booleans(values))


def _read_void(rows: ByteRows) -> Column:
    if rows.numbers("u1").any():
        raise NotPlainError
    return Column(pa.nulls(rows.ends.size))


def _write_void(array: pa.Array) -> Encoded:
    return Encoded((constant(b"\0", len(array)),))


def _write_dates(array: pa.Array) -> Encoded:
    """Times, with the least number for null."""
    return write_numbers(">i8")(array.cast(pa.int64()).fill_null(_MIN_LONG) if array.null_count else array)


def _one_by_one(serializer: SimpleSerializer, convert: Convert | None, array: pa.Array) -> Encoded:
    values = [_value(convert, value, index) for index, value in enumerate(array.to_pylist())]
    encoded = []
    for index, value in enumerate(values):
        out = DataOutput()
        try:
            serializer.write(value, out, "value")
        except MetadataValueError as refused:
            raise BadValueError(index, refused.reason) from None
        except TypeError:
            raise BadValueError(index, f"{value!r} is no {serializer}") from None
        encoded.append(out.getvalue())

    def hashes() -> Hashes:
        return np.array([(serializer.hash_code(value) or 0) & 0xFFFFFFFF for value in values], np.uint32)

    of_values = hashes if serializer.hashes is not None else None
    return Encoded((pa.array(encoded, pa.large_binary()),), of_values)


def _value(convert: Convert | None, value: Any, index: int) -> Any:  # noqa: ANN401  (values of all types)
    if value is None or convert is None:
        return value
    try:
        return convert(value)
    except (ValueError, InvalidOperation):
        raise BadValueError(index, f"{value!r} is no number") from None


def _number(serializer: SimpleSerializer, kind: str, arrow: pa.DataType, java: str) -> FlinkType:
    return FlinkType(serializer, ArrowType(arrow), _read_numbers(kind), write_numbers(kind), java)


def _date(serializer: SimpleSerializer) -> FlinkType:
    return FlinkType(serializer, MILLIS, write=_write_dates)


def _window(serializer: SimpleSerializer) -> FlinkType:
    arrow = fields_type(start=MILLIS.type, end=MILLIS.type)
    return FlinkType(
        serializer,
        arrow,
        struct_reader([read_millis, read_millis], arrow.type),
        struct_writer([write_millis, write_millis]),
    )


def _single(
    serializer: SimpleSerializer,
    arrow: ArrowType | pa.DataType,
    convert: Convert | None = None,
    java: str | None = None,
) -> FlinkType:
    """Type whose values are read and written one by one; `convert` is the inverse of `ArrowType.convert`."""
    arrow = arrow if isinstance(arrow, ArrowType) else ArrowType(arrow)
    return FlinkType(serializer, arrow, None, lambda array: _one_by_one(serializer, convert, array), java)


def _struct(serializer: SimpleSerializer, arrow: ArrowType, kind: Callable[..., Any], java: str | None) -> FlinkType:
    return _single(serializer, arrow, lambda value: kind(**value), java)


_LOCAL_DATE = fields_type(year=pa.int32(), month=pa.int8(), day=pa.int8())
_LOCAL_TIME = fields_type(hour=pa.int8(), minute=pa.int8(), second=pa.int8(), nanos=pa.int32())
_LOCAL_DATE_TIME = ArrowType(
    pa.struct([("date", _LOCAL_DATE.type), ("time", _LOCAL_TIME.type)]),
    lambda value: {"date": value.date._asdict(), "time": value.time._asdict()},
)
# They have no limit of digits.
_BIG = ArrowType(pa.string(), str)


def _local_date_time(value: dict[str, dict[str, int]]) -> LocalDateTime:
    return LocalDateTime(LocalDate(**value["date"]), LocalTime(**value["time"]))


SCALARS = (
    FlinkType(primitives.BOOLEAN, ArrowType(pa.bool_()), _read_booleans, _write_booleans, "Types.BOOLEAN"),
    _number(primitives.BYTE, ">i1", pa.int8(), "Types.BYTE"),
    _number(primitives.SHORT, ">i2", pa.int16(), "Types.SHORT"),
    _number(primitives.INT, ">i4", pa.int32(), "Types.INT"),
    _number(primitives.LONG, ">i8", pa.int64(), "Types.LONG"),
    _number(primitives.FLOAT, ">f4", pa.float32(), "Types.FLOAT"),
    _number(primitives.DOUBLE, ">f8", pa.float64(), "Types.DOUBLE"),
    _single(primitives.CHAR, STRING),
    FlinkType(primitives.BYTES, ArrowType(pa.binary()), read_bytes, write_bytes, "Types.PRIMITIVE_ARRAY(Types.BYTE)"),
    FlinkType(primitives.VOID_NAMESPACE, ArrowType(pa.null()), _read_void, _write_void),
    _window(primitives.TIME_WINDOW),
    _window(primitives.SQL_TIME_WINDOW),
    _single(primitives.SQL_COUNT_WINDOW, fields_type(id=pa.int64())),
    _single(primitives.GLOBAL_WINDOW, pa.null()),
    _single(primitives.SQL_NULL, pa.null()),
    _single(arrays.BOOLEANS, pa.list_(pa.bool_())),
    _single(arrays.SHORTS, pa.list_(pa.int16())),
    _single(arrays.INTS, pa.list_(pa.int32())),
    _single(arrays.LONGS, pa.list_(pa.int64())),
    _single(arrays.FLOATS, pa.list_(pa.float32())),
    _single(arrays.DOUBLES, pa.list_(pa.float64())),
    _single(arrays.CHARS, pa.list_(pa.string())),
    _single(arrays.STRINGS, pa.list_(pa.string())),
    _single(cep.DEWEY_NUMBER, pa.list_(pa.int32())),
    _single(cep.EVENT_ID, fields_type(id=pa.int32(), timestamp=MILLIS.type)),
    FlinkType(text.STRING, STRING, read_strings, write_strings, "Types.STRING"),
    FlinkType(text.STRING_DATA, STRING, write=write_bytes),
    _single(big_numbers.BIG_INTEGER, _BIG, int),
    _single(big_numbers.BIG_DECIMAL, _BIG, Decimal, "Types.BIG_DEC"),
    _date(times.DATE),
    _date(times.SQL_DATE),
    _date(times.SQL_TIME),
    _struct(times.SQL_TIMESTAMP, TIMESTAMP, SqlTimestamp, None),
    _struct(times.INSTANT, INSTANT, Instant, "Types.INSTANT"),
    _struct(times.LOCAL_DATE, _LOCAL_DATE, LocalDate, "Types.LOCAL_DATE"),
    _struct(times.LOCAL_TIME, _LOCAL_TIME, LocalTime, "Types.LOCAL_TIME"),
    _single(times.LOCAL_DATE_TIME, _LOCAL_DATE_TIME, _local_date_time, "Types.LOCAL_DATE_TIME"),
)
