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
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, TransformWithState, TransformWithStateInPandas}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.{StateStoreWriter, StreamExecution, StreamingSymmetricHashJoinExec}
import org.apache.spark.sql.execution.streaming.StreamingSymmetricHashJoinHelper.{LeftSide, RightSide}
import org.apache.spark.sql.execution.streaming.state.{StateStoreId, SymmetricHashJoinStateManager}
import org.apache.spark.sql.streaming.Trigger

/** What a streaming query's plan and trigger show. */
private[ckpt] object StreamingPlans {

  /** Spark has no real-time mode before 4.1. */
  def realTimeMs(trigger: Trigger): Option[Long] = None

  def transformsWithState(node: LogicalPlan): Boolean =
    node.isInstanceOf[TransformWithState] || node.isInstanceOf[TransformWithStateInPandas]

  /** The session that a run clones from the query's; protected in Scala and public in bytecode. */
  def sessionOfRun(query: StreamExecution): SparkSession =
    classOf[StreamExecution].getMethod("sparkSessionForStream").invoke(query).asInstanceOf[SparkSession]

  def collect[A](plan: SparkPlan)(operators: PartialFunction[SparkPlan, A]): Seq[A] = plan.collect(operators)

  def storeNames(operator: StateStoreWriter): Seq[String] = operator match {
    case _: StreamingSymmetricHashJoinExec => SymmetricHashJoinStateManager.allStateStoreNames(LeftSide, RightSide)
    case _ => Seq(StateStoreId.DEFAULT_STORE_NAME)
  }
}
