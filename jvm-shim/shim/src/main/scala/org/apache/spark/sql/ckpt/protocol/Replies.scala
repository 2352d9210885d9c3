// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.protocol

import com.fasterxml.jackson.databind.annotation.JsonDeserialize

/**
 * Request of a reply for a shorter chain, on which the store works in the background.
 *
 * @param kind     one of the names in the companion object
 * @param inputs   neighbouring deltas to merge, oldest first; empty unless it is a merge
 * @param digest   the coordinator's digest of them, which goes back with the merged delta
 * @param required the next ack must bring a base
 * @param heavy    true if lighter merges of the executor should not wait for this one
 */
private[ckpt] final case class CompactionRequest(
    kind: String = "none",
    inputs: Seq[SegmentRef] = Nil,
    digest: String = "",
    required: Boolean = false,
    heavy: Boolean = false) {

  /** True if a base is due. */
  def isFull: Boolean = kind == CompactionRequest.Full

  def isMerge: Boolean = kind == CompactionRequest.Merge && inputs.nonEmpty

  /** First version whose changes the inputs have. */
  def firstVersion: Long = inputs.head.firstVersion

  /** Last one. */
  def version: Long = inputs.last.version

  private[protocol] def withBlocks(from: Blocks.Cursor): CompactionRequest =
    if (inputs.isEmpty) this else copy(inputs = inputs.map(from.next))
}

private[ckpt] object CompactionRequest {
  private val Full = "full"
  private val Merge = "merge"

  val Nothing: CompactionRequest = CompactionRequest()
  val Base: CompactionRequest = CompactionRequest(Full)
  val RequiredBase: CompactionRequest = CompactionRequest(Full, required = true)

  /** A merge of these deltas, oldest first. */
  def merge(deltas: Seq[SegmentRef], digest: String): CompactionRequest = CompactionRequest(Merge, deltas, digest)
}

/**
 * Limits on a file that tasks of one executor write together.
 *
 * @param maxWaitMillis how long the first task waits for others
 * @param maxBytes      size from which the file waits for no further task
 */
private[ckpt] final case class SharedFileLimits(maxWaitMillis: Long, maxBytes: Long)

private[ckpt] object SharedFileLimits {

  /** Each task writes its own file. */
  val Alone: SharedFileLimits = SharedFileLimits(maxWaitMillis = 0, maxBytes = 0)
}

/**
 * Limits within which a store ships its segments. The coordinator sets them with all tasks of the batch in view.
 *
 * @param ackThreshold     bytes of a segment up to which it travels with an ack
 * @param sharedFileWaitMs as in [[SharedFileLimits]]
 * @param sharedFileBytes  as in [[SharedFileLimits]]
 */
private[ckpt] final case class ShippingLimits(ackThreshold: Long, sharedFileWaitMs: Long, sharedFileBytes: Long) {
  def sharedFile: SharedFileLimits = SharedFileLimits(sharedFileWaitMs, sharedFileBytes)
}

/**
 * How a store loads the state of a version. All costs are in rows of a load of everything.
 *
 * @param mode         one of the names in the companion object
 * @param budget       cost of lookups above which the rest is loaded; 0 if the first access loads everything
 * @param rowCost      cost of a lookup in the first segment, once the changes by all others are loaded
 * @param keyGroupCost additional cost of the first lookup in a key group
 * @param restAfterMs  milliseconds from the end of the first batch until the rest is loaded in the background
 */
private[ckpt] final case class RestorePlan(
    mode: String = RestorePlan.BySegment,
    budget: Long = 0,
    rowCost: Long = 0,
    keyGroupCost: Long = 0,
    restAfterMs: Long = 0) {

  /** True if rows stay in their segments until a batch wants them. */
  def isLazy: Boolean = mode == RestorePlan.ByRow

  /** True if everything is loaded one segment after another. */
  def isBySegment: Boolean = mode == RestorePlan.BySegment

  /** This plan with everything loaded before the batch. */
  def eager: RestorePlan = if (isLazy) RestorePlan(RestorePlan.ByKeyGroup) else this
}

private[ckpt] object RestorePlan {
  final val BySegment = "by_segment"
  final val ByKeyGroup = "by_key_group"
  final val ByRow = "by_row"

  /** For state of which nothing is known but its segments. */
  val AtOnce: RestorePlan = RestorePlan()
}

/**
 * The reply to [[Locate]].
 *
 * @param current    true if the store has the state that counts; then the reply has nothing else but `limits`
 * @param limits     None if the coordinator has not set them yet
 * @param stateId    None at version 0
 * @param compaction what the store should do to the chain
 * @param rows       an estimate if the plan loads by segment
 * @param restore    how the store loads the state
 * @param keepDeltas as in [[AckReply]]
 */
private[ckpt] final case class LocateReply(
    current: Boolean = false,
    limits: Option[ShippingLimits] = None,
    stateId: Option[String] = None,
    keyGroupFactors: Array[Int] = Array.emptyIntArray,
    operator: String = "",
    @JsonDeserialize(contentAs = classOf[java.lang.Integer]) stateFormatVersion: Option[Int] = None,
    rows: Long = 0,
    segments: Seq[SegmentRef] = Nil,
    compaction: CompactionRequest = CompactionRequest.Nothing,
    restore: RestorePlan = RestorePlan.AtOnce,
    keepDeltas: Boolean = false)

private[ckpt] object LocateReply {
  private val json = new JsonForm(classOf[LocateReply])

  def of(reply: Message): LocateReply = {
    val fields = json.read(reply)
    val blocks = new Blocks.Cursor(reply)
    fields.copy(segments = fields.segments.map(blocks.next), compaction = fields.compaction.withBlocks(blocks))
  }

  /** The reply that the driver gives itself. */
  def current(limits: Option[ShippingLimits]): Message =
    Message.reply(json.write(LocateReply(current = true, limits = limits)))
}

/**
 * The reply to [[Ack]].
 *
 * @param outcome          one of the names in the companion object
 * @param stateId          id of the state that counts
 * @param compaction       what the store should do to its chain
 * @param completed        id of the checkpoint that this ack completes
 * @param completedVersion newest complete version of the job
 * @param reason           reason for people, if the ack does not count
 * @param keepDeltas       copies of deltas are worth their bytes, because they will be merged
 */
private[ckpt] final case class AckReply(
    outcome: String,
    stateId: Option[String] = None,
    compaction: CompactionRequest = CompactionRequest.Nothing,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) completed: Option[Long] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) completedVersion: Option[Long] = None,
    reason: Option[String] = None,
    keepDeltas: Boolean = false) {

  def isSuccess: Boolean = outcome == AckReply.Success

  /** False if the ack must not count when it is resent. */
  def counts: Boolean = !AckReply.NotCounted(outcome)
}

private[ckpt] object AckReply {
  val Success = "success"
  val Duplicate = "duplicate"
  val Denied = "denied"
  val Unknown = "unknown"
  val Discarded = "discarded"

  private val NotCounted = Set(Denied, Unknown, Discarded)
  private val json = new JsonForm(classOf[AckReply])

  def of(reply: Message): AckReply = {
    val fields = fieldsOf(reply)
    fields.copy(compaction = fields.compaction.withBlocks(new Blocks.Cursor(reply)))
  }

  /** Without the blocks of deltas to merge, for the driver. */
  def fieldsOf(reply: Message): AckReply = json.read(reply)
}

/** The reply to [[EndOffsets]]: the checkpoint is durable. */
private[ckpt] final case class EndOffsetsReply(completedVersion: Long)

private[ckpt] object EndOffsetsReply {
  private val json = new JsonForm(classOf[EndOffsetsReply])

  def of(reply: Message): EndOffsetsReply = json.read(reply)
}

/**
 * The reply to [[Rescale]]: the next batch may have the number.
 *
 * @param before   number of partitions before
 * @param stateIds ids of the states that the batch begins with, by operator: an id per store for each partition; empty
 *                 with checkpoint format 1
 */
private[ckpt] final case class RescaleReply(before: Int, stateIds: Map[String, Seq[Seq[String]]] = Map.empty)

private[ckpt] object RescaleReply {
  private val json = new JsonForm(classOf[RescaleReply])

  def of(reply: Message): RescaleReply = json.read(reply)
}

/** The reply to [[Query]]. */
private[ckpt] final case class QueryReply(active: Boolean) {
  def toMessage: Message = Message.reply(QueryReply.json.write(this))
}

private[ckpt] object QueryReply {
  private val json = new JsonForm(classOf[QueryReply])

  def of(reply: Message): QueryReply = json.read(reply)
}

/** The reply to [[Trigger]], with the fields that the JVM needs. */
private[ckpt] final case class TriggerReply(limits: ShippingLimits)

private[ckpt] object TriggerReply {
  private val json = new JsonForm(classOf[TriggerReply])

  def of(reply: Message): TriggerReply = json.read(reply)
}
