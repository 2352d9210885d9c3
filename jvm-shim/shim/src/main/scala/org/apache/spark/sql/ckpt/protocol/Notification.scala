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
package org.apache.spark.sql.ckpt.protocol

import com.fasterxml.jackson.databind.annotation.JsonDeserialize

/**
 * An unsolicited message of the coordinator to executors (docs/protocol.md, section 1.4).
 *
 * @param event   one of the names in the companion object
 * @param version version of the state; None if it concerns the whole job
 */
private[ckpt] final case class Notification(
    event: String, @JsonDeserialize(contentAs = classOf[java.lang.Long]) version: Option[Long] = None) {

  def toMessage(job: String): Message = Message(Message.Notify, job, Notification.json.write(this))
}

private[ckpt] object Notification {
  val Complete = "complete"
  val Aborted = "aborted"
  val Ended = "ended"

  /** For the driver only: the job is rolling back. */
  val GoingBack = "going_back"

  private val json = new JsonForm(classOf[Notification])

  def of(message: Message): Notification = json.read(message)
}
