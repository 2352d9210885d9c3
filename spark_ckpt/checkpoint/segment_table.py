"""Columns of `_metadata` with the properties of segments that Flink's state handles lack."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.checkpoint.packing import Packing, Unpacking
from spark_ckpt.features import Feature
from spark_ckpt.format.keys import PartitionFilter
from spark_ckpt.format.segment_flags import FLAGS, SegmentFlag
from spark_ckpt.format.segment_ref import SegmentRef

_FILTERS = attrgetter("filters")


@dataclass(frozen=True, slots=True, eq=False)
class SegmentTable:
    """Properties of a store's segments that state handles lack, in order of subtasks, then of segments in a chain.

    Args:
        counts: int64, number of segments per subtask.
        first_versions: int64, first version whose changes a segment has; 0 for a base.
        versions: int64, version of the state per segment.
        sizes: int64, bytes per segment.
        flags: int64, bits of `spark_ckpt.format.segment_flags` per segment.
        filters: for subtasks with filters, the filters of each segment.
        shared: int64 per segment: distance back to the segment whose handle it shares; 0 for its own handle. Empty if
            no handle is shared.
    """

    counts: NDArray[np.int64]
    first_versions: NDArray[np.int64]
    versions: NDArray[np.int64]
    sizes: NDArray[np.int64]
    flags: NDArray[np.int64]
    filters: Mapping[int, Sequence[tuple[PartitionFilter, ...]]] = field(default_factory=dict)
    shared: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    @classmethod
    def of(cls, chains: Sequence[Chain]) -> SegmentTable:
        """Segment table of a store's chains."""
        segments: list[SegmentRef] = [segment for chain in chains for segment in chain.entries]
        filters = {}
        if any(map(_FILTERS, segments)):
            filters = {
                partition: [segment.filters for segment in chain.entries]
                for partition, chain in enumerate(chains)
                if any(map(_FILTERS, chain.entries))
            }
        return cls(
            np.fromiter((len(chain.entries) for chain in chains), np.int64, len(chains)),
            _column(segments, "first_version"),
            _column(segments, "version"),
            _column(segments, "size"),
            _column(segments, "flags"),
            filters,
            _sharing(segments) if filters else np.empty(0, np.int64),
        )

    @property
    def is_base(self) -> NDArray[np.bool_]:
        """True for each base."""
        return np.equal(self.first_versions, 0)

    @property
    def features(self) -> set[Feature]:
        """Features that a reader of these segments needs."""
        needed = {flag.feature for flag in FLAGS if flag.feature is not None and (self.flags & flag.bit).any()}
        if self.filters:
            needed.add(Feature.PARTITION_FILTERS)
        if self.shared.any():
            needed.add(Feature.SHARED_HANDLES)
        if self._merged.any():
            needed.add(Feature.MERGED_DELTAS)
        return needed

    @property
    def _merged(self) -> NDArray[np.int64]:
        """Per segment the number of versions whose changes it has, besides its own; 0 for a base."""
        return np.where(self.is_base, 0, self.versions - self.first_versions)

    def with_handles(self, chains: Sequence[Chain]) -> Iterator[tuple[SegmentRef, ...]]:
        """For each chain of this table, the segments with their own handle."""
        if not self.shared.size:
            yield from (chain.entries for chain in chains)
            return
        ends = np.cumsum(self.counts).tolist()
        for chain, end in zip(chains, ends, strict=True):
            shared = self.shared[end - len(chain.entries) : end].tolist()
            yield tuple(segment for segment, back in zip(chain.entries, shared, strict=True) if not back)

    def encode(self, version: int, packing: Packing) -> dict[str, str]:
        """Encoded columns by the name of their field; those without content are absent.

        Args:
            version: version of the checkpoint.
            packing: compression of the texts of its `_metadata`.

        Raises:
            MetadataTooLargeError: no reader would accept the texts.
        """
        # Versions are stored as distances back from the checkpoint's.
        ages = (version - self.versions) * 2 + self.is_base
        columns = (self.counts.astype("<i4"), ages.astype("<i4"), self.sizes.astype("<i8"))
        fields = {"segments": packing.packed(b"".join(column.tobytes() for column in columns))}
        if self.filters:
            fields["filters"] = packing.packed(json.dumps(self.filters, separators=(",", ":")).encode())
        for name, column in (("shared", self.shared), ("merged", self._merged)):
            if column.any():
                fields[name] = packing.packed(column.astype("<i4").tobytes())
        for flag in FLAGS:
            if (is_set := self.flags & flag.bit != 0).any():
                bits = is_set.astype("<i4") if flag.is_wide else np.packbits(is_set)
                fields[flag.name] = packing.packed(bits.tobytes())
        return fields

    @classmethod
    def decode(cls, fields: Mapping[str, Any], subtasks: int, version: int, unpacking: Unpacking) -> SegmentTable:
        """Decode a table.

        Args:
            fields: encoded columns by the name of their field.
            subtasks: number of subtasks.
            version: version of the checkpoint.
            unpacking: decompression of the texts of its `_metadata`.

        Raises:
            KeyError, ValueError: malformed, or for another number of subtasks.
        """
        stream = unpacking.stream(fields["segments"])
        counts = np.frombuffer(stream.read(4 * subtasks), "<i4").astype(np.int64)
        if (counts < 0).any():
            raise ValueError("the segment table has a negative count")
        total = int(counts.sum())
        ages = np.frombuffer(stream.read(4 * total), "<i4").astype(np.int64)
        sizes = np.frombuffer(stream.read(8 * total), "<i8").astype(np.int64)
        stream.finish()
        filters = _decode_filters(fields.get("filters"), unpacking)
        if any(partition >= subtasks or len(per) != counts[partition] for partition, per in filters.items()):
            raise ValueError("the filters do not match the segments")
        shared = _decode_column(fields.get("shared"), total, unpacking)
        if shared.size and ((shared < 0).any() or (shared > np.arange(total)).any()):
            raise ValueError("the shared handles do not match the segments")
        versions, is_base = version - ages // 2, (ages % 2).astype(np.bool_)
        first_versions = _first_versions(_decode_column(fields.get("merged"), total, unpacking), versions, is_base)
        flags = np.zeros(total, np.int64)
        for flag in FLAGS:
            if (text := fields.get(flag.name)) is not None:
                flags |= np.where(_decode_flag(flag, text, total, unpacking), flag.bit, 0)
        return cls(counts, first_versions, versions, sizes, flags, filters, shared)


def _column(segments: Sequence[SegmentRef], field: str) -> NDArray[np.int64]:
    return np.fromiter(map(attrgetter(field), segments), np.int64, len(segments))


def _sharing(segments: Sequence[SegmentRef]) -> NDArray[np.int64]:
    """For each segment, the distance back to the first segment with the same blocks, which has the handle.

    They have the same `Blocks` object: a rescale gives one to all subtasks of these blocks, and so does decoding a
    shared handle.
    """
    first: dict[int, int] = {}
    return np.array([i - first.setdefault(id(segment.blocks), i) for i, segment in enumerate(segments)], np.int64)


def _first_versions(
    merged: NDArray[np.int64], versions: NDArray[np.int64], is_base: NDArray[np.bool_]
) -> NDArray[np.int64]:
    if (merged < 0).any():
        raise ValueError("a delta has the changes of no version")
    first_versions = versions - merged if merged.size else versions
    if (first_versions[~is_base] < 1).any():
        raise ValueError("a delta has changes of versions before the first")
    return np.where(is_base, 0, first_versions)


def _decode_flag(flag: SegmentFlag, text: str, segments: int, unpacking: Unpacking) -> NDArray[np.bool_]:
    if flag.is_wide:
        column = _decode_column(text, segments, unpacking)
        if not np.isin(column, (0, 1)).all():
            raise ValueError(f"a segment is neither {flag.name} nor not")
        return column.astype(np.bool_)
    stream = unpacking.stream(text)
    bits = np.frombuffer(stream.read((segments + 7) // 8), np.uint8)
    stream.finish()
    return np.unpackbits(bits, count=segments).astype(np.bool_)


def _decode_column(text: str | None, segments: int, unpacking: Unpacking) -> NDArray[np.int64]:
    if text is None:
        return np.empty(0, np.int64)
    stream = unpacking.stream(text)
    column = np.frombuffer(stream.read(4 * segments), "<i4").astype(np.int64)
    stream.finish()
    return column


def _decode_filters(text: str | None, unpacking: Unpacking) -> dict[int, list[tuple[PartitionFilter, ...]]]:
    if text is None:
        return {}
    return {
        int(partition): [
            tuple(PartitionFilter(int(modulo), tuple(map(int, partitions))) for modulo, partitions in filters)
            for filters in segments
        ]
        for partition, segments in json.loads(unpacking.whole(text)).items()
    }
