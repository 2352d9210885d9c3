"""Logical types of Flink SQL, as serialised Java objects (`table.types.logical.LogicalType`).

An object has no length prefix. The reader accepts the plain types below in exactly the bytes that Java writes for them,
takes ARRAY, MAP, MULTISET, ROW, RAW and structured types from the structure of their objects, and names any other
class. It creates no objects by name.

    AC ED 00 05 73, description of the class, description of LogicalType; bool nullable, constant of LogicalTypeRoot;
    i32 of each parameter; for a timestamp, constant of TimestampKind; for an interval, constant of its resolution
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.types.java_structure import (
    JavaClass,
    JavaContent,
    JavaEnum,
    JavaObject,
    elements,
    read_java,
)
from spark_ckpt.metadata import modified_utf8
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.data_output import DataOutput

_PACKAGE = "org.apache.flink.table.types.logical."
_HEADER = bytes.fromhex("aced00057372")
_SERIALIZABLE, _ENUM = 0x02, 0x12
_CLASS, _STRING, _REFERENCE, _CONSTANT, _NULL, _END = b"\x72", b"\x74", b"\x71", b"\x7e", b"\x70", b"\x78"
_HANDLE_OF_ENUM = 0x7E0006
"""Back reference to `java.lang.Enum`, the seventh object of the stream that can be referred to."""

_MAX_DEPTH = 32

REGULAR = "REGULAR"
STRUCTURED = "STRUCTURED_TYPE"
"""Root of structured types, such as the class of an accumulator. Their values are rows."""


@dataclass(frozen=True, slots=True)
class LogicalType:
    """Logical type.

    Args:
        root: name in `LogicalTypeRoot`, such as `BIGINT`, `VARCHAR`, `TIMESTAMP_WITHOUT_TIME_ZONE`.
        parameters: length of a text or binary, precision and scale of a decimal, precision of a time or timestamp,
            precisions of the years, or of the days and of the fraction of the seconds, of an interval.
        nullable: False for `NOT NULL`.
        timestamp_kind: `TimestampKind` of a timestamp; None for other types.
        children: element of an ARRAY or MULTISET, key and value of a MAP, fields of a ROW or structured type; none for
            plain types.
        names: names of the fields of a ROW or structured type.
        resolution: units of an interval, such as `YEAR_TO_MONTH` (`YearMonthIntervalType.YearMonthResolution`,
            `DayTimeIntervalType.DayTimeResolution`); None for other types.
        class_name: Java class of the values of a RAW or structured type, if it has one.
        raw: serializer of the values of a RAW type, if the snapshot that has the type says it.
    """

    root: str
    parameters: tuple[int, ...] = ()
    nullable: bool = True
    timestamp_kind: str | None = None
    children: tuple[LogicalType, ...] = ()
    names: tuple[str, ...] = ()
    resolution: str | None = None
    class_name: str = ""
    raw: Serializer | None = None

    def __str__(self) -> str:
        name = _NAMES.get(self.root, self.root)
        if self.root == "RAW":
            name += f"<{self.class_name}>"
        elif self.root == STRUCTURED:
            name = self.class_name or name
        if self.names:
            fields = [f"{field} {child}" for field, child in zip(self.names, self.children, strict=True)]
            name += f"<{', '.join(fields)}>"
        elif self.children:
            name += f"<{', '.join(map(str, self.children))}>"
        if (units := _INTERVALS.get(self.root, {}).get(str(self.resolution))) is not None:
            name = f"INTERVAL {units.format(*self.parameters, '?', '?')}"
        elif self.root in _MAX_NAMES and self.parameters == (MAX_LENGTH,):
            name = _MAX_NAMES[self.root]
        elif self.parameters:
            name += f"({', '.join(map(str, self.parameters))})"
        return name if self.nullable else f"{name} NOT NULL"


class UnknownLogicalTypeError(Exception):
    """Logical type outside the table; the caller adds the file.

    Attributes:
        class_name: its Java class.
        offset: position of the class.
    """

    def __init__(self, class_name: str, offset: int) -> None:
        super().__init__(class_name)
        self.class_name = class_name
        self.offset = offset


MAX_LENGTH = (1 << 31) - 1
_NAMES = {
    "INTEGER": "INT",
    "TIME_WITHOUT_TIME_ZONE": "TIME",
    "TIMESTAMP_WITHOUT_TIME_ZONE": "TIMESTAMP",
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": "TIMESTAMP_LTZ",
}
_MAX_NAMES = {"VARCHAR": "STRING", "VARBINARY": "BYTES"}
_YEAR_MONTH_INTERVALS = {"YEAR": "YEAR({})", "YEAR_TO_MONTH": "YEAR({}) TO MONTH", "MONTH": "MONTH"}
_DAY_TIME_INTERVALS = {
    "DAY": "DAY({})",
    "DAY_TO_HOUR": "DAY({}) TO HOUR",
    "DAY_TO_MINUTE": "DAY({}) TO MINUTE",
    "DAY_TO_SECOND": "DAY({}) TO SECOND({})",
    "HOUR": "HOUR",
    "HOUR_TO_MINUTE": "HOUR TO MINUTE",
    "HOUR_TO_SECOND": "HOUR TO SECOND({1})",
    "MINUTE": "MINUTE",
    "MINUTE_TO_SECOND": "MINUTE TO SECOND({1})",
    "SECOND": "SECOND({1})",
}
_INTERVALS = {"INTERVAL_YEAR_MONTH": _YEAR_MONTH_INTERVALS, "INTERVAL_DAY_TIME": _DAY_TIME_INTERVALS}
"""Units in SQL by resolution, with the precisions to fill in."""


class _Bound(NamedTuple):
    """Parameter of a type, with its least and greatest value."""

    name: str
    minimum: int
    maximum: int


_LENGTH = _Bound("length", 0, MAX_LENGTH)
_PRECISION_OF_TIME = _Bound("precision", 0, 9)


class _Constant(NamedTuple):
    """Field of a type with a constant of an enum: its Java class, and the names of the constants."""

    field: str
    class_name: str
    names: tuple[str, ...]


_KIND = _Constant("kind", "TimestampKind", (REGULAR, "ROWTIME", "PROCTIME"))
_YEAR_MONTH = _Constant("resolution", "YearMonthIntervalType$YearMonthResolution", tuple(_YEAR_MONTH_INTERVALS))
_DAY_TIME = _Constant("resolution", "DayTimeIntervalType$DayTimeResolution", tuple(_DAY_TIME_INTERVALS))


class _JavaType(NamedTuple):
    """Java class of the types with one root.

    Args:
        class_name: the class.
        root: the root.
        code: format of the numbers that stand for its values, as of `struct` and NumPy; empty if none do.
        parameters: its parameters.
        constant: its field with a constant of an enum.
    """

    class_name: str
    root: str
    code: str = ""
    parameters: tuple[_Bound, ...] = ()
    constant: _Constant | None = None

    def of(self, parameters: tuple[int, ...], *, nullable: bool, constant: str | None) -> LogicalType:
        """Type of this root; `constant` is the name of the constant."""
        if self.constant is _KIND:
            return LogicalType(self.root, parameters, nullable, constant)
        return LogicalType(self.root, parameters, nullable, resolution=constant)

    def constant_of(self, logical_type: LogicalType) -> str | None:
        """Name of the constant of a type; None unless it is one of this root."""
        kind, resolution = logical_type.timestamp_kind, logical_type.resolution
        name, other = (kind, resolution) if self.constant is _KIND else (resolution, kind)
        return name if self.constant is not None and other is None and name in self.constant.names else None


_TYPES = (
    _JavaType("CharType", "CHAR", "", (_LENGTH,)),
    _JavaType("VarCharType", "VARCHAR", "", (_LENGTH,)),
    _JavaType("BooleanType", "BOOLEAN", "?"),
    _JavaType("BinaryType", "BINARY", "", (_LENGTH,)),
    _JavaType("VarBinaryType", "VARBINARY", "", (_LENGTH,)),
    _JavaType("DecimalType", "DECIMAL", "", (_Bound("precision", 1, 38), _Bound("scale", 0, 38))),
    _JavaType("TinyIntType", "TINYINT", "b"),
    _JavaType("SmallIntType", "SMALLINT", "h"),
    _JavaType("IntType", "INTEGER", "i"),
    _JavaType("BigIntType", "BIGINT", "q"),
    _JavaType("FloatType", "FLOAT", "f"),
    _JavaType("DoubleType", "DOUBLE", "d"),
    _JavaType("DateType", "DATE", "i"),
    _JavaType("TimeType", "TIME_WITHOUT_TIME_ZONE", "i", (_PRECISION_OF_TIME,)),
    _JavaType("TimestampType", "TIMESTAMP_WITHOUT_TIME_ZONE", "", (_PRECISION_OF_TIME,), _KIND),
    _JavaType("LocalZonedTimestampType", "TIMESTAMP_WITH_LOCAL_TIME_ZONE", "", (_PRECISION_OF_TIME,), _KIND),
    _JavaType("YearMonthIntervalType", "INTERVAL_YEAR_MONTH", "i", (_Bound("yearPrecision", 1, 4),), _YEAR_MONTH),
    _JavaType(
        "DayTimeIntervalType",
        "INTERVAL_DAY_TIME",
        "q",
        (_Bound("dayPrecision", 1, 6), _Bound("fractionalPrecision", 0, 9)),
        _DAY_TIME,
    ),
)
_BY_CLASS: Mapping[str, _JavaType] = {_PACKAGE + java.class_name: java for java in _TYPES}
_BY_ROOT: Mapping[str, _JavaType] = {java.root: java for java in _TYPES}
NUMBER_CODES: Mapping[str, str] = {java.root: java.code for java in _TYPES if java.code}
"""Formats of the numbers that stand for values, by the root of their types."""
VARIABLE_ROOTS = ("CHAR", "VARCHAR", "BINARY", "VARBINARY")
"""Roots of text and bytes, of which a row has up to 7 in the slot and more of them in its variable part."""

_ROW, _STRUCTURED, _RAW = _PACKAGE + "RowType", _PACKAGE + "StructuredType", _PACKAGE + "RawType"
_FIELDS = {_ROW: "fields", _STRUCTURED: "attributes"}
_NESTED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    _PACKAGE + "ArrayType": ("ARRAY", ("elementType",)),
    _PACKAGE + "MapType": ("MAP", ("keyType", "valueType")),
    _PACKAGE + "MultisetType": ("MULTISET", ("elementType",)),
    _ROW: ("ROW", ()),
    _STRUCTURED: (STRUCTURED, ()),
    _RAW: ("RAW", ()),
}
"""Classes of types with nested types: their root, and the fields that hold the nested types."""


def read_logical_type(data: DataInput) -> LogicalType:
    """Read a logical type.

    Raises:
        UnknownLogicalTypeError: another class.
        StateStreamFormatError: other bytes than Java writes.
    """
    start = data.position
    _expect(data, _HEADER)
    at = data.position
    class_name = data.utf("class_name")
    if (java := _BY_CLASS.get(class_name)) is None:
        if class_name not in _NESTED:
            raise UnknownLogicalTypeError(class_name, at)
        data.position = start
        return _of_object(read_java(data), data)
    _expect(data, _after_class_name(java))
    nullable = data.boolean("nullable")
    _expect(data, _root(java))
    parameters = tuple([_parameter(data, bound) for bound in java.parameters])
    name = None if java.constant is None else _constant(data, java.constant)
    return java.of(parameters, nullable=nullable, constant=name)


def with_raw(logical_type: LogicalType, serializer: Serializer) -> LogicalType:
    """A type with the serializers of its RAW types, which only a serializer of its values knows."""
    if logical_type.root == "RAW":
        return replace(logical_type, raw=serializer.nested[0]) if len(serializer.nested) == 1 else logical_type
    if logical_type.root in ("ROW", STRUCTURED) and len(serializer.nested) == len(logical_type.children):
        children = tuple(map(with_raw, logical_type.children, serializer.nested))
        return replace(logical_type, children=children)
    return logical_type


def _of_object(content: JavaContent, data: DataInput, depth: int = 0) -> LogicalType:
    # Objects refer to each other: a few bytes can describe very many types, or a type within itself.
    data.empty_item("type")
    if depth > _MAX_DEPTH:
        data.fail("type", f"types nest deeper than {_MAX_DEPTH} levels")
    if not isinstance(content, JavaObject):
        data.fail("type", "no logical type")
    name, fields, at = content.class_name, content.fields, content.position
    if name not in _NESTED and name not in _BY_CLASS:
        raise UnknownLogicalTypeError(name, at)
    root = fields.get("typeRoot")
    nullable = bool(fields.get("isNullable"))
    if not isinstance(root, JavaEnum):
        data.fail("type", "a logical type without a root", at)
    if (java := _BY_CLASS.get(name)) is not None:
        parameters = [fields.get(bound.name) for bound in java.parameters]
        numbers = tuple(
            value
            for bound, value in zip(java.parameters, parameters, strict=True)
            if isinstance(value, int) and bound.minimum <= value <= bound.maximum
        )
        found = None if java.constant is None else fields.get(java.constant.field)
        constant = found.name if isinstance(found, JavaEnum) else None
        is_known = java.constant is None or constant in java.constant.names
        if root.name != java.root or len(numbers) != len(parameters) or not is_known:
            data.fail("type", f"a malformed {java.root}", at)
        return java.of(numbers, nullable=nullable, constant=constant)
    names: tuple[str, ...] = ()
    expected, nested = _NESTED[name]
    if root.name != expected:
        data.fail("type", f"a {expected} with the root {root.name}", at)
    children = [fields.get(child) for child in nested]
    class_name = ""
    if name == _RAW:
        class_name = _class_name(fields.get("clazz"))
    elif name == _STRUCTURED:
        if fields.get("superType") is not None:
            raise UnknownLogicalTypeError(name, at)
        class_name = _class_name(fields.get("implementationClass")) or _class_name(fields.get("className"))
    if name in _FIELDS:
        row_fields = elements(fields.get(_FIELDS[name]))
        if row_fields is None or not all(isinstance(field, JavaObject) for field in row_fields):
            data.fail("fields", f"a {expected} without a list of fields", at)
        described = [field.fields for field in row_fields if isinstance(field, JavaObject)]
        names = tuple(str(field.get("name")) for field in described)
        if len(set(names)) < len(names):
            data.fail("fields", f"a {expected} with two fields of one name", at)
        children = [field.get("type") for field in described]
    types = tuple([_of_object(child, data, depth + 1) for child in children])
    return LogicalType(root.name, (), nullable, None, types, names, class_name=class_name)


def _class_name(content: JavaContent) -> str:
    if isinstance(content, JavaClass):
        return content.name
    return content if isinstance(content, str) else ""


def write_logical_type(logical_type: LogicalType, out: DataOutput) -> None:
    """Write a logical type as Java does.

    Raises:
        MetadataValueError: no plain type, or parameters outside of its bounds.
    """
    java = _BY_ROOT.get(logical_type.root)
    if java is None or len(java.parameters) != len(logical_type.parameters):
        raise out.error("type", f"{logical_type} is not a plain type")
    for bound, value in zip(java.parameters, logical_type.parameters, strict=True):
        if not bound.minimum <= value <= bound.maximum:
            raise out.error(
                "type", f"{logical_type}: the {bound.name} is not within {bound.minimum} to {bound.maximum}"
            )
    name = java.constant_of(logical_type)
    if name is None and (java.constant, logical_type.timestamp_kind, logical_type.resolution) != (None, None, None):
        kind, resolution = logical_type.timestamp_kind, logical_type.resolution
        raise out.error("type", f"{logical_type} of the kind {kind} and the resolution {resolution}")
    out.raw(_HEADER)
    out.utf(_PACKAGE + java.class_name, "class_name")
    out.raw(_after_class_name(java))
    out.i8(logical_type.nullable, "nullable")
    out.raw(_root(java))
    for value in logical_type.parameters:
        out.i32(value, "parameters")
    if java.constant is not None and name is not None:
        out.raw(_constant_class(java.constant) + _utf(name))


def java_expression(logical_type: LogicalType) -> str:
    """Expression in Java for a plain type that is nullable and regular."""
    name = _BY_ROOT[logical_type.root].class_name
    parameters = [f"{name}.MAX_LENGTH" if value == MAX_LENGTH else str(value) for value in logical_type.parameters]
    return f"new {name}({', '.join(parameters)})"


def _parameter(data: DataInput, bound: _Bound) -> int:
    at = data.position
    if not bound.minimum <= (value := data.i32(bound.name)) <= bound.maximum:
        data.fail(bound.name, f"{value} is not within {bound.minimum} to {bound.maximum}", at)
    return value


def _constant(data: DataInput, constant: _Constant) -> str:
    _expect(data, _constant_class(constant))
    at = data.position
    if (name := data.utf(constant.field)) not in constant.names:
        data.fail(constant.field, f"{name!r} is not one of {', '.join(constant.names)}", at)
    return name


def _expect(data: DataInput, expected: bytes) -> None:
    at = data.position
    if data.raw(len(expected), "type") != expected:
        data.fail("type", "not a logical type as Flink 1.11 to 2.1 serialise it", at)


def _utf(text: str) -> bytes:
    encoded = modified_utf8.encode(text)
    return len(encoded).to_bytes(2, "big") + encoded


def _object_field(name: str, class_name: str) -> bytes:
    return b"L" + _utf(name) + _STRING + _utf(f"L{(_PACKAGE + class_name).replace('.', '/')};")


def _described(version: int, flags: int, *fields: bytes) -> bytes:
    """Description of a class, after its name."""
    return version.to_bytes(8, "big") + bytes([flags]) + len(fields).to_bytes(2, "big") + b"".join(fields) + _END


def _after_class_name(java: _JavaType) -> bytes:
    own = [b"I" + _utf(bound.name) for bound in java.parameters]
    if java.constant is not None:
        own.append(_object_field(java.constant.field, java.constant.class_name))
    base = _described(1, _SERIALIZABLE, b"Z" + _utf("isNullable"), _object_field("typeRoot", "LogicalTypeRoot"))
    return _described(1, _SERIALIZABLE, *own) + _CLASS + _utf(_PACKAGE + "LogicalType") + base + _NULL


def _root(java: _JavaType) -> bytes:
    of_enum = _CLASS + _utf("java.lang.Enum") + _described(0, _ENUM) + _NULL
    return _enum_class("LogicalTypeRoot") + of_enum + _STRING + _utf(java.root)


def _constant_class(constant: _Constant) -> bytes:
    return _enum_class(constant.class_name) + _REFERENCE + _HANDLE_OF_ENUM.to_bytes(4, "big") + _STRING


def _enum_class(class_name: str) -> bytes:
    return _CONSTANT + _CLASS + _utf(_PACKAGE + class_name) + _described(0, _ENUM)
