"""A stopped query whose rows are where Spark's hash puts them, made without Spark."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from spark_ckpt.checkpoint.batch import Source, SparkBatch, state_ids
from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.format.key_groups import factors, key_group_of
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.format.segments import Section, SegmentKind
from spark_ckpt.spark_files.entries import CommitEntry, OffsetEntry
from spark_ckpt.spark_files.logs import SparkLog
from spark_ckpt.spark_files.types import struct_of
from spark_ckpt.state.partition_hash import PartitionKey
from spark_ckpt.state.unsafe_row_encoder import rows_of
from spark_ckpt.storage import LocalStorage
from tests.support.locations import LocationBuilder, store_state
from tests.support.state_location import Schema, row, schema, schema_v2, schema_v3
from tests.support.stopped_query import ENDED, QUERY_ID

PARTITIONS, KEY_GROUPS = 4, 64
FACTORS = tuple(factors(PARTITIONS, KEY_GROUPS))
USER = schema(user="string")
"""A grouping key of one column."""

OFFSETS = OffsetEntry(1, {"batchWatermarkMs": 0, "conf": {"spark.sql.shuffle.partitions": "4"}}, {"0": "5"})


@dataclass(frozen=True)
class Entry:
    """A row of a column family.

    Args:
        grouping: its grouping key, encoded.
        key: its key, encoded.
        value: its value, encoded; of a list, the rows.
    """

    grouping: bytes
    key: bytes
    value: bytes | tuple[bytes, ...]


Rows: TypeAlias = Mapping[str, Sequence[Entry]]
"""Rows by column family."""


def place_of(kind: Schema, grouping: bytes) -> tuple[int, int]:
    """Partition and key group of a grouping key."""
    of = struct_of(kind)
    rows = rows_of(np.frombuffer(grouping, np.uint8), np.array([len(grouping)], np.int64), "")
    (code,) = PartitionKey(of, len(of.types)).hashes(rows).tolist()
    return code % PARTITIONS, key_group_of(code, FACTORS)


@dataclass
class HashedState:
    """A query that has committed batch 3, whose state has one segment per partition and batch.

    Args:
        directory: the checkpoint location.
        families: key and value schema of each column family; "default" alone for most operators.
        grouping: schema of the grouping key.
        name: Spark's short name of the operator.
        store: name of the store.
        variables: kinds of the state variables of a `transformWithState`.
        ttl: state variables with a time to live.
        checkpoint_format: with 2, Spark's commits have state ids.
    """

    directory: Path
    families: Mapping[str, tuple[Schema, Schema]]
    grouping: Schema = field(default_factory=lambda: USER)
    name: str = "stateStoreSave"
    store: str = "default"
    variables: Mapping[str, str] | None = None
    ttl: frozenset[str] = frozenset()
    checkpoint_format: int = 1
    batch_id: int = -1
    records: list[CheckpointRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.storage = LocalStorage(self.directory)
        self.path = str(self.directory)
        self.log = SparkLog(self.storage)
        self.chains = [Chain(str(uuid.uuid4()), 0) for _ in range(PARTITIONS)]
        self._keys: list[set[tuple[str, bytes]]] = [set() for _ in range(PARTITIONS)]
        self._builder = LocationBuilder(self.storage, ENDED).query(QUERY_ID)
        self._write_schema()

    def batch(self, rows: Rows, removed: Rows | None = None, *, inline: bool = False) -> None:
        """Commits a batch that sets these rows and removes these keys."""
        self.batch_id += 1
        version = self.batch_id + 1
        for partition, groups in enumerate(self._sections(rows, removed or {})):
            delta = self._builder.segment(SegmentKind.DELTA, version, groups, inline=inline)
            chain = self.chains[partition]
            self.chains[partition] = chain.next(str(uuid.uuid4()), len(self._keys[partition]), delta)
        key = StoreKey(0, self.store)
        batch = SparkBatch(
            self.batch_id,
            version,
            QUERY_ID,
            "run",
            "4.2.0",
            self.checkpoint_format,
            KEY_GROUPS,
            FACTORS,
            sources=("0",),
            stores=(store_state(key, self.name, self.chains, 2),),
        )
        commit = CommitEntry(1, {"nextBatchWatermarkMs": 0})
        if self.checkpoint_format == 2:
            commit = CommitEntry(2, commit.metadata).with_state_ids(state_ids(batch))
        self.log.add_offsets(self.batch_id, OFFSETS)
        self.records.append(self._builder.complete(batch, {key: self.chains}, OFFSETS.encode(), [Source("0", "5")]))
        self.log.add_commit(self.batch_id, commit)

    def compact(self, kind: SegmentKind, rows: Rows, removed: Rows | None = None) -> None:
        """Replaces all chains by a base of these rows, or by a delta that has the changes of all batches merged."""
        for partition, groups in enumerate(self._sections(rows, removed or {})):
            segment = self._builder.segment(kind, self.batch_id + 1, groups, inline=False)
            if segment is not None and kind is SegmentKind.DELTA:
                segment.first_version = 1
            chain = self.chains[partition]
            self.chains[partition] = Chain(chain.state_id, chain.rows, () if segment is None else (segment,))

    def _sections(self, rows: Rows, removed: Rows) -> list[dict[int, list[Section]]]:
        """Sections by partition and key group, which ascends."""
        sections: list[dict[int, list[Section]]] = [{} for _ in range(PARTITIONS)]
        for of, is_removed in ((rows, False), (removed, True)):
            for family, entries in of.items():
                placed: dict[tuple[int, int], list[Entry]] = {}
                for entry in entries:
                    placed.setdefault(place_of(self.grouping, entry.grouping), []).append(entry)
                for (partition, group), some in placed.items():
                    pairs = tuple((each.key, None if is_removed else each.value) for each in some)
                    lists = isinstance(some[0].value, tuple)
                    name = "" if family == "default" else family
                    sections[partition].setdefault(group, []).append(Section(pairs, name, lists))
                    keys = {(family, each.key) for each in some}
                    self._keys[partition] = self._keys[partition] - keys if is_removed else self._keys[partition] | keys
        return [dict(sorted(groups.items())) for groups in sections]

    def files(self) -> dict[str, bytes]:
        """Content of every file of the location, by name."""
        found = (path for path in self.directory.rglob("*") if path.is_file())
        return {str(path.relative_to(self.directory)): path.read_bytes() for path in found}

    def _write_schema(self) -> None:
        if self.variables is None:
            directory = "state/0/0" if self.store == "default" else f"state/0/0/{self.store}"
            is_single = list(self.families) == ["default"]
            content = schema_v2(*self.families["default"]) if is_single else schema_v3(self.families)
            self.storage.write_atomic(f"{directory}/_metadata/schema", content)
            self._builder.operator(0, self.name, (self.store,))
            return
        name = f"_stateSchema/{self.store}/0_{uuid.uuid4()}"
        self.storage.write_atomic(f"state/0/{name}", schema_v3(self.families))
        infos = [
            {"stateName": variable, "stateVariableType": kind, "ttlEnabled": variable in self.ttl}
            for variable, kind in self.variables.items()
        ]
        path = f"file:/elsewhere/state/0/{name}"
        stores = [{"storeName": self.store, "numPartitions": PARTITIONS, "stateSchemaFilePaths": [path]}]
        metadata = {
            "operatorInfo": {"operatorId": 0, "operatorName": self.name},
            "stateStoreInfo": stores,
            "operatorPropertiesJson": json.dumps(
                {"timeMode": "NoTime", "outputMode": "Update", "stateVariables": infos}
            ),
        }
        self._builder.operator_metadata(0, metadata, version=2)


COUNT = schema(count="long", name="string")
"""Values of an aggregation."""


def user(name: str | None) -> bytes:
    """A grouping key."""
    return row(USER, name)


def counted(name: str | None, count: int | None, title: str | None = None) -> Entry:
    """A row of an aggregation by user."""
    return Entry(user(name), user(name), row(COUNT, count, title))


def counts(directory: Path, users: int = 40, **arguments: Any) -> HashedState:
    """A query that counts by user, in four batches: users 0 to `users`, of which two are removed again."""
    query = HashedState(directory, {"default": (USER, COUNT)}, **arguments)
    each = max(1, users // 3)
    for start in range(0, 3 * each, each):
        query.batch({"default": [counted(f"u{i}", i, "a title") for i in range(start, start + each)]})
    query.batch({"default": [counted("u0", 100)]}, {"default": [counted("u1", 0), counted("u2", 0)]})
    return query
