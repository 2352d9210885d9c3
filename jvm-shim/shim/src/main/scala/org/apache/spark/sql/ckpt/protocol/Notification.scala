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

/**
 * An unsolicited message of the coordinator to executors (docs/protocol.md, section 1.4).
 *
 * @param event   one of the names in the companion object
 * @param version version of the state; -1 if it concerns the whole job
 */
private[ckpt] final case class Notification(job: String, event: String, version: Long) {
  def toMessage: Message = {
    val header = Message.newHeader().put("job", job).put("event", event)
    if (version < 0) header.putNull("version") else header.put("version", version)
    Message(Message.Notify, header.toString)
  }
}

private[ckpt] object Notification {
  val Complete = "complete"
  val Aborted = "aborted"
  val Ended = "ended"

  /** For the driver only: the job is rolling back. */
  val GoingBack = "going_back"

  def of(message: Message): Notification = {
    val header = message.json
    Notification(header.path("job").asText(), header.path("event").asText(), header.path("version").asLong(-1))
  }
}
