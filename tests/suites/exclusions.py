"""Spark's tests whose failures do not count, each with the reason. They still run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.suites.minors import EACH, ONLY_41, SINCE_41, SINCE_42, Minors


@dataclass(frozen=True)
class Exclusion:
    """Some tests of a suite.

    Args:
        suite: class name of the suite, without its package.
        pattern: regular expression that matches the beginning of their names.
        reason: why they cannot pass with our provider, or are as likely to fail with Spark's own.
        minors: Spark minor versions where they may fail.
    """

    suite: str
    pattern: str
    reason: str
    minors: Minors = EACH

    def is_of(self, test: str) -> bool:
        """True if the test is excluded."""
        return re.match(self.pattern, test) is not None


_METRICS = (
    "reads custom metrics of RocksDB's provider: rocksdbNumInternalColumnFamilies, rocksdbNumInternalColFamiliesKeys"
)
_CHECKSUMS = (
    "counts the files of Spark's own providers and the checksum files beside them; ours hold their checksums inside"
)
_TIMEOUT = "Spark declares the timeout of state format 1 as an int and stores a long; RocksDB's provider finds that too"
_RACE = "a race between the test and the query that it has started again; RocksDB's provider loses it too"

EXCLUSIONS = (
    Exclusion(
        "ProviderStateStoreSuite",
        r"StateStore\.get$",
        "expects the file name N.delta of HDFS's provider in the error; RocksDB's suite overrides the test",
    ),
    Exclusion(
        "ProviderStateStoreSuite",
        "SPARK-18342: commit fails when rename fails",
        "uses its own file system with failing renames; our files are created exclusively and never renamed",
    ),
    Exclusion("ProviderStateStoreSuite", "checksum files are also cleaned up during maintenance", _CHECKSUMS, ONLY_41),
    Exclusion("ProviderStateStoreSuite", "overwrite state file without overwriting checksum file", _CHECKSUMS, ONLY_41),
    Exclusion(
        "ProviderStateStoreSuite",
        r"Load spark 4\.0 golden checkpoint",
        "reads a checkpoint that one of Spark's own providers has written",
        ONLY_41,
    ),
    Exclusion(
        "ProviderStateDataSourceReadSuite",
        "ERROR: snapshot of version not found",
        "expects an error for a version without a snapshot; ours starts from any retained version",
    ),
    Exclusion(
        "StreamSuite",
        r"recover from a Spark v2\.1 checkpoint",
        "reads a checkpoint that HDFS's provider has written",
    ),
    Exclusion(
        "FlatMapGroupsWithStateWithInitialStateSuite",
        "flatMapGroupsWithState - initial state - processing time timeout - state format version 1",
        _TIMEOUT,
    ),
    Exclusion(
        "StateStoreRDDSuite",
        "distributed test",
        "starts a `local-cluster`, which needs a built Spark home",
    ),
    Exclusion(
        "StateStoreCoordinatorStreamingSuite",
        "SPARK-51358: Infrequent maintenance with RocksDB",
        "expects stores to lag behind with snapshots while Spark's maintenance is rare; ours need no maintenance",
        SINCE_41,
    ),
    Exclusion(
        "StateDataSourceTransformWithStateSuite",
        "snapshotStartBatchId with transformWithState",
        "edits the changelog files of RocksDB's provider",
    ),
    Exclusion("TransformWithStateUnsafeRowSuite", "test that introducing TTL after restart fails query", _RACE),
    Exclusion("TransformWithStateAvroSuite", "test that introducing TTL after restart fails query", _RACE),
    Exclusion("StreamingInnerJoinSuite", "SPARK-51779 Restart", _METRICS, ONLY_41),
    Exclusion("StreamingInnerJoinWithVCFSuite", "SPARK-51779 Restart", _METRICS, SINCE_42),
    Exclusion("StreamingInnerJoinV4Suite", "SPARK-51779 Restart", _METRICS, SINCE_42),
)


def exclusions_of(minor: str) -> tuple[Exclusion, ...]:
    """The exclusions from the suites of a Spark minor version."""
    return tuple(exclusion for exclusion in EXCLUSIONS if minor in exclusion.minors)
