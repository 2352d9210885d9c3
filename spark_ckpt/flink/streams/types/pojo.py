"""POJOs: classes of the user with fields that Flink knows (`PojoSerializer`).

value       u8 flags: 1 null, 2 no subclass; then for each field bool is null, value unless null
snapshot    utf class; map of fields; maps of registered and of other subclasses (`PojoSerializerSnapshotData`)
map         i64 0x4F2C69A3D70, i32 n, entries: utf name, bool is present, bytes key if present, bool is present, bytes
            value if present (`LinkedOptionalMapSerializer`)
key         of a field: utf class that declares it, utf name
value       snapshot of the field's serializer
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from spark_ckpt.flink.streams.types.base import ConfiguredSerializer, ReadNested, Serializer, write_snapshot
from spark_ckpt.flink.streams.values import Value
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.data_output import DataOutput

if TYPE_CHECKING:
    from typing_extensions import Self

_MAP = 0x4F2C69A3D70
_MIN_ENTRY = 2 + 1 + 1
_IS_NULL, _NO_SUBCLASS, _SUBCLASS, _TAGGED_SUBCLASS = 1, 2, 4, 8


class PojoField(NamedTuple):
    """Field of a POJO.

    Args:
        name: its name.
        declared_by: Java class that declares it.
        serializer: serializer of its values.
    """

    name: str
    declared_by: str
    serializer: Serializer


@dataclass(frozen=True, slots=True)
class PojoSerializer(ConfiguredSerializer):
    """`PojoSerializer`. A value is a tuple of the fields, or None. Values of subclasses cannot be read.

    Args:
        pojo_class: Java class of the values.
        fields: its fields, in the order of their values.
        subclasses: names of subclasses, registered or met.
    """

    pojo_class: str
    fields: tuple[PojoField, ...]
    subclasses: tuple[str, ...] = ()

    class_name: ClassVar[str] = "org.apache.flink.api.java.typeutils.runtime.PojoSerializerSnapshot"
    snapshot_version: ClassVar[int] = 2

    @classmethod
    def read_content(cls, data: DataInput, read_nested: ReadNested) -> Self:
        pojo_class = data.utf("pojo_class")
        fields = tuple([_read_field(data, read_nested) for _ in _entries(data, "fields")])
        subclasses: list[str] = []
        for kind in ("registered_subclasses", "other_subclasses"):
            for _ in _entries(data, kind):
                subclasses.append(data.utf("name"))
                for part in ("key", "value"):
                    if data.boolean(part):
                        data.byte_array(part)
        return cls(pojo_class, fields, tuple(subclasses))

    def write_content(self, out: DataOutput) -> None:
        if self.subclasses:
            raise out.error("subclasses", f"a snapshot of {self} with subclasses can be read, but not written")
        out.utf(self.pojo_class, "pojo_class")
        _write_map(out, len(self.fields), "fields")
        for name, declared_by, serializer in self.fields:
            out.utf(name, "name")
            key, value = DataOutput(), DataOutput()
            key.utf(declared_by, "declared_by")
            key.utf(name, "name")
            write_snapshot(serializer, value)
            for part in (key, value):
                out.i8(True, "is_present")
                out.byte_array(part.getvalue(), "fields")
        for kind in ("registered_subclasses", "other_subclasses"):
            _write_map(out, 0, kind)

    @property
    def nested(self) -> tuple[Serializer, ...]:
        return tuple([field.serializer for field in self.fields])

    @property
    def is_opaque(self) -> bool:
        return bool(self.subclasses) or any(part.is_opaque for part in self.nested)

    def read(self, data: DataInput, field: str) -> Value:
        at = data.position
        flags = data.u8(field)
        if flags & _IS_NULL:
            return None
        if flags & (_SUBCLASS | _TAGGED_SUBCLASS):
            which = data.utf(field) if flags & _SUBCLASS else f"number {data.u8(field)}"
            data.fail(field, f"a value of the subclass {which} of {self.pojo_class}, which cannot be read", at)
        if not flags & _NO_SUBCLASS:
            data.fail(field, f"unknown flags {flags:#04x} of a POJO", at)
        return tuple(
            [None if data.boolean(each.name) else each.serializer.read(data, each.name) for each in self.fields]
        )

    def write(self, value: Any, out: DataOutput, field: str) -> None:
        if value is None:
            out.i8(_IS_NULL, field)
            return
        if not isinstance(value, tuple) or len(value) != len(self.fields):
            raise out.error(field, f"{value!r} is no {self}")
        out.i8(_NO_SUBCLASS, field)
        for each, item in zip(self.fields, value, strict=True):
            out.i8(item is None, each.name)
            if item is not None:
                each.serializer.write(item, out, each.name)

    def __str__(self) -> str:
        also = f" with {', '.join(self.subclasses)}" if self.subclasses else ""
        return f"Pojo<{self.pojo_class}{also}>"


def _entries(data: DataInput, field: str) -> range:
    at = data.position
    if data.i64(field) != _MAP:
        data.fail(field, "not a map of optional entries", at)
    return range(data.count(field, _MIN_ENTRY))


def _read_field(data: DataInput, read_nested: ReadNested) -> PojoField:
    at = data.position
    name = data.utf("name")
    declared_by = ""
    if data.boolean("is_present"):
        end = data.count("fields", 1) + data.position
        declared_by = data.utf("declared_by")
        if data.utf("name") != name or data.position != end:
            data.fail("name", f"not the key of the field {name}", at)
    if not data.boolean("is_present"):
        data.fail("name", f"the field {name} has no serializer", at)
    return PojoField(name, declared_by, read_nested.framed(data, name))


def _write_map(out: DataOutput, count: int, field: str) -> None:
    out.i64(_MAP, field)
    out.i32(count, field)


SERIALIZERS = (PojoSerializer,)
