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

import org.apache.spark.sql.ckpt.{CheckpointFailure, Message}

/** Finds out where the state of a version is: from the coordinator, or from the directory if no query runs. */
private[ckpt] final class StateLocator(job: StoreJob, files: StateFiles, timeoutSeconds: Long) {

  /**
   * @param stateId that Spark asks for
   * @param held    id of the state of this version that is in memory
   * @return None if the state that is held is the one that counts
   */
  def locate(version: Long, stateId: Option[String], held: Option[String]): Option[StateLocation] =
    try {
      job match {
        case _: ReaderJob => fromDirectory(version)
        case _ => ask(version, stateId, held)
      }
    } catch {
      // A batch of one query reads the state of another: the task says nothing of whose the store is. If it was a
      // task of a run that has ended, its ack will be refused.
      case e: CheckpointFailure if e.error == CheckpointFailure.NoSuchQuery && DirectoryLocator.hasCheckpoints(files) =>
        fromDirectory(version)
      case e: CheckpointFailure => throw job.refusal(version, e)
    }

  private def fromDirectory(version: Long): Option[StateLocation] =
    Some(new DirectoryLocator(files).locate(job.id, version))

  private def ask(version: Long, stateId: Option[String], held: Option[String]): Option[StateLocation] = {
    val header = job.header(version, job.batchOf(version))
    header.put("ckpt_id", stateId.orNull)
    held.filter(_.nonEmpty).foreach(header.put("have", _))
    val reply = CoordinatorClient.ask(Message("locate", header.toString), timeoutSeconds)
    if (reply.json.path("current").asBoolean(false)) None else Some(StateLocation.of(reply))
  }
}
