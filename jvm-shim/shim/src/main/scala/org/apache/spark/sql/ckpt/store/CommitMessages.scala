// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import scala.concurrent.duration.FiniteDuration
import scala.util.control.NonFatal

import io.github.sparkckpt.engine.backend.KeyedStateBackend

import org.apache.spark.TaskContext
import org.apache.spark.executor.CommitDeniedException
import org.apache.spark.sql.ckpt.client.CoordinatorClient
import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.locate.StoreJob
import org.apache.spark.sql.ckpt.protocol._

/**
 * Content of an ack: the changes of a batch, and sometimes a base of an earlier version or merged deltas.
 *
 * @param waited        the base or the merged deltas
 * @param inProgress    those that wait for a later ack, or are being written
 * @param compactionFailure failure of a base or a merge since the last ack that counted
 * @param snapshotNanos time to take the changes
 * @param writeNanos    time to write files
 * @param restoreNanos  time to load state for the batch; None if the store had it in memory
 */
private[ckpt] final case class Shipment(
    delta: SegmentRef,
    waited: Option[ReadySegment],
    inProgress: Seq[VersionSpan],
    compactionFailure: Option[Throwable],
    snapshotNanos: Long,
    writeNanos: Long,
    restoreNanos: Option[Long])

/** Messages with which a store commits, and the meaning of their replies (docs/protocol.md, section 1.3). */
private[ckpt] final class CommitMessages(job: StoreJob, coordinator: CoordinatorClient) {
  import CommitMessages.shortened

  /**
   * @param baseId id of the state that the changes start from, empty at version 0
   * @param backend backend in which they are committed
   */
  def ack(version: Long, stateId: String, baseId: String, backend: KeyedStateBackend, shipment: Shipment): Ack =
    Ack(
      job.header(version, version - 1),
      stateId,
      Some(baseId).filter(_.nonEmpty),
      backend.rowCount,
      backend.rowsUpdated,
      backend.rowsRemoved,
      StoreJob.task(),
      shipment.delta,
      shipment.waited.collect { case base: ReadyBase => base },
      shipment.waited.collect { case merge: ReadyMerge => merge },
      shipment.inProgress,
      shipment.compactionFailure.map(e => shortened(e.toString)),
      AckTimings(shipment.snapshotNanos / 1000, shipment.writeNanos / 1000, shipment.restoreNanos.map(_ / 1000)))

  /**
   * Declines: the store has nothing to acknowledge, for this reason. Killed tasks do not decline, because the driver
   * reports their end itself.
   */
  def decline(version: Long, cause: Throwable): Unit = {
    val context = TaskContext.get()
    if (context == null || !context.isInterrupted()) {
      val message = Decline(job.header(version, version - 1), StoreJob.task(), shortened(cause.toString))
      try coordinator.tell(message.toMessage) catch {
        case NonFatal(e) => cause.addSuppressed(e)
      }
    }
  }

  /**
   * The error of a task that could not read a version. The coordinator checks the files; if they are damaged, the error
   * is its verdict, which names the remedy or reports the rollback.
   */
  def unreadable(version: Long, cause: CheckpointFailure, timeout: FiniteDuration): CheckpointFailure = {
    val context = TaskContext.get()
    if (version > 0 && (context == null || !context.isInterrupted())) {
      try {
        coordinator.ask(Unreadable(job.header(version, version), shortened(cause.reason)).toMessage, timeout)
        cause
      } catch {
        case e: CheckpointFailure if CommitMessages.Verdicts(e.error) => new CheckpointFailure(e.error, e.reason, cause)
        case NonFatal(e) =>
          cause.addSuppressed(e)
          cause
      }
    } else {
      cause
    }
  }

  /** The error of a task whose ack does not count. */
  def refused(outcome: String, version: Long, reason: String): Exception = {
    val what = s"ack of version $version of ${job.id} rejected: $reason"
    outcome match {
      case AckReply.Denied =>
        val context = TaskContext.get()
        new CommitDeniedException(what, if (context == null) -1 else context.stageId(), job.id.partitionId,
          if (context == null) 0 else context.attemptNumber())
      case AckReply.Unknown => new CheckpointFailure("UnknownSubtaskError", what)
      case _ => new CheckpointFailure("CheckpointDiscardedError", what)
    }
  }
}

private[ckpt] object CommitMessages {
  private def shortened(text: String): String = text.take(Coordinator.MaxReason)

  /** Errors with which the coordinator confirms damaged state. */
  private val Verdicts = Set("DamagedCheckpointError", "RolledBackError", "FencedError")
}
