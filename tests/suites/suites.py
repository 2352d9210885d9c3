"""Spark's suites of operators with state and of state stores that can meet our provider, and how they are run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.support.provider import CKPT_PREFIX

STREAMING = "org.apache.spark.sql.streaming."
DATA_SOURCE = "org.apache.spark.sql.execution.datasources.v2.state."
EXECUTION = "org.apache.spark.sql.execution.streaming."
STATE = EXECUTION + "state."
SOURCES = EXECUTION + "sources."

ANY = "any provider"
FAMILIES = "column families"
WHOLE = "whole stores"

KEEP_100: Mapping[str, str] = {CKPT_PREFIX + "retained": "100"}
"""For suites that go back in time: Spark's providers keep 100 versions."""


@dataclass(frozen=True)
class Suite:
    """One of Spark's suites, or the subclass of one that is ours.

    Args:
        class_name: with its package.
        needs: what it asks of a provider: `ANY`, `FAMILIES` or `WHOLE`.
        stand_in: whether the provider stands in for RocksDB's, because the suite names that class.
        settings: of Spark, in addition to the choice of the provider.
        limit: seconds after which it is given up.
        fast: whether it is one of those that `make test` runs.
    """

    class_name: str
    needs: str
    stand_in: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    limit: int = 900
    fast: bool = False

    @property
    def name(self) -> str:
        """The class name without its package."""
        return self.class_name.rpartition(".")[2]

    def can_share(self, other: Suite) -> bool:
        """Whether both can run in one JVM."""
        return self.stand_in == other.stand_in and self.settings == other.settings


SUITES = (
    Suite(STATE + "ProviderStateStoreSuite", ANY, fast=True),
    Suite(STREAMING + "StreamingAggregationSuite", ANY),
    Suite(STREAMING + "StreamingDeduplicationSuite", ANY),
    Suite(STREAMING + "FlatMapGroupsWithStateSuite", ANY),
    Suite(STREAMING + "FlatMapGroupsWithStateDistributionSuite", ANY, fast=True),
    Suite(SOURCES + "ForeachBatchSinkSuite", ANY),
    Suite(STREAMING + "EventTimeWatermarkSuite", ANY),
    Suite(STREAMING + "StreamingQueryOptimizationCorrectnessSuite", ANY),
    Suite(STREAMING + "StreamSuite", ANY),
    Suite(STREAMING + "StreamingDeduplicationWithinWatermarkSuite", ANY),
    Suite(STREAMING + "FlatMapGroupsWithStateWithInitialStateSuite", ANY),
    Suite(STREAMING + "MultiStatefulOperatorsSuite", ANY),
    Suite(STREAMING + "StreamingAggregationDistributionSuite", ANY),
    Suite(STREAMING + "StreamingDeduplicationDistributionSuite", ANY),
    Suite(STREAMING + "StreamingSessionWindowDistributionSuite", ANY),
    Suite(STATE + "StateStoreRDDSuite", ANY),
    Suite(STATE + "StateStoreCoordinatorStreamingSuite", ANY),
    Suite(STATE + "StreamingAggregationStateManagerSuite", ANY),
    Suite(STATE + "StreamingSessionWindowStateManagerSuite", ANY),
    Suite(STATE + "OperatorStateMetadataSuite", ANY),
    Suite(DATA_SOURCE + "StateDataSourceNegativeTestSuite", ANY),
    Suite(DATA_SOURCE + "StateDataSourceNoEmptyDirCreationSuite", ANY),
    Suite(EXECUTION + "AsyncProgressTrackingMicroBatchExecutionSuite", ANY),
    Suite(EXECUTION + "MicroBatchExecutionSuite", ANY),
    Suite(STREAMING + "ReportSinkMetricsSuite", ANY),
    Suite(STREAMING + "StreamingSelfUnionSuite", ANY),
    Suite(STREAMING + "FlatMapGroupsInPandasWithStateSuite", ANY),
    Suite(STREAMING + "FlatMapGroupsInPandasWithStateDistributionSuite", ANY),
    Suite(STREAMING + "DeprecatedStreamingAggregationSuite", ANY),
    Suite(DATA_SOURCE + "ProviderStateDataSourceReadSuite", ANY, settings=KEEP_100),
    Suite(DATA_SOURCE + "ProviderStateDataSourceChangeDataReaderSuite", ANY, settings=KEEP_100),
    Suite(STREAMING + "StreamingSessionWindowSuite", ANY, stand_in=True),
    Suite(STREAMING + "StreamingInnerJoinWithoutVCFSuite", ANY, stand_in=True),
    Suite(STREAMING + "StreamingFullOuterJoinWithoutVCFSuite", ANY, stand_in=True),
    Suite(STREAMING + "StreamingOuterJoinWithoutVCFSuite", ANY, stand_in=True),
    Suite(STREAMING + "StreamingLeftSemiJoinWithoutVCFSuite", ANY, stand_in=True),
    Suite(STREAMING + "StreamingInnerJoinWithVCFSuite", FAMILIES, stand_in=True),
    Suite(STREAMING + "StreamingInnerJoinV4Suite", FAMILIES, stand_in=True),
    Suite(STATE + "SymmetricHashJoinStateManagerEventTimeInKeySuite", FAMILIES, stand_in=True),
    Suite(STREAMING + "TransformWithMapStateSuite", FAMILIES, stand_in=True),
    Suite(STREAMING + "TransformWithStateChainingSuite", FAMILIES, stand_in=True),
    Suite(STREAMING + "TransformWithListStateSuite", FAMILIES, stand_in=True),
    Suite(STREAMING + "TransformWithStateInitialStateSuite", FAMILIES, stand_in=True),
    Suite(STREAMING + "TransformWithValueStateTTLSuite", FAMILIES, stand_in=True),
    Suite(STREAMING + "TransformWithListStateTTLSuite", FAMILIES, stand_in=True),
    Suite(STREAMING + "TransformWithMapStateTTLSuite", FAMILIES, stand_in=True),
    Suite(STATE + "RocksDBStateStoreCheckpointFormatV2Suite", FAMILIES, stand_in=True),
    Suite(STATE + "SymmetricHashJoinStateManagerEventTimeInValueSuite", FAMILIES, stand_in=True),
    Suite(STREAMING + "StreamingOuterJoinWithVCFSuite", FAMILIES, stand_in=True),
    Suite(STREAMING + "StreamingOuterJoinV4Suite", FAMILIES, stand_in=True),
    Suite(STREAMING + "StreamingLeftSemiJoinWithVCFSuite", FAMILIES, stand_in=True),
    Suite(STREAMING + "StreamingLeftSemiJoinV4Suite", FAMILIES, stand_in=True),
    Suite(STREAMING + "StreamingFullOuterJoinWithVCFSuite", FAMILIES, stand_in=True),
    Suite(STREAMING + "StreamingFullOuterJoinV4Suite", FAMILIES, stand_in=True),
    Suite(STREAMING + "TransformWithStateUnsafeRowSuite", FAMILIES, stand_in=True, settings=KEEP_100),
    Suite(STREAMING + "TransformWithStateAvroSuite", FAMILIES, stand_in=True, settings=KEEP_100),
    Suite(DATA_SOURCE + "StateDataSourceTransformWithStateSuite", FAMILIES, stand_in=True, settings=KEEP_100),
    Suite(STREAMING + "TransformWithStateValidationSuite", FAMILIES, stand_in=True),
    Suite(STATE + "OfflineStateRepartitionSuite", WHOLE, stand_in=True),
    Suite(STATE + "OfflineStateRepartitionCkptV1IntegrationSuite", WHOLE, stand_in=True),
    Suite(STATE + "OfflineStateRepartitionCkptV2IntegrationSuite", WHOLE, stand_in=True),
    Suite(STATE + "OfflineStateRepartitionJoinCkptV1IntegrationSuite", WHOLE, stand_in=True),
    Suite(STATE + "OfflineStateRepartitionJoinCkptV2IntegrationSuite", WHOLE, stand_in=True),
    Suite(STATE + "OfflineStateRepartitionTransformWithStateCkptV1IntegrationSuite", WHOLE, stand_in=True),
    Suite(STATE + "OfflineStateRepartitionTransformWithStateCkptV2IntegrationSuite", WHOLE, stand_in=True),
    Suite(DATA_SOURCE + "StatePartitionAllColumnFamiliesReaderSuite", WHOLE, stand_in=True),
    Suite(STATE + "StatePartitionAllColumnFamiliesWriterSuite", WHOLE, stand_in=True),
)
