"""Checkpoint locations with arbitrary state rows, built without Spark."""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spark_ckpt.checkpoint.batch import Source, SparkBatch
from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.format.key_groups import factors, owned_ranges
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.format.segments import Section, SegmentKind
from spark_ckpt.storage import LocalStorage
from tests.support import unsafe_writer
from tests.support.locations import OFFSETS, LocationBuilder, store_state

KEY_GROUPS = 16

Schema = dict[str, Any]


def schema(**types: Any) -> Schema:
    """A struct type in Spark's JSON."""
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in types.items()]
    return {"type": "struct", "fields": fields}


def key_group(key: bytes) -> int:
    """An arbitrary function of the key."""
    return zlib.crc32(key) % KEY_GROUPS


class StateLocation:
    """A checkpoint location of one operator with one store, and one checkpoint per `commit`.

    Args:
        directory: the location.
        families: key and value schema of each column family; "default" alone for most operators.
        name: Spark's short name of the operator.
        store: name of the store.
        variables: kinds of the state variables of a `transformWithState`.
        state_format: version of the operator's state format.
        offsets: Spark's offset log.

    Attributes:
        sources: sources of the query, with their offsets in the next checkpoint.
    """

    def __init__(
        self,
        directory: Path,
        families: Mapping[str, tuple[Schema, Schema]],
        *,
        name: str = "stateStoreSave",
        store: str = "default",
        variables: Mapping[str, str] | None = None,
        state_format: int | None = 2,
        offsets: bytes = OFFSETS,
    ) -> None:
        self.path = str(directory)
        self.storage = LocalStorage(directory)
        self.families = families
        self.name = name
        self.store = store
        self.state_format = state_format
        self.offsets = offsets
        self.sources: Sequence[Source] = ()
        self.version = 0
        self.chains = [Chain(str(uuid.UUID(int=partition)), 0) for partition in range(2)]
        self._builder = LocationBuilder(self.storage).claim()
        self._write_schema(variables)

    def commit(
        self, *sections: Section, base: Sequence[Section] = (), rows: int = 0, inline: bool | None = None
    ) -> int:
        """Completes a checkpoint of these changes, on top of a new base snapshot if `base` is given; returns its id."""
        self.version += 1
        is_inline = self.version % 2 == 0 if inline is None else inline
        deltas = self._entries(SegmentKind.DELTA, self.version, sections, is_inline)
        bases = self._entries(SegmentKind.BASE, self.version - 1, base, is_inline)
        self.chains = [
            chain.next(
                str(uuid.uuid4()), rows, deltas.get(partition), bases.get(partition), self.version - 1 if base else 0
            )
            for partition, chain in enumerate(self.chains)
        ]
        return self.complete()

    def complete(self) -> int:
        """Completes a checkpoint of the current chains; returns its id."""
        key = StoreKey(0, self.store)
        store = store_state(key, self.name, self.chains, self.state_format)
        chain_of_parallelisms = tuple(factors(2, KEY_GROUPS))
        batch = SparkBatch(
            self.version - 1,
            self.version,
            "query",
            "run",
            "4.2.0",
            1,
            KEY_GROUPS,
            chain_of_parallelisms,
            sources=tuple(source.name for source in self.sources),
            stores=(store,),
        )
        return self._builder.complete(batch, {key: self.chains}, self.offsets, self.sources).id

    def _entries(
        self, kind: SegmentKind, version: int, sections: Sequence[Section], inline: bool
    ) -> dict[int, SegmentRef]:
        """Segment of each partition that has entries."""
        entries = {}
        for partition in range(len(self.chains)):
            owned = [
                group for part in owned_ranges(partition, len(self.chains), factors(2, KEY_GROUPS)) for group in part
            ]
            groups: dict[int, list[Section]] = {}
            for section in sections:
                for group in owned:
                    mine = tuple(entry for entry in section.entries if key_group(entry[0]) == group)
                    if mine:
                        part = Section(mine, section.column_family, section.lists, section.appends)
                        groups.setdefault(group, []).append(part)
            if (entry := self._builder.segment(kind, version, groups, inline=inline)) is not None:
                entries[partition] = entry
        return entries

    def _write_schema(self, variables: Mapping[str, str] | None) -> None:
        if list(self.families) == ["default"] and variables is None:
            directory = "state/0/0" if self.store == "default" else f"state/0/0/{self.store}"
            self.storage.write_atomic(f"{directory}/_metadata/schema", schema_v2(*self.families["default"]))
            return
        name = f"_stateSchema/{self.store}/0_{uuid.uuid4()}"
        self.storage.write_atomic(f"state/0/{name}", schema_v3(self.families))
        infos = [
            {"stateName": name, "stateVariableType": kind, "ttlEnabled": False}
            for name, kind in (variables or {}).items()
        ]
        path = f"file:/elsewhere/state/0/{name}"
        infos_of_stores = [{"storeName": self.store, "numPartitions": 2, "stateSchemaFilePaths": [path]}]
        properties = {"timeMode": "NoTime", "outputMode": "Update", "stateVariables": infos}
        metadata = {
            "operatorInfo": {"operatorId": 0, "operatorName": self.name},
            "stateStoreInfo": infos_of_stores,
            "operatorPropertiesJson": json.dumps(properties),
        }
        self._builder.operator_metadata(0, metadata, version=2)


def row(kind: Schema, *values: Any) -> bytes:
    """An UnsafeRow."""
    return unsafe_writer.row(kind, values)


def utf(text: str) -> bytes:
    """Bytes of `DataOutput.writeUTF` for ASCII text."""
    return struct.pack(">H", len(text)) + text.encode("ascii")


def chunks(value: Schema, size: int = 100) -> bytes:
    """A schema split into chunks."""
    text = json.dumps(value)
    parts = [text[start : start + size] for start in range(0, len(text), size)]
    return struct.pack(">i", len(parts)) + b"".join(map(utf, parts))


def schema_v1(key: Schema, value: Schema) -> bytes:
    return utf("v1") + utf(json.dumps(key)) + utf(json.dumps(value))


def schema_v2(key: Schema, value: Schema) -> bytes:
    return utf("v2") + chunks(key) + chunks(value)


def schema_v3(
    families: Mapping[str, tuple[Schema, Schema]], encoder_type: str = "NoPrefixKeyStateEncoderSpec"
) -> bytes:
    content = utf("v3") + struct.pack(">i", len(families))
    for name, (key, value) in families.items():
        encoder = {"keyStateEncoderType": encoder_type}
        content += utf(name) + struct.pack(">H", 0) + chunks(key) + struct.pack(">H", 0) + chunks(value)
        content += chunks(encoder) + struct.pack(">i", 1) + utf("{    }")
    return content
