"""Segments as written by executors: a description of the layout that does not depend on the package's own."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import google_crc32c
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_ckpt.format.keys import PartitionFilter
from spark_ckpt.format.segment_ref import Blocks, SegmentRef
from spark_ckpt.format.segments import FORMAT, MAGIC, Block, Section, SegmentKind
from spark_ckpt.metadata import modified_utf8

_HEADER = struct.Struct(">iBBBBiqii")
_CRC = struct.Struct(">I")
_I32 = struct.Struct(">i")

CODECS = {1: "lz4_raw", 2: "zstd"}
"""Arrow's names of the codecs of blocks."""

_LISTS, _KEYS_OF_ONE_LENGTH, _VALUES_OF_ONE_LENGTH, _APPENDS = 1, 2, 4, 8
_REMOVED = -1


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A segment in memory, with its index.

    Args:
        data: the blocks.
        key_groups: uint32, ascending.
        offsets: int64, start of each key group's block in `data`.
        rows: number of entries.
    """

    data: bytes
    key_groups: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    offsets: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    rows: int = 0


def encode_segment(kind: SegmentKind, version: int, groups: Mapping[int, Sequence[Section]]) -> Segment:
    """A segment of the given entries.

    Args:
        kind: base or delta.
        version: state version.
        groups: sections by key group; a key group without sections is left out.
    """
    data = bytearray()
    key_groups, offsets, rows = [], [], 0
    for key_group in sorted(groups):
        sections = tuple(groups[key_group])
        if sections:
            key_groups.append(key_group)
            offsets.append(len(data))
            data += encode_block(Block(kind, key_group, version, sections))
            rows += sum(len(section.entries) for section in sections)
    return Segment(bytes(data), np.array(key_groups, np.uint32), np.array(offsets, np.int64), rows)


def segment_ref(
    first_version: int,
    version: int,
    key_groups: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    size: int,
    path: str | None = None,
    file_size: int = 0,
    data: bytes = b"",
    filters: tuple[PartitionFilter, ...] = (),
    flags: int = 0,
) -> SegmentRef:
    """Reference to a segment with these blocks."""
    blocks = Blocks(key_groups, offsets, data)
    return SegmentRef(first_version, version, blocks, size, path, file_size, filters, flags)


def placed(segment: SegmentRef, path: str, start: int = 0, file_size: int | None = None) -> SegmentRef:
    """A segment in a file, which has no other if the size of the file is not given."""
    copy = segment.copied()
    copy.place_in(path, segment.size if file_size is None else file_size, start)
    return copy


def encode_block(block: Block, codec: int = 0, chunk_bits: int = 0) -> bytes:
    """Bytes of a block, with the codec of this number, and in chunks of 2 to the power `chunk_bits` bytes unless 0."""
    body = b"".join(_encode_section(section) for section in block.sections)
    if codec and chunk_bits:
        body = _in_chunks(body, codec, 1 << chunk_bits)
    elif codec:
        body = _I32.pack(len(body)) + pa.compress(body, codec=CODECS[codec], asbytes=True)
    start = _HEADER.pack(
        MAGIC, FORMAT, block.kind, codec, chunk_bits, block.key_group, block.version, len(block.sections), len(body)
    )
    return start + _CRC.pack(google_crc32c.value(start + body)) + body


def _in_chunks(body: bytes, codec: int, size: int) -> bytes:
    stored = []
    for start in range(0, len(body), size):
        plain = body[start : start + size]
        packed = pa.compress(plain, codec=CODECS[codec], asbytes=True)
        stored.append(packed if len(packed) < len(plain) else plain)
    return b"".join((_I32.pack(len(body)), *(_I32.pack(len(chunk)) for chunk in stored), *stored))


def _encode_section(section: Section) -> bytes:
    keys = [key for key, _ in section.entries]
    values = [_encode_value(value, section.appends) for _, value in section.entries]
    key_lengths = [len(key) for key in keys]
    value_lengths = [_REMOVED if value is None else len(value) for value in values]
    flags = (_LISTS if section.lists else 0) | (_APPENDS if section.appends else 0)
    flags |= _KEYS_OF_ONE_LENGTH if len(set(key_lengths)) == 1 else 0
    flags |= _VALUES_OF_ONE_LENGTH if len(set(value_lengths)) == 1 else 0
    name = modified_utf8.encode(section.column_family)
    return b"".join(
        (
            struct.pack(">H", len(name)),
            name,
            bytes((flags,)),
            _I32.pack(len(keys)),
            _encode_lengths(key_lengths, bool(flags & _KEYS_OF_ONE_LENGTH)),
            _encode_lengths(value_lengths, bool(flags & _VALUES_OF_ONE_LENGTH)),
            *keys,
            *(value for value in values if value is not None),
        )
    )


def _encode_value(value: bytes | tuple[bytes, ...] | None, appends: bool) -> bytes | None:
    if isinstance(value, tuple):
        rows = b"".join(_I32.pack(len(row)) + row for row in value)
        return rows if appends else _I32.pack(len(value)) + rows
    return value


def _encode_lengths(lengths: list[int], one: bool) -> bytes:
    return np.array(lengths[:1] if one else lengths, ">i4").tobytes()
