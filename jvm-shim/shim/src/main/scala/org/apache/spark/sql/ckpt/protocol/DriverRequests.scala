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

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

/**
 * The first request to a side process.
 *
 * @param hung number of its predecessors that were killed because they gave no sign of life
 */
private[ckpt] final case class Start(protocol: Int, sparkVersion: String, pid: Long, hung: Long) {
  def toMessage: Message = {
    val header = Message.newHeader()
    header.put("protocol", protocol).put("spark_version", sparkVersion).put("pid", pid).put("hung", hung)
    Message("start", header.toString)
  }
}

/** Request to check the settings of a session. */
private[ckpt] final case class Check(settings: Iterable[(String, String)]) {
  def toMessage: Message = {
    val header = Message.newHeader()
    val target = header.putObject("settings")
    settings.foreach { case (key, value) => target.put(key, value) }
    Message("check", header.toString)
  }
}

/** A stateful operator of a batch and its stores, one for each name and subtask. */
private[ckpt] final case class OperatorPlan(
    operatorId: Long,
    name: String,
    stores: Seq[String],
    parallelism: Int,
    stateFormatVersion: Option[Int])

/** A source of a batch. `offset` is the JSON text of the end offset. */
private[ckpt] final case class SourceOffset(name: String, offset: Option[String])

/**
 * A micro-batch runs its first stateful task.
 *
 * @param sources   None if Spark has no offsets of the batch
 * @param offsetLog text of Spark's `offsets/<batch>`
 * @param settings  settings of spark-ckpt
 * @param hadoop    settings of the location's file system
 * @param realTimeMs length of the batch in real-time mode, where [[EndOffsets]] follows the acks; None in other modes
 * @param logEpoch  log epoch at the start of the query, if its logs are fenced
 * @param reportDetails whether the driver wants operators and subtasks in reports of checkpoints
 */
private[ckpt] final case class Trigger(
    job: String,
    location: String,
    queryId: String,
    queryName: Option[String],
    batchId: Long,
    version: Long,
    checkpointFormat: Int,
    sparkVersion: String,
    operators: Seq[OperatorPlan],
    sources: Option[Seq[SourceOffset]],
    offsetLog: Option[String],
    settings: Iterable[(String, String)],
    hadoop: Iterable[(String, String)],
    realTimeMs: Option[Long] = None,
    logEpoch: Option[Long] = None,
    reportDetails: Boolean = false) {

  def toMessage: Message = Message(Trigger.Kind, toJson.toString)

  private[protocol] def toJson: ObjectNode = {
    val header = Message.newHeader()
    header
      .put("job", job)
      .put("location", location)
      .put("query_id", queryId)
      .put("query_name", queryName.orNull)
      .put("batch_id", batchId)
      .put("version", version)
      .put("checkpoint_format", checkpointFormat)
      .put("spark_version", sparkVersion)
    val plans = header.putArray("operators")
    operators.foreach { operator =>
      val plan = plans.addObject().put("operator_id", operator.operatorId).put("name", operator.name)
      val stores = plan.putArray("stores")
      operator.stores.foreach(stores.add)
      plan.put("parallelism", operator.parallelism)
      operator.stateFormatVersion match {
        case Some(version) => plan.put("state_format_version", version)
        case None => plan.putNull("state_format_version")
      }
    }
    sources.foreach { all =>
      val target = header.putArray("sources")
      all.foreach(source => target.addObject().put("name", source.name).put("offset", source.offset.orNull))
    }
    offsetLog.foreach(header.put("offset_log", _))
    realTimeMs.foreach(header.put("real_time_ms", _))
    logEpoch.foreach(header.put("log_epoch", _))
    if (reportDetails) header.put("report_details", true)
    val ours = header.putObject("settings")
    settings.foreach { case (key, value) => ours.put(key, value) }
    val fileSystem = header.putObject("hadoop")
    hadoop.foreach { case (key, value) => fileSystem.put(key, value) }
    header
  }
}

private[ckpt] object Trigger {
  val Kind = "trigger"

  /** The trigger inside the request of a store without a query. */
  def within(header: JsonNode): Option[Message] =
    if (header.has("standalone")) Some(Message(Kind, header.path("standalone").toString)) else None
}

/**
 * The end offsets of a batch in real-time mode are known, after all its tasks.
 *
 * @param offsetLog text of `offsets/<batch>`, which Spark is about to write
 */
private[ckpt] final case class EndOffsets(job: String, batchId: Long, offsetLog: String) {
  def toMessage: Message = {
    val header = Message.newHeader()
    header.put("job", job).put("batch_id", batchId).put("version", batchId + 1).put("offset_log", offsetLog)
    Message(EndOffsets.Kind, header.toString)
  }
}

private[ckpt] object EndOffsets {
  val Kind = "end_offsets"
}

/** The attempt of a task has failed. */
private[ckpt] final case class TaskFailed(
    job: String,
    stageId: Int,
    stageAttempt: Int,
    partition: Int,
    attemptNumber: Int,
    reason: String) {

  def toMessage: Message = {
    val header = Message.newHeader()
    header
      .put("job", job)
      .put("stage_id", stageId)
      .put("stage_attempt", stageAttempt)
      .put("partition", partition)
      .put("attempt_number", attemptNumber)
      .put("reason", reason)
    Message(TaskFailed.Kind, header.toString)
  }
}

private[ckpt] object TaskFailed {
  val Kind = "task_failed"
}

/** A job has ended, with this status. */
private[ckpt] final case class Close(job: String, status: String) {
  def toMessage: Message = Message(Close.Kind, Message.newHeader().put("job", job).put("status", status).toString)
}

private[ckpt] object Close {
  val Kind = "close"
}
