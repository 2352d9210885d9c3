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
 * Fields that identify the store and the version in each of its requests.
 *
 * @param job        run id of the query, or `standalone:<directory>`
 * @param version    version to read, or written
 * @param batchId    number of the requesting batch
 * @param standalone trigger of the job of a store without a query; it travels with each request
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

  /** The store that sent a request, without its trigger: see [[Trigger.within]]. */
  def of(header: JsonNode): StoreHeader = StoreHeader(
    header.path("job").asText(),
    header.path("operator_id").asLong(),
    header.path("store").asText(),
    header.path("partition").asInt(),
    header.path("version").asLong(),
    header.path("batch_id").asLong())
}

/** An attempt of a task, as the coordinator's authorisation identifies it. */
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
 * Request for the location of the state of a version.
 *
 * @param stateId id that Spark requests
 * @param have    id of the state of this version in the store's memory; for the driver, which knows the newest ids
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
 * Place and size of a segment, in a file or in the payload.
 *
 * @param start     start of the segment in a file of several tasks; `fileBytes` is the file's length
 * @param groups    number of key groups with a block
 * @param path      relative to the `ckpt` directory, None if the bytes are in the payload
 * @param isCompressed true if it has a compressed block
 * @param isOrdered true if it has all of the state at its version, in the order of hashes
 */
private[ckpt] final case class SegmentDescription(
    start: Option[Long],
    fileBytes: Option[Long],
    groups: Int,
    bytes: Long,
    rows: Long,
    path: Option[String],
    isCompressed: Boolean = false,
    isOrdered: Boolean = false) {

  private[protocol] def putInto(target: ObjectNode): ObjectNode = {
    start.foreach(target.put("start", _))
    fileBytes.foreach(target.put("file_bytes", _))
    if (isCompressed) target.put("compressed", true)
    if (isOrdered) target.put("ordered", true)
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
 * Merged deltas, which travel with an ack.
 *
 * @param inputs the coordinator's digest of the deltas, from its demand
 */
private[ckpt] final case class MergedDescription(
    segment: SegmentDescription, firstVersion: Long, version: Long, inputs: String)

/**
 * Versions whose changes a base or merged deltas have.
 *
 * @param firstVersion 0 for a base
 * @param version      last one; 0 for a base whose writing has not begun
 */
private[ckpt] final case class VersionSpan(firstVersion: Long, version: Long)

private[ckpt] object VersionSpan {
  def ofBase(version: Long): VersionSpan = VersionSpan(0, version)
}

/**
 * A store is ready: its changes of a batch, and sometimes a base of an earlier version.
 *
 * @param stateId     id of the state that the changes lead to
 * @param baseStateId id of the state that the changes start from, None at version 0
 * @param merged      deltas that were merged into one
 * @param inProgress  a base and merged deltas that the store is writing, or that wait for a later ack
 * @param baseFailure failure of a base or a merge since the last ack that counted
 * @param restoreMicros time to load state for the batch; None if the store had it in memory
 * @param index       index of `delta`, `base` and `merged`
 * @param payload     payload of all
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
    merged: Option[MergedDescription],
    inProgress: Seq[VersionSpan],
    baseFailure: Option[String],
    snapshotMicros: Long,
    writeMicros: Long,
    restoreMicros: Option[Long],
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
    merged.foreach { shipped =>
      shipped.segment.putInto(header.putObject("merged"))
        .put("first_version", shipped.firstVersion)
        .put("version", shipped.version)
        .put("inputs", shipped.inputs)
    }
    if (inProgress.nonEmpty) {
      val spans = header.putArray("in_progress")
      inProgress.foreach(span => spans.addArray().add(span.firstVersion).add(span.version))
    }
    baseFailure.foreach(header.put("base_failure", _))
    val timings = header.putObject("timings_us")
      .put("snapshot", snapshotMicros)
      .put("write", writeMicros)
    restoreMicros.foreach(timings.put("restore", _))
    Message(Ack.Kind, header.toString, index, payload)
  }
}

private[ckpt] object Ack {
  val Kind = "ack"

  def stageId(header: JsonNode): Int = header.path("task").path("stage_id").asInt()

  def stateId(header: JsonNode): String = header.path("ckpt_id").asText()
}

/** A store cannot acknowledge. */
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

/** Request to tell if a run's query is active in the driver. */
private[ckpt] final case class Query(runId: String) {
  def toMessage: Message = Message(Query.Kind, Message.newHeader().put("job", runId).toString)
}

private[ckpt] object Query {
  val Kind = "query"
}
