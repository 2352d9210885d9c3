"""Writer of the primitives of `java.io.DataOutputStream`, with field names in errors."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, error
from typing import TYPE_CHECKING

import numpy as np

from spark_ckpt.metadata import modified_utf8
from spark_ckpt.metadata.data_input import MAX_NESTING
from spark_ckpt.metadata.errors import MetadataValueError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_I8 = Struct(">b")
_I32 = Struct(">i")
_I64 = Struct(">q")


class DataOutput:
    """Buffer to which each write appends; the counterpart of `DataInput`.

    Every method takes the name of the field that it writes. A value that does not fit raises a `MetadataValueError`
    with the dotted path of the field.
    """

    __slots__ = ("_data", "_within")

    def __init__(self) -> None:
        self._data = bytearray()
        self._within: list[str | tuple[str, int]] = []

    def getvalue(self) -> bytes:
        """Bytes written so far."""
        return bytes(self._data)

    def enter(self, field: str, index: int | None = None) -> None:
        """Enter a field: bytes written until `leave` belong to `field`, or to its element `index`.

        Raises:
            MetadataValueError: values nest deeper than the reader accepts.
        """
        if len(self._within) >= MAX_NESTING:
            raise self.error(field, f"values nest deeper than {MAX_NESTING} levels")
        self._within.append(field if index is None else (field, index))

    def leave(self) -> None:
        """Leave the field of the last `enter`."""
        self._within.pop()

    def error(self, field: str, reason: str) -> MetadataValueError:
        """Error for a value that cannot be written."""
        names = [name if isinstance(name, str) else f"{name[0]}[{name[1]}]" for name in self._within]
        return MetadataValueError(".".join([*names, field]), reason)

    def i8(self, value: int, field: str) -> None:
        """A signed byte."""
        self._pack(_I8, value, field)

    def i32(self, value: int, field: str) -> None:
        """A signed 32-bit integer, big-endian."""
        self._pack(_I32, value, field)

    def i64(self, value: int, field: str) -> None:
        """A signed 64-bit integer, big-endian."""
        self._pack(_I64, value, field)

    def raw(self, value: bytes) -> None:
        """Bytes without a length."""
        self._data += value

    def byte_array(self, value: bytes, field: str) -> None:
        """An `i32` length, then the bytes."""
        self.i32(len(value), field)
        self._data += value

    def utf(self, value: str, field: str) -> None:
        """A string as `DataOutput.writeUTF` writes it: a `u16` length in bytes, then modified UTF-8."""
        encoded = modified_utf8.encode(value)
        if len(encoded) > modified_utf8.MAX_BYTES:
            raise self.error(field, f"a string of {len(encoded)} bytes; the maximum is {modified_utf8.MAX_BYTES}")
        self._data += len(encoded).to_bytes(2, "big")
        self._data += encoded

    def i64_array(self, values: NDArray[np.int64]) -> None:
        """Signed 64-bit integers without their count."""
        self._data += values.astype(">i8").tobytes()

    def i64_sequence(self, values: Sequence[int], field: str) -> None:
        """An `i32` count, then that many signed 64-bit integers."""
        self.i32(len(values), field)
        try:
            self.i64_array(np.array(values, dtype=np.int64))
        except OverflowError as overflow:
            raise self.error(field, f"a value does not fit into 64 bits: {overflow}") from None

    def _pack(self, struct: Struct, value: int, field: str) -> None:
        try:
            self._data += struct.pack(value)
        except error:
            raise self.error(field, f"{value!r} is not an integer of {8 * struct.size} bits") from None
