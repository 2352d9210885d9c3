"""Entries of Spark's offset and commit logs, and the query id.

An entry keeps the whole content of its file, so unknown fields survive a change of known ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spark_ckpt.format.state_ids import canonical_state_id
from spark_ckpt.spark_files.errors import SparkLogFormatError
from spark_ckpt.spark_files.text import checked, decode_text, lines_of, object_of, text_of

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
"""Setting in an entry of the offset log with the number of partitions of the stateful operators (Spark:
`OffsetSeqMetadata.rebindSQLConfsSessionToOffsetLog`)."""

DEFAULT_SETTINGS = {
    "spark.sql.dropDuplicates.deterministicKeyOrder.enabled": "false",
    "spark.sql.function.protobufExtensions.enabled": "false",
    "spark.sql.optimizer.pruneFiltersCanPruneStreamingSubplan": "true",
    "spark.sql.streaming.aggregation.stateFormatVersion": "1",
    "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion": "1",
    "spark.sql.streaming.join.stateFormatVersion": "1",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "false",
    "spark.sql.streaming.stateStore.compression.codec": "lz4",
    "spark.sql.streaming.stateStore.encodingFormat": "unsaferow",
    "spark.sql.streaming.stateStore.rocksdb.mergeOperatorVersion": "1",
    "spark.sql.streaming.stateStore.rowChecksum.enabled": "false",
    "spark.sql.streaming.statefulOperator.alwaysNullableOutput.enabled": "false",
    "spark.sql.streaming.statefulOperator.useStrictDistribution": "false",
}
"""Values of settings that a start gives to those that its entry of the offset log lacks, in all supported Spark
versions (Spark: `OffsetSeqMetadata.relevantSQLConfDefaultValues`). Others keep the session's values."""

NO_OFFSET = "-"
"""Placeholder for the offset of a source without one (`OffsetSeqLog.SERIALIZED_VOID_OFFSET`)."""

_OFFSET_VERSIONS = (1, 2)
_COMMIT_VERSIONS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    """`offsets/<batch>`: end offsets of a batch (Spark: `OffsetSeqLog`).

    Args:
        version: 1, with sources in query order (`OffsetSeq`), or 2, with sources by name (`OffsetMap`).
        metadata: watermark, time and settings of the batch; None in files of old Spark versions.
        offsets: JSON text of each source's offset; None for a source without one. In version 1, sources are named by
            position, starting at "0".
    """

    version: int
    metadata: Mapping[str, Any] | None
    offsets: Mapping[str, str | None]

    @classmethod
    def decode(cls, data: bytes, path: str) -> OffsetEntry:
        """Decodes the content of a file.

        Raises:
            SparkLogFormatError: the file is not an entry of the offset log.
        """
        version, lines = lines_of(data, path, _OFFSET_VERSIONS)
        if not lines:
            raise SparkLogFormatError(path, "it ends before the line with the batch's settings")
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
        """Content of the file."""
        lines = [f"v{self.version}", "" if self.metadata is None else text_of(self.metadata)]
        for source, offset in self.offsets.items():
            text = NO_OFFSET if offset is None else offset
            lines.append(text if self.version == 1 else f"{source}:{text}")
        return "\n".join(lines).encode()

    @property
    def conf(self) -> Mapping[str, str]:
        """Settings that Spark pins for the query."""
        conf = (self.metadata or {}).get("conf")
        return conf if isinstance(conf, dict) else {}

    @property
    def shuffle_partitions(self) -> int | None:
        """Number of partitions of the stateful operators; None if the entry lacks it, as version 2 entries of a query
        that was never restarted do."""
        number = self.conf.get(SHUFFLE_PARTITIONS, "")
        return int(number) if number.isdecimal() else None

    def acts_as(self, other: OffsetEntry, *, is_repeated: bool) -> bool:
        """True if a start does the same with this entry as with another, which is known to be right.

        Args:
            other: the right entry.
            is_repeated: True if the start repeats the batch, at the time in the entry.
        """
        if self.version != other.version or list(self.offsets.items()) != list(other.offsets.items()):
            return False
        fields: tuple[str, ...] = ("batchWatermarkMs", "sourceMetadataInfo", "controlBatchInfo")
        if is_repeated:
            fields += ("batchTimestampMs",)
        mine, theirs = self.metadata or {}, other.metadata or {}
        if any((mine.get(field) or None) != (theirs.get(field) or None) for field in fields):
            return False
        return all(self.conf.get(key, DEFAULT_SETTINGS.get(key)) == value for key, value in other.conf.items())

    def with_conf(self, changes: Mapping[str, str]) -> OffsetEntry:
        """Copy with other values of some settings."""
        return replace(self, metadata={**(self.metadata or {}), "conf": {**self.conf, **changes}})

    def without_settings(self) -> OffsetEntry:
        """Copy without the settings."""
        return replace(self, metadata={**(self.metadata or {}), "conf": {}})

    def with_shuffle_partitions(self, number: int) -> OffsetEntry:
        """Copy with another number of partitions."""
        return self.with_conf({SHUFFLE_PARTITIONS: str(number)})


@dataclass(frozen=True, slots=True)
class CommitEntry:
    """`commits/<batch>`: commit of a batch (Spark: `CommitLog`).

    Args:
        version: 1, 2 (adds state ids, `CommitMetadataV2`) or 3 (adds sinks).
        metadata: JSON content of the file.
    """

    version: int
    metadata: Mapping[str, Any]

    @classmethod
    def decode(cls, data: bytes, path: str) -> CommitEntry:
        """Decodes the content of a file.

        Raises:
            SparkLogFormatError: the file is not an entry of the commit log.
        """
        version, lines = lines_of(data, path, _COMMIT_VERSIONS)
        entry = cls(version, object_of(lines[0], path) if lines else {})
        checked(path, "the state ids", lambda: entry.state_ids)
        return entry

    def encode(self) -> bytes:
        """Content of the file."""
        return f"v{self.version}\n{text_of(self.metadata)}".encode()

    @property
    def state_ids(self) -> Mapping[int, Sequence[Sequence[str]]] | None:
        """Committed state ids: by operator, a list per partition with one id per store, in Spark's order of stores.
        None if Spark records none (`stateStore.checkpointFormatVersion` is 1)."""
        ids = self.metadata.get("stateUniqueIds")
        if ids is None:
            return None
        return {
            int(operator): [[canonical_state_id(str(state_id)) for state_id in stores] for stores in partitions]
            for operator, partitions in ids.items()
        }

    def with_state_ids(self, ids: Mapping[int, Sequence[Sequence[str]]]) -> CommitEntry:
        """Copy with other state ids."""
        texts = {str(operator): partitions for operator, partitions in ids.items()}
        return replace(self, metadata={**self.metadata, "stateUniqueIds": texts})

    def without_state_ids(self) -> CommitEntry:
        """Copy without state ids, as in checkpoint format 1."""
        return replace(self, metadata={**self.metadata, "stateUniqueIds": None})


def names_states(
    committed: Mapping[int, Sequence[Sequence[str]]], states: Mapping[int, Sequence[Sequence[str]]]
) -> bool:
    """True if the state ids of a commit are those of a checkpoint.

    Before a rescale to more partitions, the commit gets the ids that these will have (docs/protocol.md, section 7).

    Args:
        committed: state ids in the commit, by operator, a list per partition.
        states: state ids in the checkpoint, in the same form.
    """
    if committed.keys() != states.keys():
        return False
    return all(list(committed[operator][: len(ids)]) == list(ids) for operator, ids in states.items())


def query_id_of(data: bytes, path: str) -> str:
    """Query id in the file `metadata` (Spark: `StreamMetadata`).

    Raises:
        SparkLogFormatError: the file has no query id.
    """
    query_id = object_of(decode_text(data, path), path).get("id")
    if not isinstance(query_id, str):
        raise SparkLogFormatError(path, "it names no query")
    return query_id


def _offset(text: str) -> str | None:
    return None if text == NO_OFFSET else text
