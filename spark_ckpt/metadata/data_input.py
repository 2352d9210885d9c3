"""Reader of the primitives of `java.io.DataInputStream`, with positions and field names in errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct, unpack_from
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from spark_ckpt.errors import SparkCkptError
from spark_ckpt.metadata import modified_utf8
from spark_ckpt.metadata.errors import MetadataFormatError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_NESTING = 32
"""Maximum nesting depth of values; handles in ordinary checkpoints nest 4 to 6 deep."""

_MAX_EMPTY = 10_000
"""Items of no bytes that may precede any byte. Beyond, there is one for each byte read."""

_U16 = Struct(">H")
_I32 = Struct(">i")
_I64 = Struct(">q")


class DataInput:
    """Bytes with a read position that each read advances.

    Every method takes the name of the field that it reads. A `MetadataFormatError` reports this name, the enclosing
    fields (`enter`) and the position. Lengths are checked against the remaining bytes before anything is allocated.

    Args:
        data: bytes of the whole file.
        path: name of the file, for errors.
    """

    __slots__ = ("_data", "_empty", "_end", "_path", "_within", "position")

    def __init__(self, data: bytes, path: str) -> None:
        self._data = data
        self._end = len(data)
        self._path = path
        self._within: list[str | tuple[str, int]] = []
        self._empty = 0
        self.position = 0

    @property
    def path(self) -> str:
        """Name of the file or stream."""
        return self._path

    @property
    def remaining(self) -> int:
        """Number of bytes not read yet."""
        return self._end - self.position

    def enter(self, field: str, index: int | None = None) -> None:
        """Enter a field: bytes read until `leave` belong to `field`, or to its element `index`.

        Raises:
            MetadataFormatError: more than `MAX_NESTING` nested values.
        """
        if len(self._within) >= MAX_NESTING:
            self.fail(field, f"values nest deeper than {MAX_NESTING} levels")
        self._within.append(field if index is None else (field, index))

    def leave(self) -> None:
        """Leave the field of the last `enter`. Not called after an error, because an error ends the reading."""
        self._within.pop()

    def enter_within(self, other: DataInput, field: str) -> None:
        """Enter a field of another input, whose bytes these are: errors name it, and its nesting counts.

        Raises:
            MetadataFormatError: more than `MAX_NESTING` nested values.
        """
        self._within = [*other._within]
        self.enter(field)

    def empty_item(self, field: str) -> None:
        """Count an item that takes no bytes, so that no count of items bounds it.

        Raises:
            MetadataFormatError: more such items than bytes so far.
        """
        self._empty += 1
        if self._empty > _MAX_EMPTY + self.position:
            self.fail(field, f"more than {self._empty - 1} items without bytes")

    def fail(self, field: str, reason: str, offset: int | None = None) -> NoReturn:
        """Raise an error for the value at `offset`; by default, at the current position."""
        raise self._failure(self.position if offset is None else offset, self.where(field), reason)

    def where(self, field: str) -> str:
        """Dotted path of a field within the entered fields."""
        names = [name if isinstance(name, str) else f"{name[0]}[{name[1]}]" for name in self._within]
        return ".".join([*names, field] if field else names)

    def i8(self, field: str) -> int:
        """A signed byte."""
        value = self.u8(field)
        return value - 256 if value > 127 else value

    def u8(self, field: str) -> int:
        """An unsigned byte."""
        at = self._advance(1, field)
        return self._data[at]

    def u16(self, field: str) -> int:
        """An unsigned 16-bit integer, big-endian."""
        at = self._advance(2, field)
        return int(_U16.unpack_from(self._data, at)[0])

    def i32(self, field: str) -> int:
        """A signed 32-bit integer, big-endian."""
        at = self._advance(4, field)
        value: int = _I32.unpack_from(self._data, at)[0]
        return value

    def i64(self, field: str) -> int:
        """A signed 64-bit integer, big-endian."""
        at = self._advance(8, field)
        value: int = _I64.unpack_from(self._data, at)[0]
        return value

    def boolean(self, field: str) -> bool:
        """One byte, true unless 0."""
        return self.u8(field) != 0

    def count(self, field: str, item_size: int, *, negative_is_none: bool = False) -> int:
        """An `i32` count of items that follow, of at least `item_size` bytes each.

        Raises:
            MetadataFormatError: the count is negative (without `negative_is_none`), or exceeds the remaining bytes.
        """
        at = self.position
        count = self.i32(field)
        if count < 0:
            if negative_is_none:
                return 0
            self.fail(field, f"negative count {count}", at)
        if count * item_size > self.remaining:
            self.fail(field, f"a count of {count}, but only {self.remaining} bytes follow", at)
        return count

    def each(self, field: str, item_size: int, *, negative_is_none: bool = False) -> Iterator[int]:
        """Indices of items that follow their `count`. Reads between two indices belong to the item of the first."""
        for index in range(self.count(field, item_size, negative_is_none=negative_is_none)):
            self.enter(field, index)
            yield index
            self.leave()

    def raw(self, length: int, field: str) -> bytes:
        """`length` bytes."""
        at = self._advance(length, field)
        return self._data[at : at + length]

    def since(self, position: int) -> bytes:
        """Bytes read since a position."""
        return self._data[position : self.position]

    def byte_array(self, field: str) -> bytes:
        """An `i32` length, then that many bytes."""
        return self.raw(self.count(field, 1), field)

    def utf(self, field: str) -> str:
        """A string as `DataOutput.writeUTF` writes it: a `u16` length in bytes, then modified UTF-8."""
        at = self.position
        encoded = self.raw(self.u16(field), field)
        try:
            return modified_utf8.decode(encoded)
        except modified_utf8.MalformedUtf8Error as malformed:
            self.fail(field, "malformed modified UTF-8", at + 2 + malformed.position)

    def i64_array(self, count: int, field: str) -> NDArray[np.int64]:
        """`count` signed 64-bit integers as a read-only array in native byte order."""
        at = self._advance(8 * count, field)
        array = np.frombuffer(self._data, ">i8", count, at).astype(np.int64)
        array.flags.writeable = False
        return array

    def i64_tuple(self, field: str) -> tuple[int, ...]:
        """An `i32` count, then that many signed 64-bit integers."""
        count = self.count(field, 8)
        at = self._advance(8 * count, field)
        return unpack_from(f">{count}q", self._data, at)

    @contextmanager
    def limited(self, length: int, field: str) -> Iterator[None]:
        """Limit reads to the next `length` bytes. It is an error to leave some of them unread."""
        start = self._advance(length, field)
        end, self._end = self._end, start + length
        self.position = start
        yield
        if self.remaining:
            self.fail(field, f"{self.remaining} trailing bytes")
        self._end = end

    def _failure(self, offset: int, field: str, reason: str) -> SparkCkptError:
        return MetadataFormatError(self._path, offset, field, reason)

    def _advance(self, length: int, field: str) -> int:
        at = self.position
        if not 0 <= length <= self._end - at:
            self.fail(field, f"{length} bytes needed, {self._end - at} left")
        self.position = at + length
        return at
