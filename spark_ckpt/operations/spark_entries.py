"""The files that Spark itself keeps in a checkpoint location, as values: their text, and what of it operations need.

Every entry keeps all that its file says, so that what is not known here outlives a change of what is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from spark_ckpt.operations.errors import SparkLogFormatError

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
"""Under this name an entry of the offset log has the number of partitions of the stateful operators (Spark:
`OffsetSeqMetadata.rebindSQLConfsSessionToOffsetLog`)."""

NO_OFFSET = "-"
"""What stands for the offset of a source that has none (`OffsetSeqLog.SERIALIZED_VOID_OFFSET`)."""

_OFFSET_VERSIONS = (1, 2)
_COMMIT_VERSIONS = (1, 2, 3)
_OPERATOR_VERSIONS = (1, 2)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    """`offsets/<batch>`: what a batch reads up to (Spark: `OffsetSeqLog`).

    Args:
        version: 1, with the sources in the order of the query (`OffsetSeq`), or 2, with sources by name (`OffsetMap`).
        metadata: watermark, time and settings of the batch; None in files of old versions of Spark.
        offsets: JSON text of the offset per source, None for one that has none yet. With version 1 the sources are
            named by their positions, from "0".
    """

    version: int
    metadata: Mapping[str, Any] | None
    offsets: Mapping[str, str | None]

    @classmethod
    def decode(cls, data: bytes, path: str) -> OffsetEntry:
        """What a file says.

        Raises:
            SparkLogFormatError: it is no entry of the offset log.
        """
        version, lines = _lines_of(data, path, _OFFSET_VERSIONS)
        if not lines:
            raise SparkLogFormatError(path, "it ends before the line with the settings of the batch")
        metadata = _object_of(lines[0], path) if lines[0].strip() else None
        if version == 1:
            return cls(version, metadata, {str(i): _offset(text) for i, text in enumerate(lines[1:])})
        offsets = {}
        for line in lines[1:]:
            source, colon, text = line.partition(":")
            if not colon:
                raise SparkLogFormatError(path, f"the line '{line[:40]}' names no source")
            offsets[source] = _offset(text)
        return cls(version, metadata, offsets)

    def encode(self) -> bytes:
        """The file."""
        lines = [f"v{self.version}", "" if self.metadata is None else _text_of(self.metadata)]
        for source, offset in self.offsets.items():
            text = NO_OFFSET if offset is None else offset
            lines.append(text if self.version == 1 else f"{source}:{text}")
        return "\n".join(lines).encode()

    @property
    def conf(self) -> Mapping[str, str]:
        """The settings that Spark keeps for the query."""
        conf = (self.metadata or {}).get("conf")
        return conf if isinstance(conf, dict) else {}

    @property
    def shuffle_partitions(self) -> int | None:
        """Number of partitions of the stateful operators; None if the entry does not say, as those of version 2 of a
        query that was never restarted."""
        number = self.conf.get(SHUFFLE_PARTITIONS, "")
        return int(number) if number.isdecimal() else None

    def with_shuffle_partitions(self, number: int) -> OffsetEntry:
        """The same with another number of partitions."""
        conf = {**self.conf, SHUFFLE_PARTITIONS: str(number)}
        return replace(self, metadata={**(self.metadata or {}), "conf": conf})


@dataclass(frozen=True, slots=True)
class CommitEntry:
    """`commits/<batch>`: the batch is done (Spark: `CommitLog`).

    Args:
        version: 1, 2 (with ids of the states, `CommitMetadataV2`) or 3 (with the sinks as well).
        metadata: all that it says.
    """

    version: int
    metadata: Mapping[str, Any]

    @classmethod
    def decode(cls, data: bytes, path: str) -> CommitEntry:
        """What a file says.

        Raises:
            SparkLogFormatError: it is no entry of the commit log.
        """
        version, lines = _lines_of(data, path, _COMMIT_VERSIONS)
        entry = cls(version, _object_of(lines[0], path) if lines else {})
        _checked(path, "the ids of the states", lambda: entry.state_ids)
        return entry

    def encode(self) -> bytes:
        """The file."""
        return f"v{self.version}\n{_text_of(self.metadata)}".encode()

    @property
    def state_ids(self) -> Mapping[int, Sequence[Sequence[str]]] | None:
        """The ids of the states that count: by operator, per partition one for each of its stores, in Spark's order of
        them. None if Spark keeps none (`stateStore.checkpointFormatVersion` is 1)."""
        ids = self.metadata.get("stateUniqueIds")
        if ids is None:
            return None
        return {
            int(operator): [[str(state_id) for state_id in stores] for stores in partitions]
            for operator, partitions in ids.items()
        }

    def with_state_ids(self, ids: Mapping[int, Sequence[Sequence[str]]]) -> CommitEntry:
        """The same with other ids of the states."""
        texts = {str(operator): partitions for operator, partitions in ids.items()}
        return replace(self, metadata={**self.metadata, "stateUniqueIds": texts})


@dataclass(frozen=True, slots=True)
class OperatorMetadata:
    """The stores of a stateful operator (Spark: `OperatorStateMetadataV1`, `OperatorStateMetadataV2`).

    It is `state/<operator>/_metadata/metadata` with version 1, `state/<operator>/_metadata/v2/<batch>` with version 2.

    Args:
        version: 1 or 2.
        metadata: all that it says.
    """

    version: int
    metadata: Mapping[str, Any]

    @classmethod
    def decode(cls, data: bytes, path: str) -> OperatorMetadata:
        """What a file says.

        Raises:
            SparkLogFormatError: it does not describe an operator.
        """
        version, lines = _lines_of(data, path, _OPERATOR_VERSIONS)
        metadata = cls(version, _object_of("\n".join(lines), path))
        _checked(path, "the operator", lambda: (metadata.operator_id, metadata.name, metadata.partitions))
        return metadata

    def encode(self) -> bytes:
        """The file."""
        return f"v{self.version}\n{_text_of(self.metadata)}".encode()

    @property
    def operator_id(self) -> int:
        """Spark's number of the operator."""
        return int(self.metadata["operatorInfo"]["operatorId"])

    @property
    def name(self) -> str:
        """Spark's short name of the operator."""
        return str(self.metadata["operatorInfo"]["operatorName"])

    @property
    def partitions(self) -> Mapping[str, int]:
        """Number of partitions by the name of the store. For an operator that runs as one task, too, Spark writes the
        number of shuffle partitions here."""
        return {str(store["storeName"]): int(store["numPartitions"]) for store in self.metadata["stateStoreInfo"]}

    def with_partitions(self, number: int) -> OperatorMetadata:
        """The same with another number of partitions of each store."""
        stores = [{**store, "numPartitions": number} for store in self.metadata["stateStoreInfo"]]
        return replace(self, metadata={**self.metadata, "stateStoreInfo": stores})

    def moved_to(self, location: str) -> OperatorMetadata:
        """The same in another place. Version 2 names schema files by their absolute paths, and where they are not Spark
        does not see that a schema has changed (`StateSchemaCompatibilityChecker.readSchemaFiles`).

        Args:
            location: the checkpoint location, as Hadoop writes it.
        """
        below = f"/state/{self.operator_id}/"

        def moved(path: str) -> str:
            _, found, name = path.rpartition(below)
            return f"{location}{below}{name}" if found else path

        stores = [
            {**store, "stateSchemaFilePaths": [moved(path) for path in store["stateSchemaFilePaths"]]}
            if "stateSchemaFilePaths" in store
            else store
            for store in self.metadata["stateStoreInfo"]
        ]
        return replace(self, metadata={**self.metadata, "stateStoreInfo": stores})


def query_id_of(data: bytes, path: str) -> str:
    """The query's id, from the file `metadata` (Spark: `StreamMetadata`).

    Raises:
        SparkLogFormatError: the file has none.
    """
    query_id = _object_of(_decoded(data, path), path).get("id")
    if not isinstance(query_id, str):
        raise SparkLogFormatError(path, "it names no query")
    return query_id


def _lines_of(data: bytes, path: str, known: Sequence[int]) -> tuple[int, list[str]]:
    """The version that the first line says, and the other lines."""
    first, *rest = _decoded(data, path).split("\n")
    if rest and not rest[-1]:
        rest.pop()
    version = first.strip().removeprefix("v")
    if not first.startswith("v") or not version.isdecimal():
        raise SparkLogFormatError(path, f"its first line is '{first[:40]}' and no version")
    if int(version) not in known:
        raise SparkLogFormatError(path, f"version {version}; this release knows {', '.join(map(str, known))}")
    return int(version), rest


def _decoded(data: bytes, path: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as e:
        raise SparkLogFormatError(path, f"it is no text ({e})") from e


def _object_of(text: str, path: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as e:
        raise SparkLogFormatError(path, f"what should be JSON is none ({e})") from e
    if not isinstance(value, dict):
        raise SparkLogFormatError(path, "what should be a JSON object is none")
    return value


def _checked(path: str, what: str, read: Callable[[], _T]) -> _T:
    try:
        return read()
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise SparkLogFormatError(path, f"it does not describe {what} ({e!r})") from e


def _offset(text: str) -> str | None:
    return None if text == NO_OFFSET else text


def _text_of(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
