"""Arrays of Java: i32 n, then n elements. Null is no value of an array, but one of an array of strings is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spark_ckpt.flink.streams.types import primitives, text
from spark_ckpt.flink.streams.types.base import BASE, SimpleSerializer
from spark_ckpt.flink.streams.values import Value
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.data_output import DataOutput


def _array(name: str, element: SimpleSerializer, size: int) -> SimpleSerializer:
    def read(data: DataInput, field: str) -> Value:
        return tuple([element.read(data, field) for _ in range(data.count(field, size))])

    class_name = f"{BASE}.array.{name}Serializer${name}SerializerSnapshot"
    return SimpleSerializer(f"{element.name}[]", class_name, read, _writer(element), fixed=False)


def _writer(element: SimpleSerializer) -> Callable[[DataOutput, Any, str], None]:
    def write(out: DataOutput, value: Any, field: str) -> None:
        if not isinstance(value, (tuple, list)):
            raise out.error(field, f"{value!r} is no sequence")
        out.i32(len(value), field)
        for item in value:
            element.write(item, out, field)

    return write


BOOLEANS = _array("BooleanPrimitiveArray", primitives.BOOLEAN, 1)
SHORTS = _array("ShortPrimitiveArray", primitives.SHORT, 2)
INTS = _array("IntPrimitiveArray", primitives.INT, 4)
LONGS = _array("LongPrimitiveArray", primitives.LONG, 8)
FLOATS = _array("FloatPrimitiveArray", primitives.FLOAT, 4)
DOUBLES = _array("DoublePrimitiveArray", primitives.DOUBLE, 8)
CHARS = _array("CharPrimitiveArray", primitives.CHAR, 2)
STRINGS = _array("StringArray", text.STRING, 1)

SERIALIZERS = (BOOLEANS, SHORTS, INTS, LONGS, FLOATS, DOUBLES, CHARS, STRINGS)
