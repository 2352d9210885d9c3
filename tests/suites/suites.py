"""Spark's suites of stateful operators and state stores that can use our provider, and how to run them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.suites.minors import BEFORE_42, EACH, SINCE_41, SINCE_42, Minors
from tests.support.provider import CKPT_PREFIX, HDFS

STREAMING = "org.apache.spark.sql.streaming."
DATA_SOURCE = "org.apache.spark.sql.execution.datasources.v2.state."
EXECUTION = "org.apache.spark.sql.execution.streaming."
STATE = EXECUTION + "state."
SOURCES = EXECUTION + "sources."

KEEP_100: Mapping[str, str] = {CKPT_PREFIX + "retained": "100"}
"""For suites that read old versions: Spark's providers keep 100 versions."""

EACH_WRITE: Mapping[str, str] = {**KEEP_100, CKPT_PREFIX + "changeFeed": "writes"}
"""For suites that read the change feed: RocksDB's provider has a setting of its own for a feed, its changelog."""

OURS_BY_NAME: Mapping[str, str] = HDFS.conf()
"""For suites that expect the default provider to be refused: ours is used only where they name RocksDB's."""


@dataclass(frozen=True)
class Suite:
    """One of Spark's suites, or our subclass of one.

    Args:
        class_name: class name with its package.
        settings: Spark settings beyond the choice of the provider.
        limit: maximum duration in seconds.
        fast: whether `make test` runs it.
        minors: Spark minor versions that have it.
    """

    class_name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    limit: int = 1800
    fast: bool = False
    minors: Minors = EACH

    @property
    def name(self) -> str:
        """The class name without its package."""
        return self.class_name.rpartition(".")[2]

    def can_share(self, other: Suite) -> bool:
        """True if both can run in one JVM."""
        return self.settings == other.settings


ANY_PROVIDER = (
    Suite(STATE + "ProviderStateStoreSuite", fast=True),
    Suite(STREAMING + "StreamingAggregationSuite"),
    Suite(STREAMING + "StreamingDeduplicationSuite"),
    Suite(STREAMING + "FlatMapGroupsWithStateSuite"),
    Suite(STREAMING + "FlatMapGroupsWithStateDistributionSuite"),
    Suite(SOURCES + "ForeachBatchSinkSuite"),
    Suite(STREAMING + "EventTimeWatermarkSuite"),
    Suite(STREAMING + "StreamingQueryOptimizationCorrectnessSuite"),
    Suite(STREAMING + "StreamSuite"),
    Suite(STREAMING + "StreamingDeduplicationWithinWatermarkSuite"),
    Suite(STREAMING + "FlatMapGroupsWithStateWithInitialStateSuite"),
    Suite(STREAMING + "FlatMapGroupsInPandasWithStateSuite"),
    Suite(STREAMING + "MultiStatefulOperatorsSuite"),
    Suite(STREAMING + "StreamingAggregationDistributionSuite"),
    Suite(STREAMING + "StreamingDeduplicationDistributionSuite"),
    Suite(STREAMING + "StreamingSessionWindowDistributionSuite"),
    Suite(STREAMING + "FlatMapGroupsInPandasWithStateDistributionSuite"),
    Suite(DATA_SOURCE + "ProviderStateDataSourceReadSuite", settings=KEEP_100),
    Suite(DATA_SOURCE + "ProviderStateDataSourceChangeDataReaderSuite", settings=EACH_WRITE),
    Suite(STREAMING + "StreamingSessionWindowSuite"),
    Suite(STREAMING + "StreamingInnerJoinWithoutVCFSuite", minors=SINCE_42),
    Suite(STREAMING + "StreamingFullOuterJoinWithoutVCFSuite", minors=SINCE_42),
    Suite(STREAMING + "StreamingOuterJoinWithoutVCFSuite", minors=SINCE_42),
    Suite(STREAMING + "StreamingLeftSemiJoinWithoutVCFSuite", minors=SINCE_42),
    Suite(STREAMING + "StreamingInnerJoinSuite", minors=BEFORE_42),
    Suite(STREAMING + "StreamingFullOuterJoinSuite", minors=BEFORE_42),
    Suite(STREAMING + "StreamingOuterJoinSuite", minors=BEFORE_42),
    Suite(STREAMING + "StreamingLeftSemiJoinSuite", minors=BEFORE_42),
    Suite(STREAMING + "DeprecatedStreamingAggregationSuite"),
    Suite(STREAMING + "StreamingQuerySuite"),
    Suite(STREAMING + "StreamingQueryStatusAndProgressSuite"),
    Suite(STREAMING + "FileStreamSinkV1Suite"),
    Suite(STREAMING + "FileStreamSinkV2Suite"),
    Suite(EXECUTION + "EventTimeWatermarkWithWatermarkDefInSelectSuite", minors=SINCE_41),
    Suite(EXECUTION + "MicroBatchExecutionSuite"),
    Suite(EXECUTION + "MemorySinkSuite"),
    Suite(EXECUTION + "ProgressReporterSuite", minors=SINCE_42),
    Suite(STATE + "OperatorStateMetadataSuite"),
    Suite(STATE + "SymmetricHashJoinStateManagerSuite"),
    Suite(STATE + "StateStoreRDDSuite"),
    Suite(STATE + "StateStoreCoordinatorSuite"),
    Suite(STATE + "StateStoreCoordinatorStreamingSuite", minors=SINCE_41),
    Suite(DATA_SOURCE + "StateDataSourceNegativeTestSuite"),
    Suite(DATA_SOURCE + "StateDataSourceNoEmptyDirCreationSuite", minors=SINCE_42),
    Suite(DATA_SOURCE + "StateDataSourceSQLConfigSuite"),
)
"""Suites for every provider."""

COLUMN_FAMILIES = (
    Suite(STREAMING + "StreamingInnerJoinWithVCFSuite", minors=SINCE_42),
    Suite(STREAMING + "StreamingInnerJoinV4Suite", minors=SINCE_42),
    Suite(STATE + "SymmetricHashJoinStateManagerEventTimeInKeySuite", fast=True, minors=SINCE_42),
    Suite(STATE + "SymmetricHashJoinStateManagerEventTimeInValueSuite", fast=True, minors=SINCE_42),
    Suite(STREAMING + "TransformWithMapStateSuite", fast=True),
    Suite(STREAMING + "TransformWithStateChainingSuite"),
    Suite(STREAMING + "TransformWithListStateSuite"),
    Suite(STREAMING + "TransformWithStateInitialStateSuite"),
    Suite(STREAMING + "TransformWithValueStateTTLSuite"),
    Suite(STREAMING + "TransformWithListStateTTLSuite"),
    Suite(STREAMING + "TransformWithMapStateTTLSuite"),
    Suite(STATE + "RocksDBStateStoreCheckpointFormatV2Suite"),
    Suite(STREAMING + "StreamingOuterJoinWithVCFSuite", minors=SINCE_42),
    Suite(STREAMING + "StreamingOuterJoinV4Suite", minors=SINCE_42),
    Suite(STREAMING + "StreamingLeftSemiJoinWithVCFSuite", minors=SINCE_42),
    Suite(STREAMING + "StreamingLeftSemiJoinV4Suite", minors=SINCE_42),
    Suite(STREAMING + "StreamingFullOuterJoinWithVCFSuite", minors=SINCE_42),
    Suite(STREAMING + "StreamingFullOuterJoinV4Suite", minors=SINCE_42),
    Suite(STREAMING + "TransformWithStateUnsafeRowSuite", settings=KEEP_100),
    Suite(STREAMING + "TransformWithStateAvroSuite", settings=KEEP_100),
    Suite(STREAMING + "TransformWithStateValidationSuite", settings=OURS_BY_NAME),
    Suite(STREAMING + "TwsTesterFuzzTestSuite", minors=SINCE_42),
    Suite(DATA_SOURCE + "StatePartitionAllColumnFamiliesReaderSuite", minors=SINCE_42),
    Suite(DATA_SOURCE + "StateDataSourceTransformWithStateSuite", settings=EACH_WRITE),
)
"""Suites that need column families, lists of values, prefix scans and ordered scans."""

SUITES = (*ANY_PROVIDER, *COLUMN_FAMILIES)


def suites_of(minor: str) -> tuple[Suite, ...]:
    """The suites of a Spark minor version."""
    return tuple(suite for suite in SUITES if minor in suite.minors)
