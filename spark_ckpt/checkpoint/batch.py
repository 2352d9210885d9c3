"""Master states of our `_metadata`: data of a batch outside operator state."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_ckpt import __version__
from spark_ckpt.checkpoint.chains import Chain, ChainEntry
from spark_ckpt.checkpoint.packing import Packing, Unpacking
from spark_ckpt.completed import OperatorSummary
from spark_ckpt.errors import CheckpointError
from spark_ckpt.features import Feature, check_features
from spark_ckpt.format.keys import PartitionFilter, StoreKey
from spark_ckpt.format.state_ids import STATE_ID_BYTES, decode_state_ids, encode_state_ids

SPARK_BATCH = "spark-batch"
"""Name of the master state that `SparkBatch` describes."""

SPARK_BATCH_VERSION = 1
"""Version of its format."""

SPARK_OFFSETS = "spark-offsets"
"""Name of the master state with the text of Spark's `offsets/<batch>`."""

SPARK_OFFSETS_VERSION = 1
"""Version of its format."""


@dataclass(frozen=True, slots=True, eq=False)
class SegmentTable:
    """Properties of a store's segments that state handles lack, in order of subtasks, then of chain entries.

    Args:
        counts: int64, number of segments per subtask.
        versions: int64, version of the state per segment.
        is_base: bool per segment.
        sizes: int64, bytes per segment.
        filters: for subtasks with filters, the filters of each segment.
        shared: int64 per segment: distance back to the segment whose handle it shares; 0 for its own handle. Empty if
            no handle is shared.
        covers: int64 per segment: number of versions whose changes a delta has. Empty if no deltas were merged.
        compressed: bool per segment: True if it has blocks with a compressed body. Empty if no segment has.
        ordered: bool per segment: True if its rows can be looked up in its file (`ChainEntry.is_ordered`).
            Empty without one.
    """

    counts: NDArray[np.int64]
    versions: NDArray[np.int64]
    is_base: NDArray[np.bool_]
    sizes: NDArray[np.int64]
    filters: Mapping[int, Sequence[tuple[PartitionFilter, ...]]] = field(default_factory=dict)
    shared: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    covers: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    compressed: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    ordered: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))

    @classmethod
    def of(cls, chains: Sequence[Chain]) -> SegmentTable:
        """Segment table of a store's chains."""
        entries: list[ChainEntry] = [entry for chain in chains for entry in chain.entries]
        filters = {
            partition: [entry.filters for entry in chain.entries]
            for partition, chain in enumerate(chains)
            if any(entry.filters for entry in chain.entries)
        }
        return cls(
            np.array([len(chain.entries) for chain in chains], np.int64),
            np.array([entry.version for entry in entries], np.int64),
            np.array([entry.is_base for entry in entries], np.bool_),
            np.array([entry.size for entry in entries], np.int64),
            filters,
            _sharing(entries) if filters else np.empty(0, np.int64),
            np.array([entry.covers for entry in entries], np.int64)
            if any(entry.covers > 1 for entry in entries)
            else np.empty(0, np.int64),
            _flags(entry.is_compressed for entry in entries),
            _flags(entry.is_ordered for entry in entries),
        )

    @property
    def each_covers(self) -> NDArray[np.int64]:
        """`covers` with a value for every segment."""
        return self.covers if self.covers.size else np.ones(self.sizes.size, np.int64)

    @property
    def each_compressed(self) -> NDArray[np.bool_]:
        """`compressed` with a value for every segment."""
        return self.compressed if self.compressed.size else np.zeros(self.sizes.size, np.bool_)

    @property
    def each_ordered(self) -> NDArray[np.bool_]:
        """`ordered` with a value for every segment."""
        return self.ordered if self.ordered.size else np.zeros(self.sizes.size, np.bool_)

    def with_handles(self, chains: Sequence[Chain]) -> Iterator[tuple[ChainEntry, ...]]:
        """For each chain of this table, the segments with their own handle."""
        if not self.shared.size:
            yield from (chain.entries for chain in chains)
            return
        ends = np.cumsum(self.counts).tolist()
        for chain, end in zip(chains, ends, strict=True):
            shared = self.shared[end - len(chain.entries) : end].tolist()
            yield tuple(entry for entry, back in zip(chain.entries, shared, strict=True) if not back)

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
        if self.shared.any():
            fields["shared"] = packing.packed(self.shared.astype("<i4").tobytes())
        if self.covers.size:
            fields["merged"] = packing.packed((self.covers - 1).astype("<i4").tobytes())
        if self.compressed.size:
            fields["compressed"] = packing.packed(self.compressed.astype("<i4").tobytes())
        if self.ordered.size:
            fields["ordered"] = packing.packed(np.packbits(self.ordered).tobytes())
        return fields

    @classmethod
    def decode(
        cls,
        text: str,
        filters: str | None,
        shared: str | None,
        merged: str | None,
        compressed: str | None,
        ordered: str | None,
        subtasks: int,
        version: int,
        unpacking: Unpacking,
    ) -> SegmentTable:
        """Decode a table.

        Raises:
            ValueError: malformed, or for another number of subtasks.
        """
        stream = unpacking.stream(text)
        counts = np.frombuffer(stream.read(4 * subtasks), "<i4").astype(np.int64)
        if (counts < 0).any():
            raise ValueError("the segment table has a negative count")
        total = int(counts.sum())
        ages = np.frombuffer(stream.read(4 * total), "<i4").astype(np.int64)
        sizes = np.frombuffer(stream.read(8 * total), "<i8").astype(np.int64)
        stream.finish()
        passed, back = _decode_filters(filters, unpacking), _decode_column(shared, total, unpacking)
        covers = _decode_column(merged, total, unpacking) + 1
        is_compressed = _decode_column(compressed, total, unpacking)
        if any(partition >= subtasks or len(per) != counts[partition] for partition, per in passed.items()):
            raise ValueError("the filters do not match the segments")
        if back.size and ((back < 0).any() or (back > np.arange(total)).any()):
            raise ValueError("the shared handles do not match the segments")
        if (covers < 1).any():
            raise ValueError("a delta has the changes of no version")
        if not np.isin(is_compressed, (0, 1)).all():
            raise ValueError("a segment is neither compressed nor not")
        return cls(
            counts,
            version - ages // 2,
            (ages % 2).astype(np.bool_),
            sizes,
            passed,
            back,
            covers,
            is_compressed.astype(np.bool_),
            _decode_bits(ordered, total, unpacking),
        )


@dataclass(frozen=True, slots=True, eq=False)
class StoreState:
    """State of one store of one operator.

    Args:
        operator_id: Spark's number of the operator.
        store: name of the store.
        name: Spark's short name of the operator.
        state_format_version: version of the operator's state format; None if it has none.
        rows: rows per subtask.
        state_ids: state id per subtask.
        segments: properties of the segments that their handles lack.
    """

    operator_id: int
    store: str
    name: str
    state_format_version: int | None
    rows: tuple[int, ...]
    state_ids: tuple[str, ...]
    segments: SegmentTable

    @property
    def key(self) -> StoreKey:
        """Key of the store."""
        return StoreKey(self.operator_id, self.store)

    @property
    def parallelism(self) -> int:
        """Number of subtasks."""
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class SparkBatch:
    """Description of a micro-batch and of its state.

    Args:
        batch_id: Spark's micro-batch.
        version: version of the state that the batch leaves.
        query_id: id of the query; operator ids in `_metadata` are derived from it.
        run_id: id of this run of the query.
        query_name: name of the query, or None.
        spark_version: version of Spark.
        checkpoint_format: format of Spark's state stores, 1 or 2; with 2, Spark's commit log contains the state ids.
        max_parallelism: number of key groups.
        key_group_factors: numbering of the key groups.
        sources: names of the sources.
        stores: stores of all operators.
        log: store of completed checkpoints with its record; None for a store without a log.
        release: release of spark-ckpt that wrote it; None if it was not read from a `_metadata`, or if that is of a
            release without this field.
    """

    batch_id: int
    version: int
    query_id: str
    run_id: str
    spark_version: str
    checkpoint_format: int
    max_parallelism: int
    key_group_factors: tuple[int, ...]
    query_name: str | None = None
    sources: tuple[str, ...] = ()
    stores: tuple[StoreState, ...] = field(default=())
    log: str | None = None
    release: str | None = None

    def summaries(self) -> tuple[OperatorSummary, ...]:
        """Summaries of its stores for a listing."""
        return tuple(
            OperatorSummary(
                store.operator_id,
                store.name,
                store.store,
                store.parallelism,
                sum(store.rows),
                int(store.segments.sizes.sum()),
            )
            for store in self.stores
        )

    def encode(self) -> bytes:
        """Payload of the master state: JSON, with this release as the one that wrote it.

        Raises:
            MetadataTooLargeError: no reader would accept it.
        """
        packing = Packing()
        fields = {
            "batch_id": self.batch_id,
            "version": self.version,
            "query_id": self.query_id,
            "run_id": self.run_id,
            "query_name": self.query_name,
            "spark_version": self.spark_version,
            "release": __version__,
            "checkpoint_format": self.checkpoint_format,
            "max_parallelism": self.max_parallelism,
            "key_group_factors": self.key_group_factors,
            "sources": self.sources,
            "stores": [_encode_store(store, self.version, packing) for store in self.stores],
        }
        if features := self.features:
            fields["features"] = list(features)
        if self.log is not None:
            fields["log"] = self.log
        return json.dumps(fields, separators=(",", ":")).encode()

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that a reader needs, sorted (`spark_ckpt.features`)."""
        tables = [store.segments for store in self.stores]
        needed = {
            *(Feature.PARTITION_FILTERS.value for table in tables if table.filters),
            *(Feature.SHARED_HANDLES.value for table in tables if table.shared.any()),
            *(Feature.MERGED_DELTAS.value for table in tables if table.covers.size),
            *(Feature.COMPRESSED_BLOCKS.value for table in tables if table.compressed.size),
        }
        return tuple(sorted(needed))

    @classmethod
    def decode(cls, payload: bytes) -> SparkBatch:
        """Decode a payload.

        Raises:
            UnsupportedFormatError: a later release wrote it with features that this release would misread.
            CheckpointError: malformed payload.
        """
        try:
            fields = json.loads(payload)
            check_features(f"the master state {SPARK_BATCH}", fields.get("features"))
            version = int(fields["version"])
            unpacking = Unpacking()
            return cls(
                batch_id=int(fields["batch_id"]),
                version=version,
                query_id=str(fields["query_id"]),
                run_id=str(fields["run_id"]),
                query_name=fields.get("query_name"),
                spark_version=str(fields["spark_version"]),
                checkpoint_format=int(fields["checkpoint_format"]),
                max_parallelism=int(fields["max_parallelism"]),
                key_group_factors=tuple(int(factor) for factor in fields["key_group_factors"]),
                sources=tuple(str(name) for name in fields["sources"]),
                stores=tuple(_decode_store(store, version, unpacking) for store in fields["stores"]),
                log=None if fields.get("log") is None else str(fields["log"]),
                release=None if fields.get("release") is None else str(fields["release"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError, binascii.Error) as e:
            raise CheckpointError(f"malformed master state {SPARK_BATCH}: {e!r}") from e


def _sharing(entries: Sequence[ChainEntry]) -> NDArray[np.int64]:
    """For each segment, the distance back to the first segment with the same blocks, which has the handle.

    Segments with the same blocks have the same offsets array object: a rescale gives one array to all subtasks of these
    blocks, and so does decoding a shared handle.
    """
    first: dict[int, int] = {}
    return np.array([i - first.setdefault(id(entry.offsets), i) for i, entry in enumerate(entries)], np.int64)


def _flags(flags: Iterable[bool]) -> NDArray[np.bool_]:
    column = np.fromiter(flags, np.bool_)
    return column if column.any() else np.empty(0, np.bool_)


def _decode_bits(text: str | None, segments: int, unpacking: Unpacking) -> NDArray[np.bool_]:
    if text is None:
        return np.empty(0, np.bool_)
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


def _encode_store(store: StoreState, version: int, packing: Packing) -> Mapping[str, Any]:
    return {
        "operator_id": store.operator_id,
        "store": store.store,
        "name": store.name,
        "parallelism": store.parallelism,
        "state_format_version": store.state_format_version,
        "rows": store.rows,
        "ckpt_ids": base64.b64encode(encode_state_ids(store.state_ids)).decode(),
        **store.segments.encode(version, packing),
    }


def _decode_store(fields: Mapping[str, Any], version: int, unpacking: Unpacking) -> StoreState:
    rows = tuple(int(n) for n in fields["rows"])
    ids = base64.b64decode(fields["ckpt_ids"], validate=True)
    if len(ids) != STATE_ID_BYTES * len(rows) or len(rows) != fields["parallelism"]:
        raise ValueError("the numbers of rows, ckpt ids and subtasks differ")
    return StoreState(
        operator_id=int(fields["operator_id"]),
        store=str(fields["store"]),
        name=str(fields["name"]),
        state_format_version=fields["state_format_version"],
        rows=rows,
        state_ids=decode_state_ids(ids),
        segments=SegmentTable.decode(
            fields["segments"],
            fields.get("filters"),
            fields.get("shared"),
            fields.get("merged"),
            fields.get("compressed"),
            fields.get("ordered"),
            len(rows),
            version,
            unpacking,
        ),
    )


STANDALONE_PREFIX = "standalone:"
"""Job prefix of stores without a query."""


@dataclass(frozen=True, slots=True)
class Source:
    """Source of a query, with the end offset of the batch as Spark's JSON text; None before the first offset."""

    name: str
    offset: str | None = None
