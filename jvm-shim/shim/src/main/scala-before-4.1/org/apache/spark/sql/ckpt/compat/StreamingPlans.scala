// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, TransformWithState, TransformWithStateInPandas}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.python.streaming.TransformWithStateInPandasExec
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

  /** Grouping columns of a `transformWithState` in Python; None for another operator. */
  def groupingInPython(operator: StateStoreWriter): Option[Seq[Attribute]] = operator match {
    case processor: TransformWithStateInPandasExec => Some(processor.groupingAttributes)
    case _ => None
  }

  def storeNames(operator: StateStoreWriter): Seq[String] = operator match {
    case _: StreamingSymmetricHashJoinExec => SymmetricHashJoinStateManager.allStateStoreNames(LeftSide, RightSide)
    case _ => Seq(StateStoreId.DEFAULT_STORE_NAME)
  }
}
