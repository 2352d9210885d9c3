"""Base classes of serializers: those whose snapshot is only a class, and those with nested serializers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from spark_ckpt.flink.streams.values import Value
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.data_output import DataOutput

if TYPE_CHECKING:
    from typing_extensions import Self

BASE = "org.apache.flink.api.common.typeutils.base"
TABLE = "org.apache.flink.table.runtime.typeutils"

OUTER_MAGIC, NESTED_MAGIC, NESTED_VERSION = 911108, 1333245, 1


class Serializer(ABC):
    """Serializer (`TypeSerializer`), as its snapshot describes it. Serializers compare by content."""

    __slots__ = ()

    snapshot_version: ClassVar[int] = 3
    """Version of the snapshot, as all releases from 1.8 to 2.1 write it."""

    @property
    @abstractmethod
    def snapshot_class(self) -> str:
        """Java class of the snapshot."""

    @property
    def nested(self) -> tuple[Serializer, ...]:
        """Nested serializers, such as those of the keys and values of a map."""
        return ()

    @property
    def is_opaque(self) -> bool:
        """True if its values cannot be read, because the serializer or a nested one is of an unknown class."""
        return any(part.is_opaque for part in self.nested)

    @property
    def has_fixed_length(self) -> bool:
        """True if all values have the same length (`TypeSerializer.getLength` is not -1)."""
        return False

    @abstractmethod
    def read(self, data: DataInput, field: str) -> Value:
        """Read a value.

        Raises:
            StateStreamFormatError: malformed value.
        """

    def write(self, value: Any, out: DataOutput, field: str) -> None:
        """Write a value.

        Raises:
            MetadataValueError: the value is not of this type, or values of the serializer can only be read.
        """
        raise out.error(field, f"a value of {self} can be read, but not written")

    def hash_code(self, value: Any) -> int | None:
        """Java's `hashCode` of a value, signed or unsigned; None if unknown, or different in each JVM."""
        return None

    @abstractmethod
    def write_content(self, out: DataOutput) -> None:
        """Write the content of the snapshot, after its class and version."""

    @abstractmethod
    def __str__(self) -> str:
        """Human-readable name."""


@dataclass(frozen=True, slots=True)
class SimpleSerializer(Serializer):
    """Serializer without configuration: its snapshot is only a class (`SimpleTypeSerializerSnapshot`).

    Args:
        name: human-readable name.
        class_name: Java class of the snapshot.
        reads: reads a value.
        writes: writes a value.
        fixed: True if all values have the same length.
        hashes: returns Java's `hashCode` of a value; None if unknown.
    """

    name: str
    class_name: str
    reads: Callable[[DataInput, str], Value]
    writes: Callable[[DataOutput, Any, str], None]
    fixed: bool = True
    hashes: Callable[[Any], int] | None = None

    @property
    def snapshot_class(self) -> str:
        return self.class_name

    @property
    def has_fixed_length(self) -> bool:
        return self.fixed

    def read(self, data: DataInput, field: str) -> Value:
        return self.reads(data, field)

    def write(self, value: Any, out: DataOutput, field: str) -> None:
        self.writes(out, value, field)

    def write_content(self, out: DataOutput) -> None:
        pass

    def hash_code(self, value: Any) -> int | None:
        return None if self.hashes is None or value is None else self.hashes(value)

    def __str__(self) -> str:
        return self.name


class ReadNested(Protocol):
    """Reader of nested snapshots."""

    def __call__(self, data: DataInput) -> tuple[Serializer, ...]:
        """Snapshots as `NestedSerializersSnapshotDelegate` writes them."""
        ...

    def framed(self, data: DataInput, field: str) -> Serializer:
        """A snapshot behind its `i32` length. One of an unknown class is opaque."""
        ...


class ConfiguredSerializer(Serializer):
    """Serializer whose snapshot has content."""

    __slots__ = ()

    class_name: ClassVar[str]
    """Java class of the snapshot."""

    @property
    def snapshot_class(self) -> str:
        return self.class_name

    @classmethod
    @abstractmethod
    def read_content(cls, data: DataInput, read_nested: ReadNested) -> Self:
        """Read the content of the snapshot, after its class and version.

        Raises:
            StateStreamFormatError: malformed content.
        """


@dataclass(frozen=True, slots=True)
class CompositeSerializer(ConfiguredSerializer):
    """Serializer with nested ones (`CompositeTypeSerializerSnapshot`).

    Args:
        parts: nested serializers.
    """

    parts: tuple[Serializer, ...]

    name: ClassVar[str]
    number_of_parts: ClassVar[int | None]
    """Number of nested serializers; None for any above 0."""
    outer_version: ClassVar[int] = 1

    @property
    def nested(self) -> tuple[Serializer, ...]:
        return self.parts

    @property
    def has_fixed_length(self) -> bool:
        return all(part.has_fixed_length for part in self.parts)

    @classmethod
    def read_content(cls, data: DataInput, read_nested: ReadNested) -> Self:
        expect(data, "outer_magic_number", OUTER_MAGIC)
        outer = cls.read_outer(data, data.i32("outer_version"))
        at = data.position
        parts = read_nested(data)
        expected = max(1, len(parts)) if cls.number_of_parts is None else cls.number_of_parts
        if len(parts) != expected:
            data.fail("nested", f"{len(parts)} nested serializers instead of {expected} in {cls.class_name}", at)
        return cls(parts, *outer)

    @classmethod
    def read_outer(cls, data: DataInput, version: int) -> tuple[Any, ...]:
        """Read the configuration in a snapshot of a version: the arguments of the constructor after `parts`."""
        return ()

    def write_outer(self, out: DataOutput) -> None:
        """Write the configuration in the snapshot."""

    def write_content(self, out: DataOutput) -> None:
        out.i32(OUTER_MAGIC, "outer_magic_number")
        out.i32(self.outer_version, "outer_version")
        self.write_outer(out)
        write_nested(self.parts, out)

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(str, self.parts))}>"


def expect(data: DataInput, field: str, expected: int) -> None:
    """Read an `i32` that can have only one value."""
    at = data.position
    if (found := data.i32(field)) != expected:
        data.fail(field, f"{found} instead of {expected}", at)


def write_snapshot(serializer: Serializer, out: DataOutput) -> None:
    """Write `SNAP`: class, version and content."""
    out.utf(serializer.snapshot_class, "class_name")
    out.i32(serializer.snapshot_version, "snapshot_version")
    serializer.write_content(out)


def write_nested(parts: tuple[Serializer, ...], out: DataOutput) -> None:
    """Write nested snapshots (`NestedSerializersSnapshotDelegate`)."""
    out.i32(NESTED_MAGIC, "nested_magic_number")
    out.i32(NESTED_VERSION, "nested_version")
    out.i32(len(parts), "nested")
    for index, part in enumerate(parts):
        out.enter("nested", index)
        write_snapshot(part, out)
        out.leave()
