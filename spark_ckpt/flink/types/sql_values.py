"""Decimals and timestamps of Flink SQL, many at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_ckpt.flink.streams.types.binary_row import is_compact_decimal, is_compact_timestamp
from spark_ckpt.flink.types.encoded_columns import (
    Encoded,
    Fixed,
    Lengths,
    fixed,
    joined,
    of_buffers,
    refuse,
    refuse_nulls,
)

DECIMAL_BYTES = 16
_MICROS, _NANOS = 1000, 1_000_000


def unscaled_longs(array: pa.Array) -> NDArray[np.int64]:
    """Unscaled integers of decimals of up to 18 digits; anything for a null."""
    return _words(array)[:, 0]


def unscaled_bytes(array: pa.Array) -> tuple[Lengths, Fixed]:
    """Unscaled integers as `BigInteger.toByteArray` writes them: their lengths, and bytes from the front of 16."""
    big_endian = np.ascontiguousarray(_words(array)).view(np.uint8)[:, ::-1]
    sign = np.where(big_endian[:, 0] & 0x80, 0xFF, 0).astype(np.uint8)
    # The first byte is redundant as long as it, and the top bit of the next one, repeat the sign.
    redundant = (big_endian[:, :-1] == sign[:, None]) & ((big_endian[:, 1:] ^ sign[:, None]) & 0x80 == 0)
    skipped = np.logical_and.accumulate(redundant, axis=1).sum(axis=1)
    places = np.minimum(np.arange(DECIMAL_BYTES) + skipped[:, None], DECIMAL_BYTES - 1)
    lengths = DECIMAL_BYTES - skipped
    found = np.take_along_axis(big_endian, places, axis=1)
    found[np.arange(DECIMAL_BYTES) >= lengths[:, None]] = 0
    return lengths.astype(np.int64), found


def _words(array: pa.Array) -> NDArray[np.int64]:
    """Both words of each decimal, the lower one first."""
    content = np.frombuffer(array.buffers()[1], np.int64) if len(array) else np.empty(0, np.int64)
    return content.reshape(-1, 2)[array.offset : array.offset + len(array)]


def millis_and_nanos(array: pa.Array, precision: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Milliseconds since 1970, and nanoseconds of the millisecond; anything for a null.

    Args:
        array: microseconds, or a struct of both.
        precision: digits of the seconds after the point.

    Raises:
        BadValueError: nanoseconds that are not 0 to 999,999, or that the precision does not have.
    """
    if pa.types.is_struct(array.type):
        millis, nanos = (part.fill_null(0).to_numpy(zero_copy_only=False) for part in array.flatten())
        nanos = nanos.astype(np.int64)
        refuse((nanos < 0) | (nanos >= _NANOS), "nanoseconds of a millisecond that are not 0 to 999,999")
    else:
        micros = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        # The floor, so that times before 1970 have nanoseconds of 0 and more, too.
        millis, rest = np.divmod(micros, _MICROS)
        nanos = rest * _MICROS
    if is_compact_timestamp(precision):
        refuse(nanos != 0, f"a fraction of a millisecond, which TIMESTAMP({precision}) does not have")
    return millis, nanos


def write_decimals(array: pa.Array, precision: int) -> Encoded:
    """Decimals as `DecimalDataSerializer` writes them."""
    refuse_nulls(array)
    if is_compact_decimal(precision):
        return Encoded((fixed(unscaled_longs(array), ">i8"),))
    lengths, content = unscaled_bytes(array)
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    body = of_buffers(offsets, content[np.arange(DECIMAL_BYTES) < lengths[:, None]])
    return Encoded((joined((fixed(lengths, ">i4"), body), len(array)),))


def write_timestamps(array: pa.Array, precision: int) -> Encoded:
    """Timestamps as `TimestampDataSerializer` writes them."""
    refuse_nulls(array)
    millis, nanos = millis_and_nanos(array, precision)
    if is_compact_timestamp(precision):
        return Encoded((fixed(millis, ">i8"),))
    return Encoded((fixed(millis, ">i8"), fixed(nanos, ">i4")))
