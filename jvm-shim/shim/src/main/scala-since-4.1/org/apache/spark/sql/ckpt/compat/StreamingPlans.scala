// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, TransformWithState, TransformWithStateInPySpark}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkExec
import org.apache.spark.sql.execution.streaming.{RealTimeTrigger, StreamingQueryPlanTraverseHelper}
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.streaming.Trigger

/** What a streaming query's plan and trigger show. */
private[ckpt] object StreamingPlans {
  /** Length of the batches in real-time mode, in milliseconds; None in other modes. */
  def realTimeMs(trigger: Trigger): Option[Long] = trigger match {
    case realTime: RealTimeTrigger => Some(realTime.batchDurationMs)
    case _ => None
  }

  def transformsWithState(node: LogicalPlan): Boolean =
    node.isInstanceOf[TransformWithState] || node.isInstanceOf[TransformWithStateInPySpark]

  /** The session that a run clones from the query's. */
  def sessionOfRun(query: StreamExecution): SparkSession = query.sparkSessionForStream

  /** A cached part of a plan hides its operators from ordinary traversal. */
  def collect[A](plan: SparkPlan)(operators: PartialFunction[SparkPlan, A]): Seq[A] =
    StreamingQueryPlanTraverseHelper.collectFromUnfoldedPlan(plan)(operators)

  /** Grouping columns of a `transformWithState` in Python; None for another operator. */
  def groupingInPython(operator: StateStoreWriter): Option[Seq[Attribute]] = operator match {
    case processor: TransformWithStateInPySparkExec => Some(processor.groupingAttributes)
    case _ => None
  }

  def storeNames(operator: StateStoreWriter): Seq[String] = operator.stateStoreNames
}
