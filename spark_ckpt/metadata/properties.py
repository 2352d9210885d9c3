"""Checkpoint properties: the one serialised Java object at the end of a version 4 file.

The object has no length in front of it, so its end is found by reading it. Only what Flink writes there is understood:
plain objects with boolean and object fields, strings and enum constants. Nothing is instantiated by the names in it.

Flink: `MetadataV4Serializer`, `CheckpointProperties`; the grammar is chapter 6 of the Java Object Serialization
Specification.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from spark_ckpt.metadata.data_input import DataInput

NULL_PROPERTIES = bytes.fromhex("aced000570")
"""Serialised null: the properties of a file that has none, which Flink loads."""

_STREAM_HEADER = 0xACED0005
_PACKAGE = "org.apache.flink.runtime.checkpoint."
_BASE_HANDLE = 0x7E0000
_SERIALIZABLE = 0x02
_ENUM = 0x10


@dataclass(frozen=True, slots=True)
class SnapshotType:
    """What kind of snapshot it is (`CheckpointType`, `SavepointType`). Names of enum constants are kept as text.

    Args:
        class_name: "CheckpointType" or "SavepointType".
        name: such as "Checkpoint" or "Savepoint".
        sharing_files_strategy: of a checkpoint, such as "FORWARD_BACKWARD".
        format_type: of a savepoint, "CANONICAL" or "NATIVE".
        post_checkpoint_action: of a savepoint, "NONE", "SUSPEND" or "TERMINATE".
    """

    class_name: str
    name: str | None
    sharing_files_strategy: str | None = None
    format_type: str | None = None
    post_checkpoint_action: str | None = None


@dataclass(frozen=True, slots=True)
class CheckpointProperties:
    """How Flink treats a checkpoint (`CheckpointProperties`)."""

    forced: bool
    checkpoint_type: SnapshotType | None
    discard_subsumed: bool
    discard_finished: bool
    discard_cancelled: bool
    discard_failed: bool
    discard_suspended: bool
    unclaimed: bool


@dataclass(frozen=True, slots=True)
class _ClassDescription:
    name: str
    flags: int
    fields: tuple[tuple[str, str], ...]
    super_class: _ClassDescription | None


@dataclass(frozen=True, slots=True)
class _Instance:
    class_name: str
    fields: dict[str, _Content]


_Content: TypeAlias = bool | str | _ClassDescription | _Instance | None


def read(data: DataInput) -> bytes:
    """Reads the properties at the position, leaves the position behind them, and returns their bytes.

    Raises:
        MetadataFormatError: there is no serialised object, one that this module does not understand, or one that is
            neither null nor of the class `CheckpointProperties`.
    """
    start = data.position
    _read(data)
    length = data.position - start
    data.position = start
    return data.raw(length, "properties")


def decode(properties: bytes) -> CheckpointProperties | None:
    """What the bytes that `CheckpointMetadata.properties` holds say; None for no bytes or a null object.

    Raises:
        MetadataFormatError: as in `read`.
    """
    return _read(DataInput(properties, "<properties>")) if properties else None


def _read(data: DataInput) -> CheckpointProperties | None:
    data.enter("properties")
    at = data.position
    if data.i32("") & 0xFFFFFFFF != _STREAM_HEADER:
        data.fail("", "the properties are no serialised Java object", at)
    content = _ObjectReader(data).content()
    if content is not None and not (
        isinstance(content, _Instance) and content.class_name == _PACKAGE + "CheckpointProperties"
    ):
        data.fail("", "the properties are an object of another class than CheckpointProperties", at)
    data.leave()
    return None if content is None else _checkpoint_properties(content.fields)


def _checkpoint_properties(fields: dict[str, _Content]) -> CheckpointProperties:
    kind = fields.get("checkpointType")
    return CheckpointProperties(
        forced=fields.get("forced") is True,
        checkpoint_type=_snapshot_type(kind) if isinstance(kind, _Instance) else None,
        discard_subsumed=fields.get("discardSubsumed") is True,
        discard_finished=fields.get("discardFinished") is True,
        discard_cancelled=fields.get("discardCancelled") is True,
        discard_failed=fields.get("discardFailed") is True,
        discard_suspended=fields.get("discardSuspended") is True,
        unclaimed=fields.get("unclaimed") is True,
    )


def _snapshot_type(instance: _Instance) -> SnapshotType:
    def text(field: str) -> str | None:
        value = instance.fields.get(field)
        return value if isinstance(value, str) else None

    return SnapshotType(
        class_name=instance.class_name.rpartition(".")[2],
        name=text("name"),
        sharing_files_strategy=text("sharingFilesStrategy"),
        format_type=text("formatType"),
        post_checkpoint_action=text("postCheckpointAction"),
    )


class _ObjectReader:
    """Reads one object of a Java serialisation stream, behind the stream's header."""

    def __init__(self, data: DataInput) -> None:
        self._data = data
        # What a back reference may name, in the order of appearance. None holds the place of an unfinished object.
        self._handles: list[_Content] = []

    def content(self) -> _Content:
        """One content element: null, a reference, a class description, an object, a string or an enum constant."""
        at = self._data.position
        code = self._data.u8("object")
        if (read := _CONTENTS.get(code)) is None:
            self._data.fail("object", f"type code {code:#04x} does not occur in checkpoint properties", at)
        self._data.enter("object")
        content = read(self)
        self._data.leave()
        return content

    def _null(self) -> None:
        return None

    def _reference(self) -> _Content:
        at = self._data.position
        handle = self._data.i32("reference") - _BASE_HANDLE
        if not 0 <= handle < len(self._handles):
            self._data.fail("reference", "a reference to nothing", at)
        return self._handles[handle]

    def _class_description(self) -> _ClassDescription:
        name = self._data.utf("class_name")
        self._data.i64("serial_version_uid")
        handle = self._new_handle()
        at = self._data.position
        flags = self._data.u8("flags")
        if flags not in (_SERIALIZABLE, _SERIALIZABLE | _ENUM):
            self._data.fail("flags", f"class {name} writes its own format (flags {flags:#04x})", at)
        fields = tuple(self._field() for _ in range(self._data.u16("fields")))
        at = self._data.position
        if self._data.u8("annotation") != _END_BLOCK_DATA:
            self._data.fail("annotation", "class annotations do not occur in checkpoint properties", at)
        description = _ClassDescription(name, flags, fields, self._description())
        self._handles[handle] = description
        return description

    def _field(self) -> tuple[str, str]:
        at = self._data.position
        kind = chr(self._data.u8("field_type"))
        if kind not in "ZL":
            self._data.fail("field_type", f"fields of type {kind!r} do not occur in checkpoint properties", at)
        name = self._data.utf("field_name")
        if kind == "L":
            self.content()
        return kind, name

    def _description(self) -> _ClassDescription | None:
        at = self._data.position
        description = self.content()
        if not (description is None or isinstance(description, _ClassDescription)):
            self._data.fail("class", "a class description is needed here", at)
        return description

    def _object(self) -> _Instance:
        description = self._description()
        if description is None:
            self._data.fail("class", "an object without a class")
        handle = self._new_handle()
        hierarchy = [description]
        while (parent := hierarchy[-1].super_class) is not None:
            hierarchy.append(parent)
        instance = _Instance(description.name, {})
        # Values come from the topmost class down.
        for level in reversed(hierarchy):
            for kind, name in level.fields:
                instance.fields[name] = self._data.boolean(name) if kind == "Z" else self.content()
        self._handles[handle] = instance
        return instance

    def _string(self) -> str:
        text = self._data.utf("string")
        self._handles.append(text)
        return text

    def _enum(self) -> str:
        self._description()
        handle = self._new_handle()
        at = self._data.position
        constant = self.content()
        if not isinstance(constant, str):
            self._data.fail("constant", "an enum constant without a name", at)
        self._handles[handle] = constant
        return constant

    def _new_handle(self) -> int:
        self._handles.append(None)
        return len(self._handles) - 1


_END_BLOCK_DATA = 0x78
_CONTENTS: dict[int, Callable[[_ObjectReader], _Content]] = {
    0x70: _ObjectReader._null,
    0x71: _ObjectReader._reference,
    0x72: _ObjectReader._class_description,
    0x73: _ObjectReader._object,
    0x74: _ObjectReader._string,
    0x7E: _ObjectReader._enum,
}
