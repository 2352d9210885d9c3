"""The state-store provider under test.

The environment variable SPARK_CKPT_TEST_PROVIDER selects it: `ckpt` (default), `ckpt-local` with nearly all state on
the local disk, or one of Spark's own: `rocksdb`, `rocksdb-changelog`, `hdfs`. A test of an operator must pass with each
of them; with a built-in provider the checks of our checkpoints are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PROVIDER_VARIABLE = "SPARK_CKPT_TEST_PROVIDER"
PROVIDER_KEY = "spark.sql.streaming.stateStore.providerClass"
CKPT_PREFIX = "spark.sql.streaming.stateStore.ckpt."

_BUILT_IN = "org.apache.spark.sql.execution.streaming.state."


@dataclass(frozen=True)
class ProviderUnderTest:
    """A provider class and its settings."""

    name: str
    class_name: str
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        """True if the provider writes checkpoints that can be checked."""
        return self.class_name == CKPT.class_name

    def conf(self) -> dict[str, str]:
        """All SQL settings that select this provider."""
        return {PROVIDER_KEY: self.class_name, **self.settings}


CKPT = ProviderUnderTest("ckpt", "org.apache.spark.sql.ckpt.CheckpointStateStoreProvider")
CKPT_LOCAL = ProviderUnderTest(
    "ckpt-local", CKPT.class_name, {CKPT_PREFIX + "memory.budget": "1", CKPT_PREFIX + "compression": "lz4"}
)
ROCKSDB = ProviderUnderTest("rocksdb", _BUILT_IN + "RocksDBStateStoreProvider")
ROCKSDB_CHANGELOG = ProviderUnderTest(
    "rocksdb-changelog",
    ROCKSDB.class_name,
    {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"},
)
HDFS = ProviderUnderTest("hdfs", _BUILT_IN + "HDFSBackedStateStoreProvider")

PROVIDERS = {provider.name: provider for provider in (CKPT, CKPT_LOCAL, ROCKSDB, ROCKSDB_CHANGELOG, HDFS)}


def provider_under_test() -> ProviderUnderTest:
    """The provider selected by the environment."""
    name = os.environ.get(PROVIDER_VARIABLE, CKPT.name)
    if name not in PROVIDERS:
        raise ValueError(f"{PROVIDER_VARIABLE} is {name!r}; it must be one of {', '.join(PROVIDERS)}")
    return PROVIDERS[name]
