"""Entries of Spark's offset and commit logs, and the query's id.

An entry keeps its whole file, so a field that is unknown here survives a change of another field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spark_ckpt.spark_files.errors import SparkLogFormatError
from spark_ckpt.spark_files.text import checked, decode_text, lines_of, object_of, text_of

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
"""Under this name an entry of the offset log has the number of partitions of the stateful operators (Spark:
`OffsetSeqMetadata.rebindSQLConfsSessionToOffsetLog`)."""

NO_OFFSET = "-"
"""What stands for the offset of a source that has none (`OffsetSeqLog.SERIALIZED_VOID_OFFSET`)."""

_OFFSET_VERSIONS = (1, 2)
_COMMIT_VERSIONS = (1, 2, 3)


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
        """Entry from the content of a file.

        Raises:
            SparkLogFormatError: it is no entry of the offset log.
        """
        version, lines = lines_of(data, path, _OFFSET_VERSIONS)
        if not lines:
            raise SparkLogFormatError(path, "it ends before the line with the settings of the batch")
        metadata = object_of(lines[0], path) if lines[0].strip() else None
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
        lines = [f"v{self.version}", "" if self.metadata is None else text_of(self.metadata)]
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
        """Copy with another number of partitions."""
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
        """Entry from the content of a file.

        Raises:
            SparkLogFormatError: it is no entry of the commit log.
        """
        version, lines = lines_of(data, path, _COMMIT_VERSIONS)
        entry = cls(version, object_of(lines[0], path) if lines else {})
        checked(path, "the ids of the states", lambda: entry.state_ids)
        return entry

    def encode(self) -> bytes:
        """The file."""
        return f"v{self.version}\n{text_of(self.metadata)}".encode()

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
        """Copy with other state ids."""
        texts = {str(operator): partitions for operator, partitions in ids.items()}
        return replace(self, metadata={**self.metadata, "stateUniqueIds": texts})


def query_id_of(data: bytes, path: str) -> str:
    """The query's id, from the file `metadata` (Spark: `StreamMetadata`).

    Raises:
        SparkLogFormatError: the file has none.
    """
    query_id = object_of(decode_text(data, path), path).get("id")
    if not isinstance(query_id, str):
        raise SparkLogFormatError(path, "it names no query")
    return query_id


def _offset(text: str) -> str | None:
    return None if text == NO_OFFSET else text
