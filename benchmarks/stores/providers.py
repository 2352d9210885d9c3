"""The compared state-store providers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spark_ckpt.config import (
    COMPRESSION,
    FILE_MANAGER_CLASS,
    FILE_MANAGER_KEY,
    MEMORY_BUDGET,
    PROVIDER_CLASS,
    PROVIDER_KEY,
)

_BUILT_IN = "org.apache.spark.sql.execution.streaming.state."
_ROCKSDB = _BUILT_IN + "RocksDBStateStoreProvider"
_ROCKSDB_KEYS = "spark.sql.streaming.stateStore.rocksdb."
_CHANGELOG = {_ROCKSDB_KEYS + "changelogCheckpointing.enabled": "true"}
# Block cache and write buffers of all stores together. The heap of its JVM comes on top; ours keeps its state there.
_ROCKSDB_MEMORY = {_ROCKSDB_KEYS + "boundedMemoryUsage": "true", _ROCKSDB_KEYS + "maxMemoryUsageMB": "{mb}"}


@dataclass(frozen=True)
class Provider:
    """A state-store provider with its settings.

    Args:
        name: name in results and on the command line.
        title: name for readers.
        class_name: provider class set in Spark.
        settings: settings beyond the common ones.
        memory: settings that limit the memory of the state, with `{mb}` for the limit.
        built_in: whether it is one of Spark's own, and thus a rival.
    """

    name: str
    title: str
    class_name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    memory: Mapping[str, str] = field(default_factory=dict)
    built_in: bool = True

    def conf(self, memory_mb: int | None = None) -> Mapping[str, str]:
        """Spark settings that select this provider, and limit the memory of its state to this many MiB."""
        limits = {} if memory_mb is None else {key: value.format(mb=memory_mb) for key, value in self.memory.items()}
        return {PROVIDER_KEY: self.class_name, **self.settings, **limits}


OURS = Provider(
    "ckpt",
    "spark-ckpt",
    PROVIDER_CLASS,
    {FILE_MANAGER_KEY: FILE_MANAGER_CLASS},
    {MEMORY_BUDGET.key: "{mb}m"},
    built_in=False,
)
OTHER_CODECS = tuple(
    replace(
        OURS,
        name=f"ckpt-{codec}",
        title="spark-ckpt, uncompressed" if codec == "none" else f"spark-ckpt, {codec}",
        settings={**OURS.settings, COMPRESSION.key: codec},
    )
    for codec in ("none", "zstd")
)
FLOOR = Provider(
    "floor", "floor: nothing durable", "org.apache.spark.sql.benchmark.FloorStateStoreProvider", built_in=False
)
PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        OURS,
        *OTHER_CODECS,
        Provider("hdfs", "HDFSBacked", _BUILT_IN + "HDFSBackedStateStoreProvider"),
        Provider("rocksdb", "RocksDB", _ROCKSDB, {}, _ROCKSDB_MEMORY),
        Provider("rocksdb-changelog", "RocksDB, changelog", _ROCKSDB, _CHANGELOG, _ROCKSDB_MEMORY),
        Provider(
            "rocksdb-ids",
            "RocksDB, changelog, state ids",
            _ROCKSDB,
            {**_CHANGELOG, "spark.sql.streaming.stateStore.checkpointFormatVersion": "2"},
            _ROCKSDB_MEMORY,
        ),
        FLOOR,
    )
}
"""Providers by name. The floor shows the part of a batch that is not spent on the state store."""
