"""What `inspect --streams` tells of our own segments: the blocks of their key groups."""

from __future__ import annotations

from spark_ckpt.cli.stream_report import StateReport, StreamReport
from spark_ckpt.coordinator.compose import NO_DATA
from spark_ckpt.errors import SegmentError
from spark_ckpt.metadata import KeyGroupRangeOffsets
from spark_ckpt.metadata.streams import Datum, StateStream
from spark_ckpt.segments import HEADER_BYTES, decode_block

_BODY_LENGTH = slice(24, 28)


def read_segment(offsets: KeyGroupRangeOffsets, stream: StateStream, report: StreamReport, samples: int) -> None:
    """Counts the entries of a segment: a state for each column family. Its size is that of its blocks.

    Raises:
        SegmentError: a block is damaged, or another one than its offset says.
        StorageError: the stream cannot be read.
    """
    report.path = stream.path
    states: dict[str, StateReport] = {}
    for key_group, offset in zip(offsets.key_group_range, offsets.offsets.tolist(), strict=True):
        if offset == NO_DATA:
            continue
        content = _read_block(stream, offset)
        report.size += len(content)
        block = decode_block(content, 0, stream.path, offset)
        if block.key_group != key_group:
            raise SegmentError(stream.path, offset + 8, f"key group {block.key_group} where {key_group} should be")
        report.form = f"segment, {block.kind.name.lower()} of version {block.version}"
        for section in block.sections:
            name = section.column_family or "default"
            if name not in states:
                states[name] = StateReport(name, "LIST" if section.lists else "VALUE")
                report.states.append(states[name])
            for key, value in section.entries:
                sample = {"key": Datum(key, known=False)}
                if value is None:
                    states[name].removed += 1
                else:
                    raw = b"".join(value) if isinstance(value, tuple) else value
                    sample["value"] = Datum(raw, known=False)
                states[name].add(sample, samples, key_group)


def _read_block(stream: StateStream, offset: int) -> bytes:
    """The bytes of a block, or those that there are of it."""
    data = stream.input(offset)
    data.mark()
    header = data.raw(min(HEADER_BYTES, data.remaining), "block")
    length = int.from_bytes(header[_BODY_LENGTH], "big", signed=True)
    data.raw(max(0, min(length, data.remaining)), "block")
    return data.since(offset)
