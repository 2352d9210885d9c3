// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.protocol

import com.fasterxml.jackson.databind.annotation.JsonDeserialize

/**
 * An unsolicited message of the coordinator to executors (docs/protocol.md, section 1.4).
 *
 * @param event   one of the names in the companion object
 * @param version version of the state; None if it concerns the whole job
 * @param partitions number of partitions of a rescale
 */
private[ckpt] final case class Notification(
    event: String,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) version: Option[Long] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Integer]) partitions: Option[Int] = None) {

  def toMessage(job: String): Message = Message(Message.Notify, job, Notification.json.write(this))
}

private[ckpt] object Notification {
  val Complete = "complete"
  val Aborted = "aborted"
  val Ended = "ended"

  /** For the driver only: the job is rolling back. */
  val GoingBack = "going_back"

  /** For the driver only: the next batch should have another number of partitions. */
  val Rescale = "rescale"

  private val json = new JsonForm(classOf[Notification])

  def of(message: Message): Notification = json.read(message)
}
