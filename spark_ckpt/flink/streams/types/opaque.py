"""Serializers outside the table: a class, and a snapshot of unknown length whose end the rest of the header shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.values import Value
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.data_output import DataOutput
from spark_ckpt.metadata.errors import MetadataFormatError

_KRYO = ".KryoSerializerSnapshot"


@dataclass(frozen=True, slots=True)
class OpaqueSerializer(Serializer):
    """Serializer of an unknown class. Its values cannot be read, because their ends are unknown.

    Args:
        class_name: Java class of the snapshot.
        content: version and content of the snapshot.
    """

    class_name: str
    content: bytes

    @property
    def snapshot_class(self) -> str:
        return self.class_name

    @property
    def is_opaque(self) -> bool:
        return True

    def read(self, data: DataInput, field: str) -> Value:
        data.fail(field, f"a value of the unknown serializer {self.class_name}")

    def write(self, value: Any, out: DataOutput, field: str) -> None:
        raise out.error(field, f"the serializer {self.class_name} is unknown")

    def write_content(self, out: DataOutput) -> None:
        out.raw(self.content[4:])

    def __str__(self) -> str:
        if self.class_name.endswith(_KRYO) and (of_values := self._class_of_values()):
            return f"Kryo<{of_values}>"
        return self.class_name

    def _class_of_values(self) -> str:
        """Class that a snapshot of Kryo begins with."""
        try:
            return DataInput(self.content[4:], "").utf("class")
        except MetadataFormatError:
            return ""
