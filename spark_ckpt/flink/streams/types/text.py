"""`String` and Flink SQL's `StringData`."""

from __future__ import annotations

from typing import Any

from spark_ckpt.flink.streams import assignment
from spark_ckpt.flink.streams.types.base import BASE, TABLE, SimpleSerializer
from spark_ckpt.flink.streams.values import read_string
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.data_output import DataOutput


def write_string(out: DataOutput, value: Any, field: str) -> None:
    """`StringValue.writeString`: number of UTF-16 code units plus 1 (0 for null), then each unit, all as varints."""
    if value is None:
        out.raw(b"\0")
        return
    if not isinstance(value, str):
        raise out.error(field, f"{value!r} is not a string")
    if value.isascii():
        out.raw(_varint(len(value) + 1) + value.encode("ascii"))
        return
    units = value.encode("utf-16-be", "surrogatepass")
    out.raw(_varint(len(units) // 2 + 1))
    for high, low in zip(units[::2], units[1::2], strict=True):
        out.raw(_varint(high << 8 | low))


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def read_utf8(data: DataInput, field: str) -> str:
    """`StringDataSerializer`: `i32` length, then UTF-8."""
    at = data.position
    content = data.byte_array(field)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        data.fail(field, "text that is not UTF-8", at + 4 + error.start)


def encode_utf8(out: DataOutput, value: Any, field: str) -> bytes:
    """UTF-8 of a string."""
    if not isinstance(value, str):
        raise out.error(field, f"{value!r} is not a string")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise out.error(field, f"{value!r} has a lone surrogate, which UTF-8 cannot hold") from None


def _write_utf8(out: DataOutput, value: Any, field: str) -> None:
    out.byte_array(encode_utf8(out, value, field), field)


STRING = SimpleSerializer(
    "String",
    f"{BASE}.StringSerializer$StringSerializerSnapshot",
    read_string,
    write_string,
    fixed=False,
    hashes=assignment.hash_of_string,
)
STRING_DATA = SimpleSerializer(
    "StringData", f"{TABLE}.StringDataSerializer$StringDataSerializerSnapshot", read_utf8, _write_utf8, fixed=False
)

SERIALIZERS = (STRING, STRING_DATA)
