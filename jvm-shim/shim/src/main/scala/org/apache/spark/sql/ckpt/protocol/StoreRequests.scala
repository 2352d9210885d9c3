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
 * The fields by which each request of a store names the store, and the version that it is about.
 *
 * @param job        run id of the query, or `standalone:<directory>`
 * @param version    to read, or the one written
 * @param batchId    number of the batch that asks
 * @param standalone trigger of the job if no query stands behind the store; it travels with each request
 */
private[ckpt] final case class StoreHeader(
    job: String,
    operatorId: Long,
    store: String,
    partition: Int,
    version: Long,
    batchId: Long,
    standalone: Option[Trigger] = None) {

  private[protocol] def toJson: ObjectNode = {
    val header = Message.newHeader()
      .put("job", job)
      .put("operator_id", operatorId)
      .put("store", store)
      .put("partition", partition)
      .put("version", version)
      .put("batch_id", batchId)
    standalone.foreach(trigger => header.set[ObjectNode]("standalone", trigger.toJson))
    header
  }
}

private[ckpt] object StoreHeader {

  /** The store that a request comes from, without its trigger: see [[Trigger.within]]. */
  def of(header: JsonNode): StoreHeader = StoreHeader(
    header.path("job").asText(),
    header.path("operator_id").asLong(),
    header.path("store").asText(),
    header.path("partition").asInt(),
    header.path("version").asLong(),
    header.path("batch_id").asLong())
}

/** An attempt of a task, as the coordinator's authorisation knows it. */
private[ckpt] final case class TaskAttempt(
    stageId: Int,
    stageAttempt: Int,
    partition: Int,
    attemptNumber: Int,
    taskAttemptId: Long,
    executor: String) {

  private[protocol] def putInto(header: ObjectNode): Unit =
    header.putObject("task")
      .put("stage_id", stageId)
      .put("stage_attempt", stageAttempt)
      .put("partition", partition)
      .put("attempt_number", attemptNumber)
      .put("task_attempt_id", taskAttemptId)
      .put("executor", executor)
}

/**
 * Asks where the state of a version is.
 *
 * @param stateId that Spark asks for
 * @param have    id of the state of this version that the store has in memory; for the driver, which knows the newest
 *                ones
 */
private[ckpt] final case class Locate(store: StoreHeader, stateId: Option[String], have: Option[String]) {
  def toMessage: Message = {
    val header = store.toJson.put("ckpt_id", stateId.orNull)
    have.foreach(header.put("have", _))
    Message(Locate.Kind, header.toString)
  }
}

private[ckpt] object Locate {
  val Kind = "locate"

  def of(header: JsonNode): Locate =
    Locate(
      StoreHeader.of(header),
      Option(header.path("ckpt_id").asText(null)),
      Option(header.path("have").asText(null)))
}

/**
 * Place and size of a segment, which lies in a file or in the payload.
 *
 * @param start     where in a file that several tasks have written the segment begins, with `fileBytes` its length
 * @param groups    number of key groups that have a block
 * @param path      relative to the `ckpt` directory, None if the bytes are in the payload
 */
private[ckpt] final case class SegmentDescription(
    start: Option[Long],
    fileBytes: Option[Long],
    groups: Int,
    bytes: Long,
    rows: Long,
    path: Option[String]) {

  private[protocol] def putInto(target: ObjectNode): ObjectNode = {
    start.foreach(target.put("start", _))
    fileBytes.foreach(target.put("file_bytes", _))
    target
      .put("groups", groups)
      .put("bytes", bytes)
      .put("rows", rows)
      .put("path", path.orNull)
  }
}

/** A base snapshot of an earlier version, which travels with an ack. */
private[ckpt] final case class BaseDescription(segment: SegmentDescription, version: Long, stateId: String)

/**
 * A store is ready: its changes of a batch, and perhaps a base of an earlier version.
 *
 * @param stateId     of the version that the changes lead to
 * @param baseStateId of the version that they are changes of, None at version 0
 * @param baseFailure why a base failed since the last ack that counts
 * @param index       of `delta` and `base`
 * @param payload     of both
 */
private[ckpt] final case class Ack(
    store: StoreHeader,
    stateId: String,
    baseStateId: Option[String],
    rows: Long,
    rowsUpdated: Long,
    rowsRemoved: Long,
    task: TaskAttempt,
    delta: SegmentDescription,
    base: Option[BaseDescription],
    baseFailure: Option[String],
    snapshotMicros: Long,
    writeMicros: Long,
    index: Array[Byte],
    payload: Array[Byte]) {

  def toMessage: Message = {
    val header = store.toJson
      .put("ckpt_id", stateId)
      .put("base_ckpt_id", baseStateId.orNull)
      .put("rows", rows)
      .put("rows_updated", rowsUpdated)
      .put("rows_removed", rowsRemoved)
    task.putInto(header)
    delta.putInto(header.putObject("delta"))
    base match {
      case Some(shipped) =>
        shipped.segment.putInto(header.putObject("base"))
          .put("version", shipped.version)
          .put("ckpt_id", shipped.stateId)
      case None => header.putNull("base")
    }
    baseFailure.foreach(header.put("base_failure", _))
    header.putObject("timings_us")
      .put("snapshot", snapshotMicros)
      .put("write", writeMicros)
    Message(Ack.Kind, header.toString, index, payload)
  }
}

private[ckpt] object Ack {
  val Kind = "ack"

  def stageId(header: JsonNode): Int = header.path("task").path("stage_id").asInt()

  def stateId(header: JsonNode): String = header.path("ckpt_id").asText()
}

/** A store has nothing to acknowledge. */
private[ckpt] final case class Decline(store: StoreHeader, task: TaskAttempt, reason: String) {
  def toMessage: Message = {
    val header = store.toJson
    task.putInto(header)
    header.put("reason", reason)
    Message(Decline.Kind, header.toString)
  }
}

private[ckpt] object Decline {
  val Kind = "decline"
}

/** A store could not read the state of a version from its files. */
private[ckpt] final case class Unreadable(store: StoreHeader, reason: String) {
  def toMessage: Message = Message("unreadable", store.toJson.put("reason", reason).toString)
}

/** Asks whether a run is that of a query that is active in the driver. */
private[ckpt] final case class Query(runId: String) {
  def toMessage: Message = Message(Query.Kind, Message.newHeader().put("job", runId).toString)
}

private[ckpt] object Query {
  val Kind = "query"
}
