"""Java enums: i32 position of the constant in the snapshot, which is utf class, i32 n, utf name of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from spark_ckpt.flink.streams.types.base import BASE, ConfiguredSerializer, ReadNested
from spark_ckpt.flink.streams.values import Value
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.data_output import DataOutput

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, slots=True)
class EnumSerializer(ConfiguredSerializer):
    """`EnumSerializer`. A value is the name of a constant. An enum has another hash in each JVM.

    Args:
        enum_class: Java class of the enum.
        constants: names of its constants.
    """

    enum_class: str
    constants: tuple[str, ...]

    class_name: ClassVar[str] = f"{BASE}.EnumSerializer$EnumSerializerSnapshot"

    @classmethod
    def read_content(cls, data: DataInput, read_nested: ReadNested) -> Self:
        enum_class = data.utf("enum_class")
        return cls(enum_class, tuple([data.utf("constants") for _ in range(data.count("constants", 2))]))

    def write_content(self, out: DataOutput) -> None:
        out.utf(self.enum_class, "enum_class")
        out.i32(len(self.constants), "constants")
        for constant in self.constants:
            out.utf(constant, "constants")

    @property
    def has_fixed_length(self) -> bool:
        return True

    def read(self, data: DataInput, field: str) -> Value:
        at = data.position
        if not 0 <= (position := data.i32(field)) < len(self.constants):
            data.fail(field, f"constant {position} of an enum with {len(self.constants)}", at)
        return self.constants[position]

    def write(self, value: Any, out: DataOutput, field: str) -> None:
        if value not in self.constants:
            raise out.error(field, f"{value!r} is no constant of {self.enum_class}")
        out.i32(self.constants.index(value), field)

    def __str__(self) -> str:
        return f"Enum<{self.enum_class}>"


SERIALIZERS = (EnumSerializer,)
