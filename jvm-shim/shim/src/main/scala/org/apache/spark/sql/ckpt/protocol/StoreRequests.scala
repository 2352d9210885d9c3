// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.protocol

import com.fasterxml.jackson.annotation.{JsonFormat, JsonUnwrapped}
import com.fasterxml.jackson.databind.JsonNode

/** A store of a subtask: the unit that acknowledges a checkpoint. In JSON an array. */
@JsonFormat(shape = JsonFormat.Shape.ARRAY)
private[ckpt] final case class SubtaskKey(operatorId: Long, store: String, partition: Int)

/**
 * Fields that identify the store and the version in each of its requests.
 *
 * @param job        run id of the query, or `standalone:<directory>`
 * @param version    version to read, or written
 * @param batchId    number of the requesting batch
 * @param standalone trigger of the job of a store without a query; it travels with each request, for the driver
 */
private[ckpt] final case class StoreHeader(
    job: String, subtask: SubtaskKey, version: Long, batchId: Long, standalone: Option[Trigger] = None)
    extends JobMessage

/** An attempt of a task, as the coordinator's authorisation identifies it. In JSON an array. */
@JsonFormat(shape = JsonFormat.Shape.ARRAY)
private[ckpt] final case class TaskAttempt(
    stageId: Int,
    stageAttempt: Int,
    partition: Int,
    attemptNumber: Int,
    taskAttemptId: Long,
    executor: String)

/**
 * What the driver itself reads in a [[Locate]] or an [[Ack]]. The rest it only forwards.
 *
 * @param stateId    id that Spark requests, or of the acknowledged state
 * @param have       as in [[Locate]]
 * @param task       the attempt that acknowledges
 * @param standalone as in [[StoreHeader]]
 */
private[ckpt] final case class StoreRequest(
    subtask: SubtaskKey,
    version: Long,
    batchId: Long,
    stateId: Option[String] = None,
    have: Option[String] = None,
    task: Option[TaskAttempt] = None,
    standalone: Option[JsonNode] = None)

private[ckpt] object StoreRequest {
  private val json = new JsonForm(classOf[StoreRequest])

  def of(request: Message): StoreRequest = json.read(request)
}

/**
 * Request for the location of the state of a version.
 *
 * @param stateId id that Spark requests
 * @param have    id of the state of this version in the store's memory; for the driver, which knows the newest ids
 */
private[ckpt] final case class Locate(
    @JsonUnwrapped store: StoreHeader, stateId: Option[String], have: Option[String]) {
  def toMessage: Message = Message(Locate.Kind, store.job, Locate.json.write(this))
}

private[ckpt] object Locate {
  val Kind = "locate"
  private val json = new JsonForm(classOf[Locate])
}

/** A segment that was written in the background, which travels with an ack. */
private[ckpt] sealed trait ReadySegment {
  def segment: SegmentRef

  /** Last version whose changes it has. */
  def version: Long = segment.version
}

/** A base snapshot of an earlier version. */
private[ckpt] final case class ReadyBase(segment: SegmentRef, stateId: String) extends ReadySegment

/**
 * Deltas that were merged into one.
 *
 * @param digest the coordinator's digest of the deltas, from its request
 */
private[ckpt] final case class ReadyMerge(segment: SegmentRef, digest: String) extends ReadySegment

/**
 * Versions whose changes a base or merged deltas have. In JSON an array.
 *
 * @param firstVersion 0 for a base
 * @param version      last one; 0 for a base whose writing has not begun
 */
@JsonFormat(shape = JsonFormat.Shape.ARRAY)
private[ckpt] final case class VersionSpan(firstVersion: Long, version: Long)

private[ckpt] object VersionSpan {
  def ofBase(version: Long): VersionSpan = VersionSpan(0, version)
}

/**
 * Microseconds of the work for an ack.
 *
 * @param restore time to load state for the batch; None if the store had it in memory
 */
private[ckpt] final case class AckTimings(snapshot: Long, write: Long, restore: Option[Long])

/**
 * A store is ready: its changes of a batch, and sometimes a base of an earlier version.
 *
 * @param stateId     id of the state that the changes lead to
 * @param baseStateId id of the state that the changes start from, None at version 0
 * @param merged      deltas that were merged into one
 * @param inProgress  a base and merged deltas that the store is writing, or that wait for a later ack
 * @param compactionFailure failure of a base or a merge since the last ack that counted
 */
private[ckpt] final case class Ack(
    @JsonUnwrapped store: StoreHeader,
    stateId: String,
    baseStateId: Option[String],
    rows: Long,
    rowsUpdated: Long,
    rowsRemoved: Long,
    task: TaskAttempt,
    delta: SegmentRef,
    base: Option[ReadyBase],
    merged: Option[ReadyMerge],
    inProgress: Seq[VersionSpan],
    compactionFailure: Option[String],
    timingsUs: AckTimings) {

  def toMessage: Message = {
    val segments = delta +: (base ++ merged).map(_.segment).toSeq
    Message(Ack.Kind, store.job, Ack.json.write(this), Blocks.index(segments), Blocks.payload(segments))
  }
}

private[ckpt] object Ack {
  val Kind = "ack"
  private val json = new JsonForm(classOf[Ack])
}

/** A store cannot acknowledge. */
private[ckpt] final case class Decline(@JsonUnwrapped store: StoreHeader, task: TaskAttempt, reason: String) {
  def toMessage: Message = Message(Decline.Kind, store.job, Decline.json.write(this))
}

private[ckpt] object Decline {
  val Kind = "decline"
  private val json = new JsonForm(classOf[Decline])
}

/** A store could not read the state of a version from its files. */
private[ckpt] final case class Unreadable(@JsonUnwrapped store: StoreHeader, reason: String) {
  def toMessage: Message = Message("unreadable", store.job, Unreadable.json.write(this))
}

private[ckpt] object Unreadable {
  private val json = new JsonForm(classOf[Unreadable])
}

/** Request to tell if a run's query is active in the driver. */
private[ckpt] final case class Query(runId: String) {
  def toMessage: Message = Message(Query.Kind, runId, "{}")
}

private[ckpt] object Query {
  val Kind = "query"
}
