// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.protocol

/**
 * The first request to a side process.
 *
 * @param hung number of its predecessors that were killed because they gave no sign of life
 */
private[ckpt] final case class Start(protocol: Int, sparkVersion: String, pid: Long, hung: Long) {
  def toMessage: Message = Message("start", "", Start.json.write(this))
}

private[ckpt] object Start {
  private val json = new JsonForm(classOf[Start])
}

/** Request to check the settings of a session. */
private[ckpt] final case class Check(settings: Map[String, String]) {
  def toMessage: Message = Message("check", "", Check.json.write(this))
}

private[ckpt] object Check {
  private val json = new JsonForm(classOf[Check])
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
 * @param sources   empty if Spark has no offsets of the batch
 * @param offsetLog text of Spark's `offsets/<batch>`
 * @param settings  settings of spark-ckpt
 * @param hadoop    settings of the location's file system
 * @param realTimeMs length of the batch in real-time mode, where [[EndOffsets]] follows the acks; None in other modes
 * @param logEpoch  log epoch at the start of the query, if its logs are fenced
 * @param reportDetails whether the driver wants operators and subtasks in reports of checkpoints
 * @param meaning   what the state of the query means, in the first trigger of a run
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
    sources: Seq[SourceOffset],
    offsetLog: Option[String],
    settings: Map[String, String],
    hadoop: Map[String, String],
    realTimeMs: Option[Long] = None,
    logEpoch: Option[Long] = None,
    reportDetails: Boolean = false,
    meaning: Option[QueryMeaning] = None)
    extends JobMessage {

  def toMessage: Message = Message(Trigger.Kind, job, Trigger.json.write(this))
}

private[ckpt] object Trigger {
  val Kind = "trigger"
  private val json = new JsonForm(classOf[Trigger])

  /** The trigger inside the request of a store without a query. */
  def within(job: String, request: StoreRequest): Option[Message] =
    request.standalone.map(trigger => Message(Kind, job, trigger.toString))
}

/**
 * The end offsets of a batch in real-time mode are known, after all its tasks.
 *
 * @param offsetLog text of `offsets/<batch>`, which Spark is about to write
 */
private[ckpt] final case class EndOffsets(job: String, batchId: Long, version: Long, offsetLog: String)
    extends JobMessage {
  def toMessage: Message = Message(EndOffsets.Kind, job, EndOffsets.json.write(this))
}

private[ckpt] object EndOffsets {
  val Kind = "end_offsets"
  private val json = new JsonForm(classOf[EndOffsets])
}

/**
 * Spark is about to write the offsets of the next batch, which should have another number of partitions.
 *
 * @param version version of the state that the batch starts from
 */
private[ckpt] final case class Rescale(job: String, version: Long, partitions: Int) extends JobMessage {
  def toMessage: Message = Message("rescale", job, Rescale.json.write(this))
}

private[ckpt] object Rescale {
  private val json = new JsonForm(classOf[Rescale])
}

/** The attempt of a task has failed. */
private[ckpt] final case class TaskFailed(
    job: String,
    stageId: Int,
    stageAttempt: Int,
    partition: Int,
    attemptNumber: Int,
    reason: String)
    extends JobMessage {

  def toMessage: Message = Message(TaskFailed.Kind, job, TaskFailed.json.write(this))
}

private[ckpt] object TaskFailed {
  val Kind = "task_failed"
  private val json = new JsonForm(classOf[TaskFailed])
}

/** A job has ended, with this status. */
private[ckpt] final case class Close(job: String, status: String) extends JobMessage {
  def toMessage: Message = Message(Close.Kind, job, Close.json.write(this))
}

private[ckpt] object Close {
  val Kind = "close"
  private val json = new JsonForm(classOf[Close])
}
