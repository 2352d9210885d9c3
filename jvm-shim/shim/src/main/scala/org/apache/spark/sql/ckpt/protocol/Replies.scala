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

import java.nio.{ByteBuffer, ByteOrder}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

/**
 * Demand of a reply for a base snapshot, or for a merge of deltas.
 *
 * @param required   the next ack must bring a base; it is due, too
 * @param keepDeltas copies of deltas are worth their bytes, because they will be merged
 */
private[ckpt] final case class BaseDemand(
    due: Boolean, required: Boolean, merge: Option[MergeDemand] = None, keepDeltas: Boolean = false)

private[ckpt] object BaseDemand {
  val Nothing: BaseDemand = BaseDemand(due = false, required = false)

  /**
   * @param index       the reply's index, from the deltas to merge on
   * @param payloadFrom start of their bytes in the payload
   */
  private[protocol] def of(reply: JsonNode, index: ByteBuffer, payload: Array[Byte], payloadFrom: Int): BaseDemand = {
    val required = reply.path("base_required").asBoolean(false)
    val merge = Option(reply.get("merge")).filter(_.isObject).map(MergeDemand.of(_, index, payload, payloadFrom))
    BaseDemand(required || reply.path("base_due").asBoolean(false), required, merge,
      keepDeltas = reply.path("keep_deltas").asBoolean(false))
  }
}

/**
 * A delta to merge.
 *
 * @param firstVersion first version whose changes it has
 * @param version      last one
 * @param file         None if its bytes came with the reply
 * @param keyGroups    key groups of its blocks, ascending
 * @param offsets      starts of these blocks, in the file or in `inline`
 * @param bytes        length of the delta; after a rescale, an estimate
 */
private[ckpt] final case class DeltaToMerge(
    firstVersion: Long,
    version: Long,
    file: Option[LocatedFile],
    keyGroups: Array[Int],
    offsets: Array[Long],
    bytes: Long,
    inline: Array[Byte])

/**
 * Demand for a merge of neighbouring deltas.
 *
 * @param firstVersion first version whose changes they have
 * @param version      last one
 * @param inputs       the coordinator's digest of them, which goes back with the merged delta
 * @param deltas       oldest first
 */
private[ckpt] final case class MergeDemand(
    firstVersion: Long, version: Long, inputs: String, deltas: Seq[DeltaToMerge])

private[ckpt] object MergeDemand {
  private[protocol] def of(merge: JsonNode, index: ByteBuffer, payload: Array[Byte], payloadFrom: Int): MergeDemand = {
    var from = payloadFrom
    val deltas = merge.path("deltas").elements().asScala.toSeq.map { delta =>
      val groups = delta.path("groups").asInt()
      val keyGroups = Array.fill(groups)(index.getInt())
      val offsets = Array.fill(groups)(index.getLong())
      val file = LocatedFile.of(delta)
      val bytes = delta.path("bytes").asLong()
      val inline = if (file.isDefined) Message.NoBytes else {
        val found = java.util.Arrays.copyOfRange(payload, from, from + bytes.toInt)
        from += bytes.toInt
        found
      }
      DeltaToMerge(delta.path("first_version").asLong(), delta.path("version").asLong(),
        file, keyGroups, offsets, bytes, inline)
    }
    MergeDemand(merge.path("first_version").asLong(), merge.path("version").asLong(),
      merge.path("inputs").asText(), deltas)
  }
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
 * @param ackThreshold bytes of a segment up to which it travels with an ack
 */
private[ckpt] final case class ShippingLimits(ackThreshold: Option[Long], sharedFile: SharedFileLimits) {
  private[protocol] def putInto(header: ObjectNode): Unit = {
    ackThreshold.foreach(header.put("ack_threshold", _))
    header.put("shared_file_wait_ms", sharedFile.maxWaitMillis).put("shared_file_bytes", sharedFile.maxBytes)
  }
}

private[ckpt] object ShippingLimits {
  val Unknown: ShippingLimits = ShippingLimits(None, SharedFileLimits.Alone)

  private[protocol] def of(reply: JsonNode): ShippingLimits = ShippingLimits(
    Option(reply.get("ack_threshold")).filterNot(_.isNull).map(_.asLong()),
    SharedFileLimits(reply.path("shared_file_wait_ms").asLong(0), reply.path("shared_file_bytes").asLong(0)))
}

/** Condition on a row: its key belongs to one of these partitions of `parallelism`. */
private[ckpt] final case class PartitionFilter(parallelism: Int, partitions: Set[Int])

private[ckpt] object PartitionFilter {

  /** From `[[parallelism, [partition, ...]], ...]`; none from nothing. */
  def of(json: JsonNode): Seq[PartitionFilter] = json.elements().asScala.toSeq.map { filter =>
    PartitionFilter(filter.path(0).asInt(), filter.path(1).elements().asScala.map(_.asInt()).toSet)
  }
}

/**
 * A state file.
 *
 * @param name  relative to the `ckpt` directory
 * @param bytes length, so that no request has to ask for it
 */
private[ckpt] final case class LocatedFile(name: String, bytes: Long)

private[ckpt] object LocatedFile {

  /** The file of a segment; None if its bytes come with the reply. */
  private[protocol] def of(segment: JsonNode): Option[LocatedFile] =
    Option(segment.path("path").asText(null)).map(LocatedFile(_, segment.path("file_bytes").asLong()))
}

/**
 * One base or delta.
 *
 * @param file    None if its bytes came with the reply
 * @param offsets starts of blocks, in the file or in `inline`
 * @param filters conditions on a row; all must hold
 * @param covers  number of versions whose changes a delta has
 * @param keyGroups key groups of the blocks, empty if the reply lacks them
 * @param bytes   bytes of the segment; after a rescale, an estimate
 * @param isOrdered true if it has all of the state at its version, in the order of hashes
 */
private[ckpt] final case class LocatedSegment(
    isBase: Boolean,
    file: Option[LocatedFile],
    offsets: Array[Long],
    inline: Array[Byte],
    filters: Seq[PartitionFilter],
    covers: Int = 1,
    keyGroups: Array[Int] = Array.emptyIntArray,
    bytes: Long = 0,
    isOrdered: Boolean = false)

/**
 * The reply to [[Locate]].
 *
 * @param isCurrent true if the store has the state that counts; then the reply has nothing else but `limits`
 * @param stateId   empty at version 0
 * @param byKeyGroup true if each key group may be loaded when it is needed: `rows` is exact, and the segments have
 *                   their key groups
 */
private[ckpt] final case class LocateReply(
    isCurrent: Boolean,
    limits: ShippingLimits,
    stateId: String,
    keyGroupFactors: Array[Int],
    operator: String,
    stateFormatVersion: Option[Int],
    rows: Long,
    segments: Seq[LocatedSegment],
    base: BaseDemand,
    byKeyGroup: Boolean = false)

private[ckpt] object LocateReply {
  def of(reply: Message): LocateReply = {
    val header = reply.json
    val index = ByteBuffer.wrap(reply.index).order(ByteOrder.LITTLE_ENDIAN)
    var payloadFrom = 0
    val byKeyGroup = header.path("by_key_group").asBoolean(false)
    val segments = header.path("segments").elements().asScala.toSeq.map { segment =>
      val offsets = Array.fill(segment.path("count").asInt())(index.getLong())
      val keyGroups = if (byKeyGroup) Array.fill(offsets.length)(index.getInt()) else Array.emptyIntArray
      val file = LocatedFile.of(segment)
      val inline = if (file.isDefined) Message.NoBytes
      else {
        val length = segment.path("bytes").asInt()
        val bytes = java.util.Arrays.copyOfRange(reply.payload, payloadFrom, payloadFrom + length)
        payloadFrom += length
        bytes
      }
      LocatedSegment(
        segment.path("kind").asText() == "base", file, offsets, inline, PartitionFilter.of(segment.path("filters")),
        segment.path("covers").asInt(1), keyGroups, segment.path("bytes").asLong(),
        segment.path("ordered").asBoolean(false))
    }
    LocateReply(
      header.path("current").asBoolean(false),
      ShippingLimits.of(header),
      header.path("ckpt_id").asText(""),
      header.path("key_group_factors").elements().asScala.map(_.asInt()).toArray,
      header.path("operator").asText(""),
      Option(header.get("state_format_version")).filter(_.isInt).map(_.asInt()),
      header.path("rows").asLong(0),
      segments,
      BaseDemand.of(header, index, reply.payload, payloadFrom),
      byKeyGroup)
  }

  /** The reply that the driver gives itself. */
  def current(limits: ShippingLimits): Message = {
    val header = Message.newHeader().put("current", true)
    limits.putInto(header)
    Message(Message.Ok, header.toString)
  }
}

/**
 * The reply to [[Ack]].
 *
 * @param outcome          one of the names in the companion object
 * @param stateId          id of the state that counts
 * @param isComplete       true if this ack completes a checkpoint
 * @param completedVersion newest complete version of the job
 * @param reason           reason for people, if the ack does not count
 */
private[ckpt] final case class AckReply(
    outcome: String,
    stateId: Option[String],
    base: BaseDemand,
    isComplete: Boolean,
    completedVersion: Long,
    reason: Option[String]) {

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

  def of(reply: Message): AckReply = {
    val header = reply.json
    AckReply(
      header.path("outcome").asText(),
      Option(header.path("ckpt_id").asText(null)),
      BaseDemand.of(header, ByteBuffer.wrap(reply.index).order(ByteOrder.LITTLE_ENDIAN), reply.payload, 0),
      header.path("completed").isNumber,
      header.path("completed_version").asLong(),
      Option(header.path("reason").asText(null)))
  }
}

/** The reply to [[EndOffsets]]: the checkpoint is durable. */
private[ckpt] final case class EndOffsetsReply(completedVersion: Long)

private[ckpt] object EndOffsetsReply {
  def of(reply: Message): EndOffsetsReply = EndOffsetsReply(reply.json.path("completed_version").asLong())
}

/** The reply to [[Query]]. */
private[ckpt] final case class QueryReply(active: Boolean) {
  def toMessage: Message = Message(Message.Ok, Message.newHeader().put("active", active).toString)
}

private[ckpt] object QueryReply {
  def of(reply: Message): QueryReply = QueryReply(reply.json.path("active").asBoolean())
}

/** The reply to [[Trigger]], with the fields that the JVM needs. */
private[ckpt] final case class TriggerReply(limits: ShippingLimits)

private[ckpt] object TriggerReply {
  def of(reply: Message): TriggerReply = TriggerReply(ShippingLimits.of(reply.json))
}
