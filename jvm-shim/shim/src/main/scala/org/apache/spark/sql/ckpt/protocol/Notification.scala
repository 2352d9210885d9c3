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
 * A message that the coordinator sends to executors unasked (docs/protocol.md, section 1.4).
 *
 * @param event   one of the names in the companion object
 * @param version the version of the state that it is about; -1 where it is about the whole job
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

  /** For the driver, which does not pass it on: the job is at work on going back. */
  val GoingBack = "going_back"

  def of(message: Message): Notification = {
    val header = message.json
    Notification(header.path("job").asText(), header.path("event").asText(), header.path("version").asLong(-1))
  }
}
