"""Rows of Flink's state decoded column by column, for common types.

A row of a full snapshot or of RocksDB is a key and a value in bytes. Here, all rows of a batch are read at once: one
position per row, which each part advances. Whatever is not plain (a null, text beyond ASCII, a type without a reader
here, bytes that do not fit) makes the whole batch the task of the readers that go row by row, which also name errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_ckpt.flink.streams import BackendStateType
from spark_ckpt.flink.streams.full_snapshot import prefix_bytes
from spark_ckpt.flink.streams.headers import KeyedHeader
from spark_ckpt.flink.streams.heap_snapshot import Block, layout_of
from spark_ckpt.flink.streams.types import primitives
from spark_ckpt.flink.streams.types.composites import MapSerializer, TimerSerializer
from spark_ckpt.flink.types.hashes import key_groups_of
from spark_ckpt.flink.types.lookup import flink_type
from spark_ckpt.flink.types.record import Read
from spark_ckpt.state.vector_rows import ByteRows, Column, NotPlainError, Positions

_DELIMITER = ord(",")
_MAX_ELEMENTS = 256
"""Elements of a list that are read for all lists at once."""


@dataclass(frozen=True, slots=True, eq=False)
class VectorReader:
    """Reader of rows of a state.

    Args:
        keys: readers of the parts of a key behind its key group, or of an element.
        values: readers of the parts of a value.
        order: for each column, the position of its part.
        key: position of the part that has the key.
        max_parallelism: number of key groups.
        is_map: whether a value begins with a flag of null values.
        is_timer: whether the first part is a timestamp with its sign bit flipped.
        is_list: whether a value is a list, with a row for each element.
    """

    keys: tuple[Read, ...]
    values: tuple[Read, ...]
    order: tuple[int, ...]
    key: int
    max_parallelism: int
    is_map: bool = False
    is_timer: bool = False
    is_list: bool = False

    @classmethod
    def of(cls, header: KeyedHeader, state_id: int, max_parallelism: int) -> VectorReader | None:
        """Reader of a state; None if one of its types has no reader here."""
        meta = header.states[state_id]
        if header.key_serializer is None:
            return None
        key, value, is_map = header.key_serializer, meta.value_serializer, meta.keyed_state_type == "MAP"
        is_timer, is_list = meta.kind is BackendStateType.PRIORITY_QUEUE, meta.keyed_state_type == "LIST"
        if is_timer:
            if not isinstance(value, TimerSerializer):
                return None
            key, namespace = value.parts
            keys, values = [primitives.LONG, key, namespace], []
        else:
            namespace = meta.namespace_serializer
            if not (key.has_fixed_length or namespace.has_fixed_length):
                return None
            keys, values = [key, namespace], [value]
            if is_list:
                values = list(value.nested)
            if is_map:
                if not isinstance(value, MapSerializer):
                    return None
                keys, values = [*keys, value.parts[0]], [value.parts[1]]
        readers = [flink_type(part).read for part in (*keys, *values)]
        plain = [reader for reader in readers if reader is not None]
        if len(plain) != len(readers):
            return None
        order = [1, 2, 0] if is_timer else list(range(len(plain)))
        hidden = 1 + is_timer if namespace == primitives.VOID_NAMESPACE else None
        shown = [number for number in order if number != hidden]
        return cls(
            tuple(plain[: len(keys)]),
            tuple(plain[len(keys) :]),
            tuple(shown),
            int(is_timer),
            max_parallelism,
            is_map,
            is_timer,
            is_list,
        )

    def read(self, rows: Sequence[tuple[bytes, bytes]]) -> tuple[list[pa.Array], NDArray[np.int32]] | None:
        """Columns and key groups of rows; None if they have to be read one by one."""
        try:
            return self._read(rows)
        except NotPlainError:
            return None

    def _read(self, rows: Sequence[tuple[bytes, bytes]]) -> tuple[list[pa.Array], NDArray[np.int32]]:
        keys = ByteRows.of([key for key, _ in rows])
        key_groups = keys.numbers(">u1" if prefix_bytes(self.max_parallelism) == 1 else ">u2").astype(np.int32)
        parts = [read(keys) for read in self.keys]
        keys.check_end()
        hashes = parts[self.key].hashes
        if hashes is None or (key_groups_of(hashes, self.max_parallelism) != key_groups).any():
            raise NotPlainError
        if self.is_timer:
            parts[0] = _timestamps(parts[0])
        else:
            values = ByteRows.of([value for _, value in rows])
            if self.is_map and values.numbers("u1").any():
                raise NotPlainError
            if self.is_list:
                elements, owners = _elements(values, self.values[0])
                owner = pa.array(owners)
                arrays = [*(parts[number].array.take(owner) for number in self.order[:-1]), elements]
                return arrays, key_groups[owners]
            parts += [read(values) for read in self.values]
            values.check_end()
        return [parts[number].array for number in self.order], key_groups


@dataclass(frozen=True, slots=True, eq=False)
class BlockReader:
    """Reader of blocks of a heap snapshot.

    Args:
        parts: readers of the parts of an entry.
        order: for each column, the position of its part.
        max_parallelism: number of key groups.
        is_timer: whether the first part is a timestamp with its sign bit flipped.
    """

    parts: tuple[Read, ...]
    order: tuple[int, ...]
    max_parallelism: int
    is_timer: bool

    @classmethod
    def of(cls, header: KeyedHeader, state_id: int, max_parallelism: int) -> BlockReader | None:
        """Reader of a state; None if its blocks cannot be read at once."""
        meta = header.states[state_id]
        if not header.is_complete or header.key_serializer is None or layout_of(header, meta) is None:
            return None
        is_timer = meta.kind is BackendStateType.PRIORITY_QUEUE
        if is_timer:
            key, namespace = meta.value_serializer.nested
            parts, order = [primitives.LONG, key, namespace], [1, 2, 0]
        else:
            namespace = meta.namespace_serializer
            parts, order = [namespace, header.key_serializer, meta.value_serializer], [1, 0, 2]
        readers = [flink_type(part).read for part in parts]
        plain = [reader for reader in readers if reader is not None]
        if len(plain) != len(readers):
            return None
        if namespace == primitives.VOID_NAMESPACE:
            del order[1]
        return cls(tuple(plain), tuple(order), max_parallelism, is_timer)

    def read(self, blocks: Sequence[Block]) -> tuple[list[pa.Array], NDArray[np.int32]] | None:
        """Columns and key groups of blocks; None if they have to be read one by one."""
        rows = ByteRows.within([(block.content, block.ends) for block in blocks])
        counts = [len(block.ends) for block in blocks]
        key_groups = np.repeat(np.array([block.key_group for block in blocks], np.int32), counts)
        try:
            parts = [read(rows) for read in self.parts]
            rows.check_end()
        except NotPlainError:
            return None
        hashes = parts[1].hashes
        if hashes is None or (key_groups_of(hashes, self.max_parallelism) != key_groups).any():
            return None
        if self.is_timer:
            parts[0] = _timestamps(parts[0])
        return [parts[number].array for number in self.order], key_groups


def _timestamps(flipped: Column) -> Column:
    return Column(pa.array(flipped.array.to_numpy() ^ np.int64(-(1 << 63))))


def _elements(rows: ByteRows, read: Read) -> tuple[pa.Array, Positions]:
    """Elements of lists, in order, and the row of each: the first element of all lists, then the second, and so on."""
    found: list[pa.Array] = []
    owners: list[Positions] = []
    which = np.arange(rows.ends.size)
    while (active := np.flatnonzero(rows.at < rows.ends)).size:
        rows, which = rows.some(active), which[active]
        if (found and (rows.numbers("u1") != _DELIMITER).any()) or len(found) > _MAX_ELEMENTS:
            raise NotPlainError
        found.append(read(rows).array)
        owners.append(which)
    if not found:
        raise NotPlainError
    order = np.argsort(np.concatenate(owners), kind="stable")
    return pa.concat_arrays(found).take(pa.array(order)), np.concatenate(owners)[order]
