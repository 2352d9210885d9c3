/*
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at
 *
 *    http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on
 * an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */
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
