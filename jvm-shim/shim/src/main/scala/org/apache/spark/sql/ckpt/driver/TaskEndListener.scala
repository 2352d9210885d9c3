// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import org.apache.spark.Success
import org.apache.spark.scheduler._
import org.apache.spark.sql.ckpt.common.OwnThreads
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryTerminatedEvent

/** Reports failed task attempts and ended queries to the coordinator, and forgets lost executors. */
private[driver] final class TaskEndListener(requests: CheckpointRequests) extends SparkListener {

  override def onTaskEnd(event: SparkListenerTaskEnd): Unit = guard {
    if (event.reason != Success && event.taskInfo != null) {
      requests.taskFailed(event.stageId, event.stageAttemptId, event.taskInfo.partitionId,
        event.taskInfo.attemptNumber, event.reason.toString)
    }
  }

  override def onStageCompleted(event: SparkListenerStageCompleted): Unit = guard {
    if (event.stageInfo.failureReason.isEmpty) requests.stageCompleted(event.stageInfo.stageId)
  }

  override def onOtherEvent(event: SparkListenerEvent): Unit = guard {
    event match {
      case ended: QueryTerminatedEvent => requests.queryEnded(ended.runId.toString, ended.exception)
      case _ =>
    }
  }

  override def onExecutorRemoved(event: SparkListenerExecutorRemoved): Unit =
    guard(requests.executors.remove(event.executorId))

  override def onApplicationEnd(event: SparkListenerApplicationEnd): Unit = guard(CheckpointDriver.stop(requests))

  /** Spark's thread serves other listeners, and stops the application after some errors. */
  private def guard(action: => Unit): Unit = OwnThreads.guard("the listener for checkpoints")(action)
}
