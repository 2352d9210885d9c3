"""Structure of serialised Java objects of any class.

An object has no length prefix, so finding its end requires reading it. But a stream describes the classes of its
objects with their fields, so that this needs no knowledge of them. No class is looked up by its name or instantiated.
Grammar: chapter 6 of the Java Object Serialization Specification.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from spark_ckpt.metadata.data_input import DataInput


@dataclass(slots=True, eq=False)
class JavaClass:
    """Class, as the stream describes it.

    Args:
        name: its name.
        flags: how its objects are written.
        fields: type codes and names of its fields.
        parent: superclass, if its objects have fields of it.
    """

    name: str
    flags: int = 0
    fields: tuple[tuple[str, str], ...] = ()
    parent: JavaClass | None = None


@dataclass(slots=True, eq=False)
class JavaObject:
    """Object.

    Args:
        class_name: name of its class.
        position: position of the object in the stream.
        fields: values of the fields of its class and superclasses, by name.
        contents: what it has written beside its fields.
    """

    class_name: str
    position: int
    fields: dict[str, JavaContent] = field(default_factory=dict)
    contents: list[JavaContent] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class JavaEnum:
    """Constant of an enum."""

    class_name: str
    name: str = ""


JavaContent: TypeAlias = "str | int | bytes | JavaClass | JavaObject | JavaEnum | list[JavaContent] | None"

_MAGIC = 0xACED0005
_NULL, _REFERENCE, _CLASS_DESCRIPTION, _OBJECT, _STRING, _ARRAY, _CLASS, _BLOCK, _END_BLOCK = range(0x70, 0x79)
_LONG_BLOCK, _LONG_STRING, _PROXY, _ENUM = 0x7A, 0x7C, 0x7D, 0x7E
_FIRST_HANDLE = 0x7E0000
_HAS_WRITE_METHOD, _SERIALIZABLE, _EXTERNALIZABLE, _HAS_BLOCKS = 1, 2, 4, 8
_I64 = (1 << 64) - 1
_MAX_DEPTH = 200
_MAX_CONTENTS = 100_000
_UNMODIFIABLE, _MAX_WRAPPERS = "java.util.Collections$Unmodifiable", 4
_PRIMITIVES = {"B": 1, "C": 2, "D": 8, "F": 4, "I": 4, "J": 8, "S": 2, "Z": 1}


def read_java(data: DataInput) -> JavaContent:
    """Read a stream of one object. Leaves the position after it.

    Raises:
        StateStreamFormatError: no such stream.
    """
    at = data.position
    if data.i32("object") & 0xFFFFFFFF != _MAGIC:
        data.fail("object", "not a serialized Java object", at)
    try:
        return _Reader(data).content()
    except RecursionError:
        data.fail("object", "objects nest too deep", at)


def elements(content: JavaContent) -> list[JavaContent] | None:
    """Elements of a list of Java's; None if it is no known list."""
    # A hostile list may wrap itself.
    for _ in range(_MAX_WRAPPERS):
        if not isinstance(content, JavaObject) or not content.class_name.startswith(_UNMODIFIABLE):
            break
        content = content.fields.get("list") or content.fields.get("c")
    if isinstance(content, list):
        return content
    if not isinstance(content, JavaObject):
        return None
    name = content.class_name
    if name == "java.util.Arrays$ArrayList":
        array = content.fields.get("a")
        return array if isinstance(array, list) else None
    if name == "java.util.Collections$SingletonList":
        return [content.fields.get("element")]
    if name == "java.util.Collections$EmptyList":
        return []
    if name in ("java.util.ArrayList", "java.util.LinkedList", "java.util.CollSer"):
        # Behind the capacity or the length.
        return [item for item in content.contents if not isinstance(item, bytes)]
    return None


class _Reader:
    """Reader of one stream, behind its header."""

    def __init__(self, data: DataInput) -> None:
        self._data = data
        self._handles: list[JavaContent] = []
        self._depth = 0
        self._count = 0

    def content(self) -> JavaContent:
        """One content element."""
        at = self._data.position
        self._depth += 1
        self._count += 1
        if self._depth > _MAX_DEPTH or self._count > _MAX_CONTENTS:
            self._data.fail("object", "objects nest too deep, or are too many", at)
        result = self._content(self._data.u8("object"), at)
        self._depth -= 1
        return result

    def _content(self, code: int, at: int) -> JavaContent:
        data = self._data
        if code == _NULL:
            return None
        if code == _REFERENCE:
            number = data.i32("reference") - _FIRST_HANDLE
            if not 0 <= number < len(self._handles):
                data.fail("reference", "a dangling reference", at)
            return self._handles[number]
        if code in (_STRING, _LONG_STRING):
            return self._string(code)
        if code == _CLASS_DESCRIPTION:
            return self._class_description()
        if code == _OBJECT:
            return self._object(at)
        if code == _ENUM:
            constant = JavaEnum(self._class(at).name)
            self._handles.append(constant)
            name = self.content()
            if not isinstance(name, str):
                data.fail("constant", "a constant without a name", at)
            constant.name = name
            return constant
        if code == _ARRAY:
            return self._array(at)
        if code == _CLASS:
            described = self._class(at)
            self._handles.append(described)
            return described
        if code == _BLOCK:
            return data.raw(data.u8("block"), "block")
        if code == _LONG_BLOCK:
            return data.byte_array("block")
        return data.fail("object", f"unsupported type code {code:#04x}", at)

    def _string(self, code: int) -> str:
        data = self._data
        if code == _STRING:
            text = data.utf("string")
        else:
            length = data.i64("string")
            # A negative length is more than there is, too.
            text = data.raw(length & _I64, "string").decode("utf-8", "replace")
        self._handles.append(text)
        return text

    def _class(self, at: int) -> JavaClass:
        described = self.content()
        if not isinstance(described, JavaClass):
            self._data.fail("class", "an object without a class", at)
        return described

    def _class_description(self) -> JavaClass:
        data = self._data
        described = JavaClass(data.utf("class_name"))
        data.i64("serial_version_uid")
        self._handles.append(described)
        described.flags = data.u8("flags")
        fields = []
        for _ in range(data.u16("fields")):
            at = data.position
            code, name = chr(data.u8("type")), data.utf("name")
            if code in "L[":
                self.content()
            elif code not in _PRIMITIVES:
                data.fail("type", f"unknown field type {code!r}", at)
            fields.append((code, name))
        described.fields = tuple(fields)
        self._annotation()
        at = data.position
        parent = self.content()
        if not (parent is None or isinstance(parent, JavaClass)):
            data.fail("super_class", "no class", at)
        described.parent = parent
        return described

    def _object(self, at: int) -> JavaObject:
        described = self._class(at)
        result = JavaObject(described.name, at)
        self._handles.append(result)
        hierarchy: list[JavaClass] = []
        each: JavaClass | None = described
        while each is not None:
            if each in hierarchy or len(hierarchy) > _MAX_DEPTH:
                self._data.fail("class", "a class that extends itself", at)
            hierarchy.append(each)
            each = each.parent
        for part in reversed(hierarchy):
            if part.flags & _SERIALIZABLE:
                for code, name in part.fields:
                    result.fields[name] = self._value(code, name)
                if part.flags & _HAS_WRITE_METHOD:
                    result.contents += self._annotation()
            elif part.flags & _EXTERNALIZABLE:
                if not part.flags & _HAS_BLOCKS:
                    self._data.fail("flags", f"class {part.name} has a format of its own", at)
                result.contents += self._annotation()
        return result

    def _value(self, code: str, name: str) -> JavaContent:
        if code in "L[":
            return self.content()
        content = self._data.raw(_PRIMITIVES[code], name)
        return int.from_bytes(content, "big", signed=True) if code in "BIJSZ" else content

    def _array(self, at: int) -> list[JavaContent]:
        described = self._class(at)
        result: list[JavaContent] = []
        self._handles.append(result)
        code = described.name[1:2]
        size = _PRIMITIVES.get(code, 1)
        count = self._data.count("elements", size)
        if code in _PRIMITIVES:
            self._data.raw(count * size, "elements")
            return result
        # A reference may lead back to the array, so it is filled in place.
        result.extend(self.content() for _ in range(count))
        return result

    def _annotation(self) -> list[JavaContent]:
        """Contents up to the end of a block."""
        result: list[JavaContent] = []
        data = self._data
        while True:
            at = data.position
            if data.u8("annotation") == _END_BLOCK:
                return result
            data.position = at
            result.append(self.content())
