"""The compared state-store providers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_ckpt.config import FILE_MANAGER_CLASS, FILE_MANAGER_KEY, PROVIDER_CLASS, PROVIDER_KEY

_BUILT_IN = "org.apache.spark.sql.execution.streaming.state."
_ROCKSDB = _BUILT_IN + "RocksDBStateStoreProvider"


@dataclass(frozen=True)
class Provider:
    """A state-store provider with its settings.

    Args:
        name: name in results and on the command line.
        title: name for readers.
        class_name: provider class set in Spark.
        settings: settings beyond the common ones.
        built_in: whether it is one of Spark's own, and thus a rival.
    """

    name: str
    title: str
    class_name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    built_in: bool = True

    def conf(self) -> Mapping[str, str]:
        """Spark settings that select this provider."""
        return {PROVIDER_KEY: self.class_name, **self.settings}


OURS = Provider("ckpt", "spark-ckpt", PROVIDER_CLASS, {FILE_MANAGER_KEY: FILE_MANAGER_CLASS}, built_in=False)
FLOOR = Provider(
    "floor", "floor: nothing durable", "org.apache.spark.sql.benchmark.FloorStateStoreProvider", built_in=False
)
PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        OURS,
        Provider("hdfs", "HDFSBacked", _BUILT_IN + "HDFSBackedStateStoreProvider"),
        Provider("rocksdb", "RocksDB", _ROCKSDB),
        Provider(
            "rocksdb-changelog",
            "RocksDB, changelog",
            _ROCKSDB,
            {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"},
        ),
        FLOOR,
    )
}
"""Providers by name. The floor shows the part of a batch that is not spent on the state store."""
