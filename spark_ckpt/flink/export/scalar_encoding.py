"""Values of Java's big numbers, dates and characters, encoded one by one."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from spark_ckpt.flink.export.encoded_columns import BadValueError, Encoded, Hashes
from spark_ckpt.flink.streams.types import big_numbers, times
from spark_ckpt.flink.streams.types.base import Serializer, SimpleSerializer
from spark_ckpt.flink.streams.values import Instant, LocalDate, LocalDateTime, LocalTime, SqlTimestamp
from spark_ckpt.metadata.data_output import DataOutput
from spark_ckpt.metadata.errors import MetadataValueError

_OF_ARROW: dict[Serializer, Callable[[Any], Any]] = {
    big_numbers.BIG_INTEGER: int,
    big_numbers.BIG_DECIMAL: Decimal,
    times.SQL_TIMESTAMP: lambda value: SqlTimestamp(**value),
    times.INSTANT: lambda value: Instant(**value),
    times.LOCAL_DATE: lambda value: LocalDate(**value),
    times.LOCAL_TIME: lambda value: LocalTime(**value),
    times.LOCAL_DATE_TIME: lambda value: LocalDateTime(LocalDate(**value["date"]), LocalTime(**value["time"])),
}
"""Conversions of what Arrow has; the inverse of `ArrowType.convert`."""


def one_by_one(serializer: SimpleSerializer, array: pa.Array) -> Encoded:
    """Values encoded by their serializer.

    Raises:
        BadValueError: a value does not fit.
    """
    convert = _OF_ARROW.get(serializer)
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


def _value(convert: Callable[[Any], Any] | None, value: Any, index: int) -> Any:  # noqa: ANN401  (values of all types)
    if value is None or convert is None:
        return value
    try:
        return convert(value)
    except (ValueError, InvalidOperation):
        raise BadValueError(index, f"{value!r} is no number") from None
