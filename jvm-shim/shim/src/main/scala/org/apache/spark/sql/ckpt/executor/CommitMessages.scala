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
package org.apache.spark.sql.ckpt.executor

import scala.util.control.NonFatal

import org.apache.spark.TaskContext
import org.apache.spark.executor.CommitDeniedException
import org.apache.spark.sql.ckpt.{CheckpointFailure, Message}
import org.apache.spark.sql.ckpt.backend.HashMapStateBackend

/**
 * What a store brings to its ack: the changes of a batch, and perhaps a base of an earlier version.
 *
 * @param snapshotNanos to take the changes
 * @param writeNanos    to write files
 */
private[ckpt] final case class Shipment(
    delta: ShippedSegment,
    base: Option[ReadyBase],
    snapshotNanos: Long,
    writeNanos: Long)

/** The messages by which a store commits, and what their answers mean (docs/protocol.md, section 1.3). */
private[ckpt] final class CommitMessages(job: StoreJob) {

  /**
   * @param baseId id of the state that the changes are changes of, empty at version 0
   * @param backend in which they are committed
   */
  def ack(version: Long, stateId: String, baseId: String, backend: HashMapStateBackend, shipment: Shipment): Message = {
    val header = job.header(version, job.batchOf(version - 1))
    header
      .put("ckpt_id", stateId)
      .put("base_ckpt_id", if (baseId.isEmpty) null else baseId)
      .put("rows", backend.rowCount)
      .put("rows_updated", backend.rowsUpdated)
      .put("rows_removed", backend.rowsRemoved)
    StoreJob.putTask(header)
    shipment.delta.describe(header.putObject("delta"), shipment.delta.info.entries)
    shipment.base match {
      case Some(ready) =>
        ready.segment.describe(header.putObject("base"), ready.rows)
          .put("version", ready.version)
          .put("ckpt_id", ready.stateId)
      case None => header.putNull("base")
    }
    header.putObject("timings_us")
      .put("snapshot", shipment.snapshotNanos / 1000)
      .put("write", shipment.writeNanos / 1000)
    val segments = shipment.delta +: shipment.base.map(_.segment).toSeq
    Message("ack", header.toString, ShippedSegment.index(segments), ShippedSegment.payload(segments))
  }

  /**
   * Tells that the store has nothing to acknowledge, for this reason. A task that was killed has not failed: the driver
   * tells its end itself.
   */
  def decline(version: Long, cause: Throwable): Unit = {
    val context = TaskContext.get()
    if (context == null || !context.isInterrupted()) {
      val header = job.header(version, job.batchOf(version - 1))
      StoreJob.putTask(header)
      header.put("reason", cause.toString.take(CommitMessages.MaxReason))
      try CoordinatorClient.tell(Message("decline", header.toString)) catch {
        case NonFatal(e) => cause.addSuppressed(e)
      }
    }
  }

  /** The error with which the task ends whose ack does not count. */
  def refused(outcome: String, version: Long, reason: String): Exception = {
    val what = s"version $version of ${job.id} does not count: $reason"
    outcome match {
      case "denied" =>
        val context = TaskContext.get()
        new CommitDeniedException(what, if (context == null) -1 else context.stageId(), job.id.partitionId,
          if (context == null) 0 else context.attemptNumber())
      case "unknown" => new CheckpointFailure("UnknownSubtaskError", what)
      case _ => new CheckpointFailure("CheckpointDiscardedError", what)
    }
  }
}

private[ckpt] object CommitMessages {
  private val MaxReason = 1000
}
