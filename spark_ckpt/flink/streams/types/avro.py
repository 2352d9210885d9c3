"""Avro's records (`AvroSerializer`). Flink encodes them in a way of its own, not in Avro's binary form.

value       by the schema: int, enum and index of a union i32, long i64, float, double, boolean one byte; string and
            bytes i32 length, then the bytes; fixed its bytes; array and map in blocks: varint n, items, ... 0
snapshot    String Java class of the values, String schema
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from spark_ckpt.flink.streams.types.base import ConfiguredSerializer, ReadNested
from spark_ckpt.flink.streams.types.text import read_utf8, write_string
from spark_ckpt.flink.streams.values import Value, read_f32, read_f64, read_string, read_varint
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.data_output import DataOutput

if TYPE_CHECKING:
    from typing_extensions import Self

_Read: TypeAlias = Callable[[DataInput, str], Value]

_PRIMITIVES: dict[str, _Read] = {
    # An array may have any number of them in a few bytes.
    "null": DataInput.empty_item,
    "boolean": DataInput.boolean,
    "int": DataInput.i32,
    "long": DataInput.i64,
    "float": read_f32,
    "double": read_f64,
    "bytes": DataInput.byte_array,
    "string": read_utf8,
}
_MAX_DEPTH = 32
_MAX_TYPES = 10_000


@dataclass(frozen=True, slots=True)
class AvroType:
    """Type of a schema, with names resolved.

    Args:
        kind: `record`, `enum`, `array`, `map`, `fixed`, `union`, or the name of a primitive type.
        name: full name of a record, enum or fixed.
        parts: fields of a record, element of an array, value of a map, branches of a union.
        names: names of a record's fields, or symbols of an enum.
        size: bytes of a fixed.
        logical: logical type, precision and scale.
        types: number of types within it, itself included. A schema that names a type again has it again.
    """

    kind: str
    name: str = ""
    parts: tuple[AvroType, ...] = ()
    names: tuple[str, ...] = ()
    size: int = 0
    logical: tuple[str, int, int] = ("", 0, 0)
    types: int = 1


class _SchemaError(ValueError):
    """A malformed schema."""


class _RefersToItselfError(Exception):
    """A schema that refers to itself."""


@dataclass(frozen=True, slots=True)
class AvroSerializer(ConfiguredSerializer):
    """`AvroSerializer`. A record is a tuple of its fields, a map a tuple of pairs.

    The value of a union is that of its branch; if it has several beside null, a pair of its name and the value.

    Args:
        value_class: Java class of the values.
        schema: schema as JSON.
        type: the schema; None for one that refers to itself, whose values cannot be read.
    """

    value_class: str
    schema: str
    type: AvroType | None = field(compare=False, repr=False)

    class_name: ClassVar[str] = "org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot"

    @classmethod
    def of(cls, value_class: str, schema: str) -> Self:
        """Serializer of a schema.

        Raises:
            ValueError: it is malformed.
        """
        try:
            return cls(value_class, schema, _parsed(json.loads(schema), "", {}, ()))
        except _RefersToItselfError:
            return cls(value_class, schema, None)
        except RecursionError:
            raise _SchemaError("it nests too deep") from None

    @classmethod
    def read_content(cls, data: DataInput, read_nested: ReadNested) -> Self:
        value_class = read_string(data, "value_class") or ""
        at = data.position
        try:
            return cls.of(value_class, read_string(data, "schema") or "")
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as e:
            data.fail("schema", f"not a schema of Avro: {e}", at)

    def write_content(self, out: DataOutput) -> None:
        write_string(out, self.value_class, "value_class")
        write_string(out, self.schema, "schema")

    @property
    def is_opaque(self) -> bool:
        return self.type is None

    def read(self, data: DataInput, field: str) -> Value:
        if self.type is None:
            data.fail(field, "a value of a schema that refers to itself")
        return _read(self.type, data, field)

    def __str__(self) -> str:
        name = self.type.name if self.type is not None and self.type.name else self.value_class
        return f"Avro<{name}>"


def branches(union: AvroType) -> tuple[AvroType, ...]:
    """Branches of a union beside null."""
    return tuple([part for part in union.parts if part.kind != "null"])


def branch_name(branch: AvroType) -> str:
    """Name of a branch."""
    return branch.name or branch.kind


def _read(kind: AvroType, data: DataInput, field: str) -> Value:
    if (primitive := _PRIMITIVES.get(kind.kind)) is not None:
        return primitive(data, field)
    if kind.kind == "record":
        if not kind.parts:
            data.empty_item(field)
        return tuple([_read(part, data, name) for part, name in zip(kind.parts, kind.names, strict=True)])
    if kind.kind == "fixed":
        if not kind.size:
            data.empty_item(field)
        return data.raw(kind.size, field)
    if kind.kind in ("enum", "union"):
        choices = kind.names or kind.parts
        at = data.position
        if not 0 <= (index := data.i32(field)) < len(choices):
            data.fail(field, f"choice {index} of {len(choices)} of a {kind.kind}", at)
        if kind.kind == "enum":
            return kind.names[index]
        branch = kind.parts[index]
        value = _read(branch, data, field)
        return value if len(branches(kind)) < 2 or branch.kind == "null" else (branch_name(branch), value)
    (part,) = kind.parts
    found: list[Value] = []
    while count := read_varint(data, field, 64):
        if count > data.remaining:
            data.fail(field, f"{count} items, but only {data.remaining} bytes follow")
        if kind.kind == "map":
            found += [(read_utf8(data, field), _read(part, data, field)) for _ in range(count)]
        else:
            found += [_read(part, data, field) for _ in range(count)]
    return tuple(found)


def _parsed(schema: Any, namespace: str, named: dict[str, AvroType], within: tuple[str, ...]) -> AvroType:
    if len(within) > _MAX_DEPTH:
        raise _SchemaError(f"it nests deeper than {_MAX_DEPTH} levels")
    if isinstance(schema, list):
        branches = _counted(
            "union", parts=tuple([_parsed(branch, namespace, named, (*within, "")) for branch in schema])
        )
        if len({branch_name(branch) for branch in branches.parts}) < len(branches.parts):
            raise _SchemaError("a union with two branches of one name")
        return branches
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return AvroType(schema)
        name = schema if "." in schema or not namespace else f"{namespace}.{schema}"
        if name in within:
            raise _RefersToItselfError
        return named[name]
    kind = schema["type"]
    if not isinstance(kind, str) or kind not in (*_PRIMITIVES, "record", "error", "enum", "fixed", "array", "map"):
        return _parsed(kind, namespace, named, (*within, ""))
    logical = (str(schema.get("logicalType", "")), int(schema.get("precision", 0)), int(schema.get("scale", 0)))
    if kind in ("array", "map"):
        part = _parsed(schema["items" if kind == "array" else "values"], namespace, named, (*within, ""))
        return _counted(kind, parts=(part,))
    if kind in _PRIMITIVES:
        return AvroType(kind, logical=logical)
    name = str(schema["name"])
    if "." not in name and (own := str(schema.get("namespace", namespace))):
        name = f"{own}.{name}"
    inner = name.rpartition(".")[0]
    if kind in ("record", "error"):
        fields = schema["fields"]
        names = tuple([str(each["name"]) for each in fields])
        if len(set(names)) < len(names):
            raise _SchemaError(f"two fields of one name in {name}")
        parts = tuple([_parsed(each["type"], inner, named, (*within, name)) for each in fields])
        result = _counted("record", name, parts, names)
    elif kind == "enum":
        result = AvroType(kind, name, names=tuple(map(str, schema["symbols"])))
    else:
        if (size := int(schema["size"])) < 0:
            raise _SchemaError(f"{name} of {size} bytes")
        result = AvroType(kind, name, size=size, logical=logical)
    named[name] = result
    return result


def _counted(kind: str, name: str = "", parts: tuple[AvroType, ...] = (), names: tuple[str, ...] = ()) -> AvroType:
    """A type with parts."""
    types = 1 + sum(part.types for part in parts)
    if types > _MAX_TYPES:
        raise _SchemaError(f"more than {_MAX_TYPES:,} types, with each name as often as it is used")
    return AvroType(kind, name, parts, names, types=types)


SERIALIZERS = (AvroSerializer,)
