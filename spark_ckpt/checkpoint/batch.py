"""Master states of our `_metadata`: data of a batch outside operator state."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_ckpt import __version__
from spark_ckpt.checkpoint.packing import Packing, Unpacking
from spark_ckpt.checkpoint.segment_table import SegmentTable
from spark_ckpt.completed import OperatorSummary
from spark_ckpt.errors import CheckpointError
from spark_ckpt.features import check_features
from spark_ckpt.format.keys import StoreKey
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
    """Description of a micro-batch and of its state: the master states `spark-batch` and `spark-query`.

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
        meaning: payload of the master state `spark-query`; None if the meaning of the state is not known.
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
    meaning: bytes | None = None

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
        return tuple(sorted({feature.value for store in self.stores for feature in store.segments.features}))

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
        segments=SegmentTable.decode(fields, len(rows), version, unpacking),
    )


STANDALONE_PREFIX = "standalone:"
"""Job prefix of stores without a query."""


@dataclass(frozen=True, slots=True)
class Source:
    """Source of a query.

    Args:
        name: name of the source.
        offset: end offset of the batch, Spark's JSON text; None before the first offset.
    """

    name: str
    offset: str | None = None


def state_ids(batch: SparkBatch) -> Mapping[int, list[list[str]]]:
    """The state ids of a checkpoint in the form of Spark's commit log."""
    by_operator: dict[int, list[tuple[str, ...]]] = {}
    for store in batch.stores:
        by_operator.setdefault(store.operator_id, []).append(store.state_ids)
    return {operator: [list(ids) for ids in zip(*stores, strict=True)] for operator, stores in by_operator.items()}
