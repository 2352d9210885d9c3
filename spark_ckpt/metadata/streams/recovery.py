"""Headers with unknown serializers.

A snapshot has no length prefix. But the rest of the header follows it, up to the first key group: of all possible ends
of the snapshot, only the right one leaves a rest that can be read to its last byte. A name in an unknown snapshot may
look like the class of another, so the fewest unknown snapshots win.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from spark_ckpt.errors import FormatError
from spark_ckpt.metadata.streams.stream_input import StreamInput
from spark_ckpt.metadata.streams.types.base import Serializer
from spark_ckpt.metadata.streams.types.opaque import OpaqueSerializer

_Item = TypeVar("_Item")

_VERSION_BYTES = 4
_MOST_ATTEMPTS = 20_000
MOST_UNKNOWN = 8
"""Most unknown snapshots of a header that are searched for."""


class UnknownEndError(Exception):
    """An unknown snapshot whose end is not given.

    Attributes:
        position: the first byte at which it can end.
    """

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class GuidedInput(StreamInput):
    """A header with given ends of its unknown snapshots.

    Args:
        content: bytes of the header from its first serializer on.
        path: name of the stream.
        position: first byte to read in `content`.
        ends: ends of the unknown snapshots, in their order.
    """

    __slots__ = ("_ends",)

    def __init__(self, content: bytes, path: str, position: int = 0, ends: Sequence[int] = ()) -> None:
        super().__init__(iter([content[position:]]), path, position, len(content))
        self._ends = list(reversed(ends))

    def opaque(self, class_name: str) -> Serializer:
        """Serializer of an unknown class, whose version and content are the next bytes.

        Raises:
            UnknownEndError: its end is not given.
        """
        if not self._ends:
            raise UnknownEndError(self.position + _VERSION_BYTES)
        return OpaqueSerializer(class_name, self.raw(max(0, self._ends.pop() - self.position), "snapshot"))


class HeaderSearch:
    """Search for the ends of unknown snapshots.

    Args:
        content: bytes of the header from its first serializer on.
        path: name of the stream.
    """

    def __init__(self, content: bytes, path: str) -> None:
        self._content = content
        self._path = path
        self._attempts = 0

    def sequence(
        self, readers: Sequence[Callable[[GuidedInput], _Item]], position: int, most: int
    ) -> list[_Item] | None:
        """Items, one of each reader, that fill the header from `position` on with at most `most` unknown snapshots;
        None if there are none, or too many possibilities."""
        if not readers:
            return [] if position == len(self._content) else None
        for item, end, left in self.possibilities(readers[0], position, most):
            if (rest := self.sequence(readers[1:], end, left)) is not None:
                return [item, *rest]
        return None

    def possibilities(
        self, reader: Callable[[GuidedInput], _Item], position: int, most: int
    ) -> Iterator[tuple[_Item, int, int]]:
        """Items that a reader can find at a position with at most `most` unknown snapshots, each with its end and the
        number of unknown snapshots that are left for others."""
        return self._possibilities(reader, position, [], most)

    def _possibilities(
        self, reader: Callable[[GuidedInput], _Item], position: int, ends: list[int], most: int
    ) -> Iterator[tuple[_Item, int, int]]:
        self._attempts += 1
        if self._attempts > _MOST_ATTEMPTS:
            return
        data = GuidedInput(self._content, self._path, position, ends)
        try:
            yield reader(data), data.position, most
        except UnknownEndError as unknown:
            for end in self._candidates(unknown.position) if most else ():
                yield from self._possibilities(reader, position, [*ends, end], most - 1)
        except FormatError:
            return

    def _candidates(self, position: int) -> Iterator[int]:
        """Possible ends of a snapshot: the end of the header, and places where a name follows, as after each one; after
        that of the keys, the number of states comes before the name of the first."""
        for at in range(position, len(self._content) - 2):
            if self._is_name(at) or self._is_name(at + 2):
                yield at
        if position <= len(self._content):
            yield len(self._content)

    def _is_name(self, at: int) -> bool:
        content = self._content
        length = int.from_bytes(content[at : at + 2], "big")
        return 0 < length <= len(content) - at - 2 and min(content[at + 2 : at + 2 + length]) >= ord(" ")
