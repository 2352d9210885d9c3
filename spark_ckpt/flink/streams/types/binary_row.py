"""Rows of Flink SQL in their binary form (`BinaryRowData`). All numbers are little-endian.

row         u8 row kind, a bit for each null field, padded to words of 8 bytes; a slot of 8 bytes for each field;
            variable part, each value padded to 8 bytes
slot        a number; text and bytes up to 7 bytes, then 0x80 plus their length; else length or nanoseconds, u32,
            and offset in the row, u32
variable    text, bytes; unscaled value of a DECIMAL with more than 18 digits, big-endian in 16 bytes; milliseconds
            of a timestamp with more than 3 digits, i64; a row, an array or a map; bytes of a RAW value
array       i32 n, a bit for each null element, padded to 4 bytes; elements: numbers in their own size, others in slots
            as of a row; padded to 8 bytes; variable part
map         i32 length of the array of keys, that array, array of values
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias, TypeVar

from spark_ckpt.flink.streams.errors import StateStreamFormatError
from spark_ckpt.flink.streams.types.accumulators import read_raw_value
from spark_ckpt.flink.streams.types.logical_types import NUMBER_CODES, STRUCTURED, LogicalType
from spark_ckpt.flink.streams.types.text import encode_utf8
from spark_ckpt.flink.streams.values import RowData, Timestamp, Value
from spark_ckpt.format.decimals import decimal_of, twos_complement, unscaled_of
from spark_ckpt.metadata.data_output import DataOutput

_U32 = 0xFFFFFFFF
KIND_BITS = 8
"""Bits of a row's kind, before those of the null fields."""

MAX_INLINE = 7
"""Most bytes of text that a slot holds itself."""

_INLINE = 0x80
_NANOS = 1_000_000
_MAX_COMPACT_DIGITS, _DECIMAL_BYTES = 18, 16
_MAX_COMPACT_PRECISION = 3
_SLOT, _LONG = struct.Struct("<Q"), struct.Struct("<q")

_NUMBERS = {root: struct.Struct(f"<{code}") for root, code in NUMBER_CODES.items()}
_COUNT = LogicalType("INTEGER", nullable=False)
_TEXTS = ("CHAR", "VARCHAR")
_BINARIES = ("BINARY", "VARBINARY")


class MalformedRowError(ValueError):
    """Bytes that are no row of the given types.

    Attributes:
        position: byte position in the row.
        reason: description of the problem.
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason


def is_compact_decimal(precision: int) -> bool:
    """True if a DECIMAL of this precision is an unscaled long."""
    return precision <= _MAX_COMPACT_DIGITS


def is_compact_timestamp(precision: int) -> bool:
    """True if a timestamp of this precision is a number of milliseconds."""
    return precision <= _MAX_COMPACT_PRECISION


# ---- reading ---------------------------------------------------------------------------------------------------------

_Read: TypeAlias = Callable[[bytes, int], Value]
"""Reader of a field of a row from the offset of its slot."""


def decode(types: tuple[LogicalType, ...], row: bytes) -> tuple[int, tuple[Value, ...]]:
    """Row kind and fields of a row.

    Raises:
        MalformedRowError: not a row of these types.
    """
    row = _Container(row)
    header, readers = _readers(types)
    if len(row) < header + 8 * len(types):
        raise MalformedRowError(0, f"a row of {len(row)} bytes; {len(types)} fields need {header + 8 * len(types)}")
    nulls = int.from_bytes(row[:header], "little") >> KIND_BITS
    if nulls:
        fields = tuple([None if nulls >> n & 1 else read(row, header + 8 * n) for n, read in enumerate(readers)])
    else:
        fields = tuple([read(row, header + 8 * n) for n, read in enumerate(readers)])
    return row[0], fields


@lru_cache(maxsize=64)
def _readers(types: tuple[LogicalType, ...]) -> tuple[int, tuple[_Read, ...]]:
    return header_bytes(len(types)), tuple(map(_reader, types))


@lru_cache(maxsize=1024)
def _reader(logical_type: LogicalType) -> _Read:
    root, parameters = logical_type.root, logical_type.parameters
    if (number := _NUMBERS.get(root)) is not None:
        return lambda row, at: number.unpack_from(row, at)[0]
    if root in _TEXTS:
        return _read_text
    if root in _BINARIES:
        return _variable
    if root in ("ROW", STRUCTURED):
        return lambda row, at: _read_row(logical_type.children, row, at)
    if root == "RAW":
        return lambda row, at: _read_raw(logical_type, row, at)
    if root == "ARRAY":
        return lambda row, at: _nested(row, at, lambda content: decode_array(logical_type.children[0], content))
    if root in ("MAP", "MULTISET"):
        keys, values = types_of_map(logical_type)
        return lambda row, at: _nested(row, at, lambda content: decode_map(keys, values, content))
    if root == "DECIMAL":
        precision, scale = parameters
        unscaled = _read_long if is_compact_decimal(precision) else _read_unscaled
        return lambda row, at: decimal_of(unscaled(row, at), scale)
    return _read_compact_timestamp if is_compact_timestamp(parameters[0]) else _read_timestamp


def types_of_map(logical_type: LogicalType) -> tuple[LogicalType, LogicalType]:
    """Types of the keys and values of a MAP, or of the elements and counts of a MULTISET."""
    if logical_type.root == "MULTISET":
        return logical_type.children[0], _COUNT
    keys, values = logical_type.children
    return keys, values


def decode_array(element: LogicalType, content: bytes) -> tuple[Value, ...]:
    """Elements of an array.

    Raises:
        MalformedRowError: not an array of this type.
    """
    count = int.from_bytes(content[:4], "little", signed=True)
    first = 4 + (count + 31) // 32 * 4
    number = _NUMBERS.get(element.root)
    size = _SLOT.size if number is None else number.size
    if len(content) < 4 or count < 0 or first + count * size > len(content):
        raise MalformedRowError(0, f"an array of {count} elements in {len(content)} bytes")
    nulls = int.from_bytes(content[4:first], "little")
    content = _Container(content)
    read = _reader(element)
    return tuple([None if nulls >> n & 1 else read(content, first + n * size) for n in range(count)])


def decode_map(keys: LogicalType, values: LogicalType, content: bytes) -> tuple[Value, ...]:
    """Pairs of a map.

    Raises:
        MalformedRowError: not a map of these types.
    """
    size = int.from_bytes(content[:4], "little", signed=True)
    if not 0 <= size <= len(content) - 4:
        raise MalformedRowError(0, f"{size} bytes of keys in a map of {len(content)} bytes")
    found, items = decode_array(keys, content[4 : 4 + size]), decode_array(values, content[4 + size :])
    if len(found) != len(items):
        raise MalformedRowError(0, f"a map of {len(found)} keys and {len(items)} values")
    return tuple(zip(found, items, strict=True))


_Result = TypeVar("_Result")


def _nested(row: bytes, at: int, read: Callable[[bytes], _Result]) -> _Result:
    (slot,) = _SLOT.unpack_from(row, at)
    offset, length = slot >> 32, slot & _U32
    _check(row, at, offset, length)
    try:
        return read(row[offset : offset + length])
    except MalformedRowError as malformed:
        raise MalformedRowError(offset + malformed.position, malformed.reason) from None
    except struct.error:
        raise MalformedRowError(at, "a value ends behind its array") from None


def _read_raw(logical_type: LogicalType, row: bytes, at: int) -> Value:
    content = _variable(row, at)
    if logical_type.raw is None:
        return content
    try:
        return read_raw_value(logical_type.raw, content, "", 0, "")
    except StateStreamFormatError as malformed:
        raise MalformedRowError(at, f"a RAW value of {logical_type.class_name}: {malformed.reason}") from None


def _read_row(types: tuple[LogicalType, ...], row: bytes, at: int) -> RowData:
    def read(content: bytes) -> RowData:
        kind, fields = decode(types, content)
        return RowData(kind, fields, content)

    return _nested(row, at, read)


def _variable(row: bytes, at: int) -> bytes:
    (slot,) = _SLOT.unpack_from(row, at)
    if slot >> 63:
        if (length := slot >> 56 & 0x7F) > MAX_INLINE:
            raise MalformedRowError(at, f"{length} bytes in a slot")
        return row[at : at + length]
    offset, length = slot >> 32, slot & _U32
    _check(row, at, offset, length)
    return row[offset : offset + length]


def _read_text(row: bytes, at: int) -> str:
    try:
        return _variable(row, at).decode()
    except UnicodeDecodeError:
        raise MalformedRowError(at, "text that is not UTF-8") from None


def _read_long(row: bytes, at: int) -> int:
    value: int = _LONG.unpack_from(row, at)[0]
    return value


def _read_unscaled(row: bytes, at: int) -> int:
    (slot,) = _SLOT.unpack_from(row, at)
    offset, length = slot >> 32, slot & _U32
    if not 0 < length <= _DECIMAL_BYTES:
        raise MalformedRowError(at, f"a DECIMAL of {length} bytes")
    _check(row, at, offset, length)
    return int.from_bytes(row[offset : offset + length], "big", signed=True)


def _read_compact_timestamp(row: bytes, at: int) -> Timestamp:
    return Timestamp(_read_long(row, at))


def _read_timestamp(row: bytes, at: int) -> Timestamp:
    (slot,) = _SLOT.unpack_from(row, at)
    offset, nanos = slot >> 32, slot & _U32
    if nanos >= _NANOS:
        raise MalformedRowError(at, f"{nanos} nanoseconds of a millisecond")
    _check(row, at, offset, _LONG.size)
    return Timestamp(_read_long(row, offset), nanos)


def _check(row: bytes, at: int, offset: int, length: int) -> None:
    if offset + length > len(row):
        raise MalformedRowError(at, f"{length} bytes at {offset} of a row of {len(row)}")
    if isinstance(row, _Container):
        row.left -= length
        if row.left < 0:
            raise MalformedRowError(at, "values that share their bytes")


class _Container(bytes):
    """Bytes of a row or array, and how many of them its values may still take.

    Each value has bytes of its own. Without this bound, a few bytes that all values share would stand for any number.
    """

    left: int

    def __new__(cls, content: bytes) -> _Container:
        result = super().__new__(cls, content)
        result.left = len(content)
        return result


# ---- writing ---------------------------------------------------------------------------------------------------------


def encode(
    types: tuple[LogicalType, ...],
    kind: int,
    fields: Sequence[Any],
    out: DataOutput,
    field: str,
    *,
    null_places: bool = False,
) -> bytes:
    """Bytes of a row.

    Args:
        types: types of the fields.
        kind: row kind.
        fields: values as `decode` returns them.
        out, field: for errors.
        null_places: True to keep the place of a null in the variable part, as the generated code of Flink SQL does for
            keys; `RowDataSerializer.toBinaryRow` does not. The bytes decide about the hash of a key.

    Raises:
        MetadataValueError: a value that is not of its type.
    """
    if len(fields) != len(types) or not 0 <= kind <= 3:
        raise out.error(field, f"a row with {len(fields)} fields and kind {kind}; {len(types)} fields are expected")
    header = header_bytes(len(types))
    row = bytearray(header + 8 * len(types))
    row[0] = kind
    for number, (logical_type, value) in enumerate(zip(types, fields, strict=True)):
        at = header + 8 * number
        if value is None:
            row[(number + KIND_BITS) // 8] |= 1 << (number + KIND_BITS) % 8
            if null_places and (size := _place(logical_type)):
                _SLOT.pack_into(row, at, len(row) << 32)
                row += bytes(size)
        else:
            _write_field(row, at, logical_type, value, out, field)
    return bytes(row)


def _place(logical_type: LogicalType) -> int:
    """Bytes that a value has in the variable part, if all values of the type have as many."""
    if logical_type.root == "DECIMAL":
        return 0 if is_compact_decimal(logical_type.parameters[0]) else _DECIMAL_BYTES
    if logical_type.root.startswith("TIMESTAMP"):
        return 0 if is_compact_timestamp(logical_type.parameters[0]) else _LONG.size
    return 0


def _write_field(row: bytearray, at: int, logical_type: LogicalType, value: Any, out: DataOutput, field: str) -> None:
    root, parameters = logical_type.root, logical_type.parameters

    def refuse() -> NoReturn:
        raise out.error(field, f"{value!r} is no {logical_type}")

    try:
        if (number := _NUMBERS.get(root)) is not None:
            number.pack_into(row, at, value)
        elif root in _TEXTS:
            _write_variable(row, at, encode_utf8(out, value, field))
        elif root in _BINARIES:
            _write_variable(row, at, value if isinstance(value, bytes) else refuse())
        elif root == "DECIMAL":
            if (unscaled := unscaled_with(value, *parameters)) is None:
                refuse()
            if is_compact_decimal(parameters[0]):
                _LONG.pack_into(row, at, unscaled)
            else:
                content = twos_complement(unscaled)
                _SLOT.pack_into(row, at, len(row) << 32 | len(content))
                row += content.ljust(_DECIMAL_BYTES, b"\0")
        elif logical_type.children or root in ("ROW", STRUCTURED, "RAW"):
            raise out.error(field, f"a {logical_type} can be read, but not written")
        elif not isinstance(value, Timestamp) or not 0 <= value.nanos < _NANOS:
            refuse()
        elif not is_compact_timestamp(parameters[0]):
            _SLOT.pack_into(row, at, len(row) << 32 | value.nanos)
            row += _LONG.pack(value.millis)
        elif value.nanos:
            refuse()
        else:
            _LONG.pack_into(row, at, value.millis)
    except (struct.error, OverflowError, TypeError):
        refuse()


def unscaled_with(value: Any, precision: int, scale: int) -> int | None:
    """Unscaled integer of a decimal with this precision and scale; None if the value does not fit."""
    if not isinstance(value, Decimal) or not value.is_finite():
        return None
    unscaled, own_scale = unscaled_of(value)
    if own_scale != scale or abs(unscaled) >= 10**precision:
        return None
    return unscaled


def _write_variable(row: bytearray, at: int, content: bytes) -> None:
    if len(content) <= MAX_INLINE:
        row[at : at + len(content)] = content
        row[at + 7] = _INLINE | len(content)
    else:
        _SLOT.pack_into(row, at, len(row) << 32 | len(content))
        row += content + bytes(-len(content) % 8)


def header_bytes(fields: int) -> int:
    """Bytes of a row before its slots."""
    return (fields + 63 + KIND_BITS) // 64 * 8
