// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import org.apache.spark.sql.execution.streaming.{AvailableNowTrigger, OneTimeTrigger}
import org.apache.spark.sql.execution.streaming.runtime.{MicroBatchExecutionContext, StreamExecution}
import org.apache.spark.sql.streaming.Trigger

/**
 * Status of an ended run, for the message `close` (docs/protocol.md, section 1.3).
 *
 * Spark's event has an exception or none; a stopped query has none either. Only the triggers `AvailableNow` and `Once`
 * have an end of their own, and the last batch tells whether it was reached.
 */
private[driver] object QueryStatus {
  val Finished = "finished"
  val Failed = "failed"
  val Cancelled = "cancelled"
  val Suspended = "suspended"

  /** @param execution the execution after its end; None if no batch showed it */
  def of(failed: Boolean, execution: Option[StreamExecution]): String =
    if (failed) Failed else if (execution.exists(reachedItsEnd)) Finished else Cancelled

  private def reachedItsEnd(execution: StreamExecution): Boolean = execution.getLatestExecutionContext() match {
    case batch: MicroBatchExecutionContext =>
      val reported = Option(execution.lastProgress).exists(_.batchId == batch.batchId)
      isEnd(execution.trigger, batch.isCurrentBatchConstructed, reported)
    case _ => false
  }

  /**
   * @param constructed true if the last batch had anything to do
   * @param reported    true if it was committed and its progress reported
   */
  private[driver] def isEnd(trigger: Trigger, constructed: Boolean, reported: Boolean): Boolean = trigger match {
    case AvailableNowTrigger => !constructed
    case OneTimeTrigger => !constructed || reported
    case _ => false
  }
}
