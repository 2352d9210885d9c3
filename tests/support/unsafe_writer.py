"""UnsafeRows from Python values, one by one: an independent implementation of Spark's layout (`UnsafeWriter`).

Types are in Spark's JSON form. Values are those that Arrow accepts for the type: times as numbers, a map as a list of
pairs, an interval or a variant as a dictionary of its parts.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np

from spark_ckpt.state.rows import Buffer, Piece, Rows

_FORMATS = {
    "boolean": "<?",
    "byte": "<b",
    "short": "<h",
    "integer": "<i",
    "long": "<q",
    "float": "<f",
    "double": "<d",
    "date": "<i",
    "timestamp": "<q",
    "timestamp_ntz": "<q",
    "interval day to second": "<q",
    "interval year to month": "<i",
    "time(6)": "<q",
}
EXACT = Context(prec=60)


def row(schema: dict[str, Any], values: Sequence[Any]) -> bytes:
    """A row of a struct type."""
    types = [field["type"] for field in schema["fields"]]
    null_bytes = (len(types) + 63) // 64 * 8
    bits, slots, tail = 0, b"", b""
    for index, (kind, value) in enumerate(zip(types, values, strict=True)):
        if value is None:
            bits |= 1 << index
        at = null_bytes + 8 * len(types) + len(tail)
        # A row keeps the place of a long decimal that is null (`UnsafeRowWriter.write(int, Decimal, int, int)`).
        is_kept = value is None and _is_long_decimal(kind)
        slot, more = (_pointer(at, 0), bytes(16)) if is_kept else _slot(kind, value, at)
        slots += slot.ljust(8, b"\0")
        tail += more
    return bits.to_bytes(null_bytes, "little") + slots + tail


def _is_long_decimal(kind: Any) -> bool:
    return isinstance(kind, str) and kind.startswith("decimal") and int(kind[8:].split(",")[0]) > 18


def array(element: Any, values: Sequence[Any]) -> bytes:
    """An array."""
    width = struct.calcsize(_FORMATS[element]) if isinstance(element, str) and element in _FORMATS else 8
    null_bytes = (len(values) + 63) // 64 * 8
    start = 8 + null_bytes + (width * len(values) + 7) // 8 * 8
    bits, slots, tail = 0, b"", b""
    for index, value in enumerate(values):
        if value is None:
            bits |= 1 << index
        slot, more = _slot(element, value, start + len(tail), in_row=False)
        slots += slot.ljust(width, b"\0")
        tail += more
    return struct.pack("<q", len(values)) + bits.to_bytes(null_bytes, "little") + _padded(slots) + tail


def _slot(kind: Any, value: Any, at: int, *, in_row: bool = True) -> tuple[bytes, bytes]:
    """Bytes of the value's slot, and bytes of its variable-length part at `at`."""
    if value is None or kind == "void":
        return b"", b""
    if isinstance(kind, str) and kind in _FORMATS:
        return struct.pack(_FORMATS[kind], value), b""
    if isinstance(kind, str) and kind.startswith("decimal"):
        precision, scale = (int(part) for part in kind[8:-1].split(","))
        unscaled = int(Decimal(value).scaleb(scale, EXACT))
        if precision <= 18:
            return struct.pack("<q", unscaled), b""
        content = unscaled.to_bytes((unscaled + (unscaled < 0)).bit_length() // 8 + 1, "big", signed=True)
        # In an array, it takes no more words than it needs (`UnsafeArrayWriter.write(int, Decimal, int, int)`).
        return _pointer(at, len(content)), content.ljust(16, b"\0") if in_row else _padded(content)
    content = _content(kind, value)
    return _pointer(at, len(content)), _padded(content)


def _content(kind: Any, value: Any) -> bytes:
    if isinstance(kind, dict):
        match kind["type"]:
            case "struct":
                return row(kind, [value[field["name"]] for field in kind["fields"]])
            case "array":
                return array(kind["elementType"], value)
            case "map":
                keys = array(kind["keyType"], [key for key, _ in value])
                return struct.pack("<q", len(keys)) + keys + array(kind["valueType"], [item for _, item in value])
    if kind == "interval":
        return struct.pack("<iiq", value["months"], value["days"], value["microseconds"])
    if kind == "variant":
        start: bytes = struct.pack("<i", len(value["value"])) + value["value"]
        return start + bytes(value["metadata"])
    content: bytes = value.encode() if isinstance(value, str) else value
    return content


def _pointer(at: int, size: int) -> bytes:
    return struct.pack("<q", at << 32 | size)


def _padded(content: bytes) -> bytes:
    return content.ljust((len(content) + 7) // 8 * 8, b"\0")


def rows_of(encoded: Sequence[bytes], before: bytes = b"") -> Rows:
    """Rows in a buffer that starts with other bytes: no alignment is required."""
    sizes = np.array([len(row) for row in encoded], np.int64)
    pieces = [Piece("before", 0, 0, before), *(Piece(f"file-{i}", 1000, i, row) for i, row in enumerate(encoded))]
    return Rows(Buffer.of(pieces, "store"), len(before) + np.cumsum(sizes) - sizes, sizes)
