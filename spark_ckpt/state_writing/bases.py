"""Base snapshots of placed rows."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.checkpoint.publish import merge_into_file
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.format.segment_writer import NewSection, NewSegment, encode_base, list_value
from spark_ckpt.spark_files.schemas import DEFAULT_FAMILY, FamilySchema
from spark_ckpt.spark_files.types import Struct
from spark_ckpt.state.unsafe_row import decode_rows
from spark_ckpt.state.unsafe_row_encoder import encode_rows, rows_of
from spark_ckpt.state_writing.errors import RepeatedKeyError
from spark_ckpt.storage import Storage

FILE_BYTES = 64 << 20
"""Bytes of segments in memory before they become a file. A segment is never divided."""


Combine: TypeAlias = Callable[[list[bytes], list[bytes]], tuple[list[bytes], list[bytes]]]
"""Makes one row of each key from keys and values in which keys are repeated."""


@dataclass(frozen=True, slots=True, eq=False)
class WrittenFamily:
    """A column family of a store, as its rows are written.

    Args:
        schema: its schema.
        is_list: True if a key has a list of values.
        counter: for lists, the family with their lengths, if that is written with them.
        combine: makes one row of those with the same key; None if there must be no such rows.
    """

    schema: FamilySchema
    is_list: bool = False
    counter: FamilySchema | None = None
    combine: Combine | None = None


def write_bases(
    storage: Storage,
    partitions: Iterable[Iterable[pa.Table]],
    families: Mapping[str, WrittenFamily],
    version: int,
    written: Callable[[str], None],
    done: Callable[[], None],
) -> list[Chain]:
    """Writes the rows of a store as one base snapshot per partition.

    Args:
        storage: storage of the checkpoint location.
        partitions: placed rows of each partition in tables by ascending key group, none of which is in two tables.
        families: column families of the store, by name, in the order of sections.
        version: version of the state.
        written: called with the name of each file before it is written, relative to the location.
        done: called after each partition.

    Returns:
        The chain of each partition.

    Raises:
        RepeatedKeyError: two rows have the same key, and nothing combines them.
        KeyGroupTooLargeError: a key group does not fit into a block.
        StorageError: a file cannot be written.
    """
    chains: list[Chain] = []
    waiting: list[SegmentRef] = []
    for tables in partitions:
        segment = base_of(tables, families, version)
        entries: tuple[SegmentRef, ...] = ()
        if segment.rows:
            entries = (segment.ref(0, version),)
            waiting.append(entries[0])
        chains.append(Chain(str(uuid.uuid4()), segment.rows, entries))
        if sum(entry.size for entry in waiting) >= FILE_BYTES:
            _write(storage, waiting, written)
            waiting = []
        done()
    _write(storage, waiting, written)
    return chains


def base_of(tables: Iterable[pa.Table], families: Mapping[str, WrittenFamily], version: int) -> NewSegment:
    """The base segment of a partition.

    Args:
        tables: its placed rows, as for `write_bases`.
        families: column families of the store.
        version: version of the state.

    Raises:
        RepeatedKeyError, KeyGroupTooLargeError: as in `write_bases`.
    """
    numbered = list(families.values())
    return encode_base(version, (group for table in tables for group in _groups(table, numbered)))


def _write(storage: Storage, segments: Sequence[SegmentRef], written: Callable[[str], None]) -> None:
    file = merge_into_file(segments)
    if file is None:
        return
    name = in_location(file.path)
    written(name)
    storage.write_atomic(name, file.data)


def _groups(table: pa.Table, families: Sequence[WrittenFamily]) -> Iterator[tuple[int, list[NewSection]]]:
    """Key groups of a partition with their sections."""
    key_groups, numbers = (table.column(name).to_numpy() for name in ("key_group", "family"))
    keys, values = (table.column(name) for name in ("key", "value"))
    starts = np.flatnonzero(np.diff(np.stack((key_groups, numbers)), prepend=-1).any(axis=0))
    sections: list[NewSection] = []
    current = -1
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(table)][: starts.size], strict=True):
        if key_groups[start] != current:
            if sections:
                yield current, sections
            current, sections = int(key_groups[start]), []
        family = families[numbers[start]]
        parts = (column.slice(start, end - start).to_pylist() for column in (keys, values))
        sections += _sections(family, *parts)
    if sections:
        yield current, sections


def _sections(family: WrittenFamily, keys: list[bytes], values: list[bytes]) -> Iterator[NewSection]:
    name = family.schema.name
    if not family.is_list:
        if len(set(keys)) != len(keys):
            if family.combine is None:
                raise _repeated(family, keys)
            keys, values = family.combine(keys, values)
        yield NewSection("" if name == DEFAULT_FAMILY else name, keys, values)
        return
    lists: dict[bytes, list[bytes]] = {}
    for key, value in zip(keys, values, strict=True):
        lists.setdefault(key, []).append(value)
    yield NewSection(name, list(lists), [list_value(rows) for rows in lists.values()], lists=True)
    if family.counter is not None:
        yield NewSection(family.counter.name, list(lists), _lengths(family.counter.value, lists.values()))


def _lengths(kind: Struct, lists: Iterable[list[bytes]]) -> list[bytes]:
    """Rows with the lengths of lists (`ListStateMetricsImpl`)."""
    lengths = [len(rows) for rows in lists]
    rows = pa.StructArray.from_arrays([pa.array(lengths, kind.types[0].arrow)], fields=list(kind.arrow))
    encoded = encode_rows(kind, rows)
    data = encoded.buffer.data.tobytes()
    size = kind.fixed_bytes
    return [data[start : start + size] for start in encoded.starts.tolist()]


def _repeated(family: WrittenFamily, keys: Sequence[bytes]) -> RepeatedKeyError:
    (key, _), *_ = Counter(keys).most_common(1)
    row = rows_of(np.frombuffer(key, np.uint8), np.array([len(key)]), family.schema.name)
    return RepeatedKeyError(family.schema.name, str(decode_rows(family.schema.key, row).to_pylist()[0]))
