// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.locate

import scala.concurrent.duration.FiniteDuration

import org.apache.spark.sql.ckpt.client.CoordinatorClient
import org.apache.spark.sql.ckpt.common.{CheckpointFailure, StateIds}
import org.apache.spark.sql.ckpt.files.StateFiles
import org.apache.spark.sql.ckpt.protocol.{Locate, LocateReply, SharedFileLimits, ShippingLimits}
import org.apache.spark.sql.execution.streaming.state.StateStoreId

/**
 * Locator of the state of a version: asks the coordinator, or reads the directory if no query runs.
 *
 * @param hasIds true if Spark's checkpoint format has state ids
 */
private[ckpt] final class StateLocator(
    job: StoreJob,
    coordinator: CoordinatorClient,
    files: StateFiles,
    timeout: FiniteDuration,
    ackThreshold: Long,
    hasIds: Boolean) {

  /** The coordinator's latest limits. */
  @volatile private var limits = Option.empty[ShippingLimits]

  /** Bytes of one segment up to which it travels with the ack. */
  def inlineLimit: Long = limits.fold(ackThreshold)(_.ackThreshold)

  /** Limits on a file that this task writes together with others. */
  def sharedFile: SharedFileLimits = limits.fold(SharedFileLimits.Alone)(_.sharedFile)

  /**
   * @param stateId id that Spark requests
   * @param held    id of the state of this version in memory
   * @return None if the state in memory is the requested one
   */
  def locate(version: Long, stateId: Option[String], held: Option[String]): Option[StateLocation] =
    try {
      job match {
        case _: ReaderJob => fromDirectory(version, stateId)
        case _ => ask(version, stateId, held)
      }
    } catch {
      // A batch of one query reads the state of another: the task does not identify the store's query. For a task of an
      // ended run, the ack will be refused.
      case e: CheckpointFailure if e.error == CheckpointFailure.NoSuchQuery && DirectoryLocator.hasCheckpoints(files) =>
        fromDirectory(version, stateId)
      case e: CheckpointFailure => throw job.refusal(version, e)
    }

  private def fromDirectory(version: Long, stateId: Option[String]): Option[StateLocation] =
    Some(StateLocator.checked(job.id, version, stateId, new DirectoryLocator(files).locate(job.id, version)))

  private def ask(version: Long, stateId: Option[String], held: Option[String]): Option[StateLocation] = {
    // Without ids in the format, Spark still passes those found in its commit log at the start, and never replaces
    // them. Its own providers ignore them too.
    val request = Locate(job.header(version, version), stateId.filter(_ => hasIds), held.filter(_.nonEmpty))
    val reply = LocateReply.of(coordinator.ask(request.toMessage, timeout))
    limits = reply.limits
    if (reply.current) None else Some(StateLocation.of(reply))
  }
}

private[ckpt] object StateLocator {

  /**
   * Checks, in place of the coordinator, that the located state is the one that Spark requests.
   *
   * @throws CheckpointFailure if it is not
   */
  def checked(id: StateStoreId, version: Long, asked: Option[String], found: StateLocation): StateLocation = {
    asked.filterNot(StateIds.areEqual(_, found.stateId)).foreach { other =>
      throw new CheckpointFailure("StateIdMismatchError",
        s"$id: Spark requests state $other of version $version, but the completed checkpoint has state " +
          s"${found.stateId} of it. Spark's commit log and the completed checkpoints are of different runs: go back " +
          "to a batch on which both agree")
    }
    found
  }
}
