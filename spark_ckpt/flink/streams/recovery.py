"""Headers with unknown serializers.

A snapshot has no length prefix. But the rest of the header follows it, up to the first key group: of all possible ends
of the snapshot, only the right one leaves a rest that can be read to its last byte. A name in an unknown snapshot may
look like the class of another, so the fewest unknown snapshots win.

Descriptions of states begin in a way that hardly anything else does. So each state is searched on its own up to where
the next one begins, and a header may have any number of them with unknown serializers. Only where this fails, which
bytes in a snapshot that look like a state can cause, the whole header is searched at once.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import numpy as np

from spark_ckpt.errors import FormatError
from spark_ckpt.flink.streams.stream_input import StreamInput
from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.types.opaque import OpaqueSerializer

_First = TypeVar("_First")
_Item = TypeVar("_Item")

_VERSION_BYTES = 4
_MAX_ATTEMPTS = 20_000
_MAX_READ = 8_000_000
"""Bytes that all attempts together may read."""
MAX_UNKNOWN = 8
"""Most unknown snapshots of a state, or of a header that is searched at once, that are searched for."""

_MAX_NAME = 1024
_MAX_STATES = 4096
_PRINTABLE = ord(" ")
_STATE = re.compile(
    # After the name: kind and options of a state, or kind and serializer of a queue, which has no options.
    rb"\x00\x00\x00[\x00\x04]\x00\x00\x00[\x01-\x08]\x00[\x01-\x40][A-Z_]{1,64}"
    rb"|\x00\x00\x00\x03\x00{4}\x00\x00\x00\x01\x00\x10VALUE_SERIALIZER"
)
_CLASS = re.compile(rb"(?:[A-Za-z_$][\w$]*\.)+[A-Za-z_$][\w$]*")
_LAST_VERSION = 1000
_SERIALIZER = re.compile(rb"\x00[\x10\x14](?:VALUE|NAMESPACE)_SERIALIZER\x00\x00\x00\x02")


class UnknownEndError(Exception):
    """An unknown snapshot whose end is not given.

    Attributes:
        position: the first byte at which it can end.
        is_known: True if its class is known, but not its content.
    """

    def __init__(self, position: int, is_known: bool) -> None:
        super().__init__(position)
        self.position = position
        self.is_known = is_known


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
        super().__init__(iter(()), path, 0, len(content))
        # Not a copy for each possibility.
        self._data = content
        self.mark()
        self.position = position
        self._ends = list(reversed(ends))

    def opaque(self, class_name: str, *, is_known: bool = False) -> Serializer:
        """Serializer of an unknown class, or of a known one with unknown content (`is_known`), whose version and
        content are the next bytes.

        Raises:
            UnknownEndError: its end is not given.
        """
        if not self._ends:
            raise UnknownEndError(self.position + _VERSION_BYTES, is_known)
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
        self._read = 0
        states = islice(_STATE.finditer(content), _MAX_STATES)
        self._states = frozenset(at for found in states for at in self._names_before(found.start()))
        serializers = [found.start() for found in _SERIALIZER.finditer(content)]
        self._bounds = sorted({*self._states, *serializers, len(content)})
        self._names, snapshots = self._places()
        # After that of the keys, the number of states comes before the name of the first.
        counts = [at - 2 for at in self._states if at > 1]
        self._snapshots = sorted({*snapshots, *counts, *self._bounds})

    def greedy_items(
        self, first: Callable[[GuidedInput], tuple[_First, int]], each: Callable[[GuidedInput], _Item]
    ) -> tuple[_First, list[_Item]] | None:
        """Items that fill the header, each with the fewest unknown snapshots before the next one begins.

        Args:
            first: reader of what comes before the items, and of their number.
            each: reader of an item.

        Returns:
            None if there are none, or too many possibilities.
        """
        begin = self._ending(first, 0, self._states | {len(self._content)})
        if begin is None:
            return None
        (head, count), position = begin
        items: list[_Item] = []
        for number in range(count):
            ends = self._states if number < count - 1 else frozenset({len(self._content)})
            if (found := self._ending(each, position, ends)) is None:
                return None
            item, position = found
            items.append(item)
        return (head, items) if position == len(self._content) else None

    def _ending(
        self, reader: Callable[[GuidedInput], _Item], position: int, ends: frozenset[int]
    ) -> tuple[_Item, int] | None:
        """Item of a reader that ends at one of some places, and this place."""
        self._attempts = self._read = 0
        for max_unknown in range(MAX_UNKNOWN + 1):
            for item, end, _ in self._possibilities(reader, position, [], max_unknown, is_bounded=True):
                if end in ends:
                    return item, end
        return None

    def _names_before(self, at: int) -> Iterator[int]:
        """Places where a name can begin that ends at a place."""
        for length in range(min(_MAX_NAME, at - 2) + 1):
            start = at - length - 2
            if start >= 0 and int.from_bytes(self._content[start : start + 2], "big") == length:
                yield start
            if self._content[start + 1] < _PRINTABLE:
                return

    def sequence(
        self, readers: Sequence[Callable[[GuidedInput], _Item]], position: int, max_unknown: int
    ) -> list[_Item] | None:
        """Items, one of each reader, that fill the header from `position` on with at most `max_unknown` unknown
        snapshots; None if there are none, or too many possibilities."""
        if not readers:
            return [] if position == len(self._content) else None
        for item, end, remaining in self.possibilities(readers[0], position, max_unknown):
            if (rest := self.sequence(readers[1:], end, remaining)) is not None:
                return [item, *rest]
        return None

    def possibilities(
        self, reader: Callable[[GuidedInput], _Item], position: int, max_unknown: int
    ) -> Iterator[tuple[_Item, int, int]]:
        """Items that a reader can find at a position with at most `max_unknown` unknown snapshots, each with its end
        and the number of unknown snapshots that remain for others."""
        return self._possibilities(reader, position, [], max_unknown)

    def _possibilities(
        self,
        reader: Callable[[GuidedInput], _Item],
        position: int,
        ends: list[int],
        max_unknown: int,
        *,
        is_bounded: bool = False,
    ) -> Iterator[tuple[_Item, int, int]]:
        self._attempts += 1
        if self._is_spent():
            return
        data = GuidedInput(self._content, self._path, position, ends)
        unknown = None
        try:
            item = reader(data)
        except UnknownEndError as error:
            unknown = error
        except FormatError:
            return
        finally:
            self._read += data.position - position
        if unknown is None:
            yield item, data.position, max_unknown
            return
        remaining = max_unknown if unknown.is_known else max_unknown - 1
        for end in self._candidates(unknown.position, is_bounded) if remaining >= 0 else ():
            if self._is_spent():
                return
            yield from self._possibilities(reader, position, [*ends, end], remaining, is_bounded=is_bounded)

    def _is_spent(self) -> bool:
        return self._attempts > _MAX_ATTEMPTS or self._read > _MAX_READ

    def _candidates(self, position: int, is_bounded: bool) -> Sequence[int]:
        """Possible ends of a snapshot.

        Args:
            position: first possible end.
            is_bounded: True to stop where the next serializer or state begins.
        """
        if not is_bounded:
            return self._names[bisect_left(self._names, position) :]
        last = self._bounds[min(bisect_left(self._bounds, position), len(self._bounds) - 1)]
        return self._snapshots[bisect_left(self._snapshots, position) : bisect_right(self._snapshots, last)]

    def _places(self) -> tuple[list[int], list[int]]:
        """Places where a name begins, or the number of states before one, and those of them where a snapshot does."""
        content, size = self._content, len(self._content)
        octets = np.frombuffer(content, np.uint8).astype(np.int64)
        places = np.arange(max(0, size - 2))
        # For each byte, the first one from it on that no name has.
        controls = np.where(octets < _PRINTABLE, np.arange(size), size)
        controls = np.minimum.accumulate(controls[::-1])[::-1]
        ends = places + 2 + (octets[:-2] << 8 | octets[1:-1]) if size > 2 else places
        is_name = (ends > places + 2) & (ends <= size) & (controls[2:] >= ends)
        names = places[is_name].tolist()
        snapshots = [at for at, end in zip(names, ends[is_name].tolist(), strict=True) if _is_class(content, at, end)]
        return sorted({*names, *(at - 2 for at in names if at > 1), size}), snapshots


def _is_class(content: bytes, start: int, end: int) -> bool:
    """True if a name is that of a class, with a version of a snapshot behind it."""
    if end - start > _MAX_NAME or _CLASS.fullmatch(content, start + 2, end) is None:
        return False
    return 0 < int.from_bytes(content[end : end + _VERSION_BYTES], "big") <= _LAST_VERSION
