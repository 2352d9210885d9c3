"""Reader of Java serialisation: plain objects with boolean and object fields, strings, enum constants.

An object has no length prefix, so finding its end requires reading it. The reader accepts only the classes of a table,
as declared there, except that fields may be missing or added, as in Java. It never instantiates a class by name.
Grammar: chapter 6 of the Java Object Serialization Specification. Checks: `java.io.ObjectStreamClass`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from spark_ckpt.metadata.data_input import DataInput

STRING = "java.lang.String"
BOOLEAN = "Z"


@dataclass(frozen=True, slots=True)
class KnownClass:
    """Accepted class.

    Args:
        serial_version_uid: `serialVersionUID`, declared by the class or computed by Java.
        fields: class of the value, or `BOOLEAN`, by field name.
        is_enum: True for an enum.
        constants: names of an enum's constants.
        interface: interface of the class, which a field may declare as its type.
    """

    serial_version_uid: int = 0
    fields: Mapping[str, str] = field(default_factory=dict)
    is_enum: bool = False
    constants: tuple[str, ...] = ()
    interface: str | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """Object, with the values of its fields by name."""

    class_name: str
    fields: dict[str, Content]


@dataclass(frozen=True, slots=True)
class Constant:
    """Enum constant."""

    class_name: str
    name: str


@dataclass(frozen=True, slots=True)
class _ClassDescription:
    name: str
    fields: tuple[tuple[str, str], ...]


class _Unfinished:
    """Object under construction. References to it are not valid yet."""


Content: TypeAlias = "bool | str | Constant | Instance | _ClassDescription | _Unfinished | None"

_STREAM_HEADER = 0xACED0005
_BASE_HANDLE = 0x7E0000
_SERIALIZABLE = 0x02
_ENUM = 0x10
_END_BLOCK_DATA = 0x78
_ENUM_CLASS = "java.lang.Enum"
_OBJECT = "L"
_UNFINISHED = _Unfinished()


def read_object(data: DataInput, classes: Mapping[str, KnownClass]) -> Content:
    """Read the header of a stream and its only object. Leaves the position after the object.

    Raises:
        MetadataFormatError: not a serialised object, or one with features that this module does not support.
    """
    at = data.position
    if data.i32("") & 0xFFFFFFFF != _STREAM_HEADER:
        data.fail("", "not a serialized Java object", at)
    return _ObjectReader(data, classes).content()


class _ObjectReader:
    """Reader of one object, after the header of the stream."""

    def __init__(self, data: DataInput, classes: Mapping[str, KnownClass]) -> None:
        self._data = data
        self._classes = {**classes, _ENUM_CLASS: KnownClass(is_enum=True)}
        # Targets of back references, in the order of appearance.
        self._handles: list[Content] = []

    def content(self) -> Content:
        """One content element: null, a reference, a class description, an object, a string or an enum constant."""
        at = self._data.position
        code = self._data.u8("object")
        if (read := _CONTENTS.get(code)) is None:
            self._data.fail("object", f"unknown type code {code:#04x}", at)
        self._data.enter("object")
        content = read(self)
        self._data.leave()
        return content

    def _null(self) -> None:
        return None

    def _reference(self) -> Content:
        at = self._data.position
        handle = self._data.i32("reference") - _BASE_HANDLE
        if not 0 <= handle < len(self._handles) or self._handles[handle] is _UNFINISHED:
            self._data.fail("reference", "a dangling reference", at)
        return self._handles[handle]

    def _class_description(self) -> _ClassDescription:
        at = self._data.position
        name = self._data.utf("class_name")
        if (known := self._classes.get(name)) is None:
            self._data.fail("class_name", f"unknown class {name}", at)
        at = self._data.position
        if (uid := self._data.i64("serial_version_uid")) != known.serial_version_uid:
            reason = f"unknown serial version {uid} of class {name}; {known.serial_version_uid} is supported"
            self._data.fail("serial_version_uid", reason, at)
        handle = self._new_handle()
        at = self._data.position
        if (flags := self._data.u8("flags")) != _SERIALIZABLE | (_ENUM if known.is_enum else 0):
            self._data.fail("flags", f"class {name} has the flags {flags:#04x} of a custom format", at)
        description = _ClassDescription(name, self._fields(known))
        at = self._data.position
        if self._data.u8("annotation") != _END_BLOCK_DATA:
            self._data.fail("annotation", "class annotations are not supported", at)
        at = self._data.position
        parent = self._description()
        expected = _ENUM_CLASS if known.is_enum and name != _ENUM_CLASS else None
        if (parent and parent.name) != expected:
            self._data.fail("super_class", f"class {name} has an unexpected superclass", at)
        self._handles[handle] = description
        return description

    def _fields(self, known: KnownClass) -> tuple[tuple[str, str], ...]:
        fields: list[tuple[str, str]] = []
        for index in range(self._data.u16("fields")):
            self._data.enter("fields", index)
            at = self._data.position
            name, kind = self._field()
            if known.is_enum or (name in known.fields and (known.fields[name] == BOOLEAN) != (kind == BOOLEAN)):
                self._data.fail("", f"unexpected field {name} of type {kind}", at)
            if kind == BOOLEAN and fields and fields[-1][1] != BOOLEAN:
                self._data.fail("", "a boolean field after an object field", at)
            fields.append((name, kind))
            self._data.leave()
        return tuple(fields)

    def _field(self) -> tuple[str, str]:
        """Name and kind of a field. As in Java, the class defines the type of its values, not the stream."""
        at = self._data.position
        kind = chr(self._data.u8("type"))
        if kind not in (BOOLEAN, _OBJECT):
            self._data.fail("type", f"unknown field type {kind!r}", at)
        name = self._data.utf("name")
        if kind == _OBJECT:
            at = self._data.position
            signature = self.content()
            if not isinstance(signature, str) or signature[:1] != _OBJECT:
                self._data.fail("type", "not the class of a field", at)
        return name, kind

    def _description(self) -> _ClassDescription | None:
        at = self._data.position
        description = self.content()
        if not (description is None or isinstance(description, _ClassDescription)):
            self._data.fail("class", "a class description is missing", at)
        return description

    def _object(self) -> Instance:
        at = self._data.position
        description = self._description()
        if description is None or self._classes[description.name].is_enum:
            self._data.fail("class", "an object without a class", at)
        handle = self._new_handle()
        instance = Instance(description.name, {})
        known = self._classes[description.name].fields
        for name, kind in description.fields:
            at = self._data.position
            value = self._data.boolean(name) if kind == BOOLEAN else self.content()
            if kind == _OBJECT and name in known and value is not None:
                self._check_class(value, known[name], name, at)
            instance.fields[name] = value
        self._handles[handle] = instance
        return instance

    def _check_class(self, value: Content, type_name: str, name: str, at: int) -> None:
        if isinstance(value, (Instance, Constant)):
            class_name, interface = value.class_name, self._classes[value.class_name].interface
        else:
            class_name, interface = STRING if isinstance(value, str) else "", None
        if type_name not in (class_name, interface):
            self._data.fail(name, f"no {type_name}", at)

    def _string(self) -> str:
        text = self._data.utf("string")
        self._handles.append(text)
        return text

    def _constant(self) -> Constant:
        at = self._data.position
        description = self._description()
        if description is None or not self._classes[description.name].is_enum:
            self._data.fail("class", "an enum constant without an enum", at)
        handle = self._new_handle()
        at = self._data.position
        name = self.content()
        if not isinstance(name, str) or name not in self._classes[description.name].constants:
            self._data.fail("constant", f"enum {description.name} has no constant {name!r}", at)
        constant = Constant(description.name, name)
        self._handles[handle] = constant
        return constant

    def _new_handle(self) -> int:
        self._handles.append(_UNFINISHED)
        return len(self._handles) - 1


_CONTENTS: dict[int, Callable[[_ObjectReader], Content]] = {
    0x70: _ObjectReader._null,
    0x71: _ObjectReader._reference,
    0x72: _ObjectReader._class_description,
    0x73: _ObjectReader._object,
    0x74: _ObjectReader._string,
    0x7E: _ObjectReader._constant,
}
