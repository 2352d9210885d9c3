"""`BigInteger` and `BigDecimal`.

BigInteger      i32 0 for null, 1, 2, 3 for the numbers 0, 1 and 10; else 4 plus the length of its two's complement,
                big-endian and as short as possible, then that
BigDecimal      its unscaled BigInteger, and unless null, i32 scale
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from spark_ckpt.flink.streams.types.base import BASE, SimpleSerializer
from spark_ckpt.format.decimals import decimal_of, twos_complement, unscaled_of
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.data_output import DataOutput

_BY_CODE = {0: None, 1: 0, 2: 1, 3: 10}
_CODES = {number: code for code, number in _BY_CODE.items()}
_OFFSET = 4
_MAX_BYTES = 1024
"""Above, Python refuses to print an integer, and the decimal takes quadratic time."""
_U32 = 0xFFFFFFFF


def _read_integer(data: DataInput, field: str) -> int | None:
    at = data.position
    code = data.i32(field)
    if code in _BY_CODE:
        return _BY_CODE[code]
    if not 0 < code - _OFFSET <= _MAX_BYTES:
        data.fail(field, f"an integer of {code - _OFFSET} bytes; 1 to {_MAX_BYTES} are supported", at)
    return int.from_bytes(data.raw(code - _OFFSET, field), "big", signed=True)


def _write_integer(out: DataOutput, value: Any, field: str) -> None:
    if value is None or (type(value) is int and value in _CODES):
        out.i32(_CODES[value], field)
        return
    if type(value) is not int:
        raise out.error(field, f"{value!r} is not an integer")
    content = twos_complement(value)
    out.i32(len(content) + _OFFSET, field)
    out.raw(content)


def _read_decimal(data: DataInput, field: str) -> Decimal | None:
    unscaled = _read_integer(data, field)
    return None if unscaled is None else decimal_of(unscaled, data.i32(field))


def _write_decimal(out: DataOutput, value: Any, field: str) -> None:
    if value is None:
        _write_integer(out, None, field)
        return
    if not isinstance(value, Decimal) or not value.is_finite():
        raise out.error(field, f"{value!r} is not a finite Decimal")
    unscaled, scale = unscaled_of(value)
    _write_integer(out, unscaled, field)
    out.i32(scale, field)


def _hash_of_integer(number: int) -> int:
    code, magnitude = 0, abs(number)
    for word in range((magnitude.bit_length() - 1) // 32, -1, -1):
        code = 31 * code + (magnitude >> 32 * word) & _U32
    return -code if number < 0 else code


def _hash_of_decimal(number: Decimal) -> int:
    unscaled, scale = unscaled_of(number)
    return 31 * _hash_of_integer(unscaled) + scale & _U32


BIG_INTEGER = SimpleSerializer(
    "BigInteger",
    f"{BASE}.BigIntSerializer$BigIntSerializerSnapshot",
    _read_integer,
    _write_integer,
    fixed=False,
    hashes=_hash_of_integer,
)
BIG_DECIMAL = SimpleSerializer(
    "BigDecimal",
    f"{BASE}.BigDecSerializer$BigDecSerializerSnapshot",
    _read_decimal,
    _write_decimal,
    fixed=False,
    hashes=_hash_of_decimal,
)

SERIALIZERS = (BIG_INTEGER, BIG_DECIMAL)
