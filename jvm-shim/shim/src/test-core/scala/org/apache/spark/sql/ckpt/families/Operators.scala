// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.families

/** Spark's short names of stateful operators. Its own constants, since 4.1 or later, are `StatefulOperatorsUtils`. */
private[ckpt] object Operators {
  val Aggregation = "stateStoreSave"
  val RealTimeAggregation = "StatefulStreamlineAggregate"
  val Deduplication = "dedupe"
  val DeduplicationWithinWatermark = "dedupeWithinWatermark"
  val SessionWindow = "sessionWindowStateStoreSaveExec"
  val Join = "symmetricHashJoin"
  val FlatMapGroups = "flatMapGroupsWithState"
  val ApplyInPandas = "applyInPandasWithState"
  val TransformWithState = "transformWithStateExec"
  val TransformWithStateInPandas = "transformWithStateInPandasExec"
  val TransformWithStateInPySpark = "transformWithStateInPySparkExec"

  /** Without a partition key. */
  val Limit = "globalLimit"
}
