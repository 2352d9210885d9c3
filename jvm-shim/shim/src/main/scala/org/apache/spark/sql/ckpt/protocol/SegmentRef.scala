// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.protocol

import java.nio.{ByteBuffer, ByteOrder}

import com.fasterxml.jackson.annotation.JsonFormat
import com.fasterxml.jackson.core.{JsonGenerator, JsonParser}
import com.fasterxml.jackson.databind.{DeserializationContext, SerializerProvider}
import com.fasterxml.jackson.databind.annotation.{JsonDeserialize, JsonSerialize}
import com.fasterxml.jackson.databind.deser.std.StdDeserializer
import com.fasterxml.jackson.databind.ser.std.StdSerializer

/**
 * A state file.
 *
 * @param name  relative to the `ckpt` directory
 * @param bytes length, so that no request has to ask for it
 */
private[ckpt] final case class LocatedFile(name: String, bytes: Long)

/** Condition on a row: its key belongs to one of these partitions of `parallelism`. In JSON an array. */
@JsonFormat(shape = JsonFormat.Shape.ARRAY)
private[ckpt] final case class PartitionFilter(
    parallelism: Int, @JsonDeserialize(contentAs = classOf[java.lang.Integer]) partitions: Set[Int])

/**
 * A segment of keyed state: the one description of it, from the writer to the ack and from a reply to the reader.
 *
 * @param firstVersion first version whose changes it has: 0 for a base, which has all of the state
 * @param version      last of these versions, which is that of the state it leads to
 * @param blocks       its blocks, one for each key group
 * @param size         bytes of the segment; after a rescale, an estimate
 * @param path         file relative to the `ckpt` directory; None if the blocks have the bytes
 * @param fileSize     bytes of that file, which may hold other segments too
 * @param filters      conditions on a row; all must hold
 * @param flags        bits that its writer set for its reader
 */
private[ckpt] final case class SegmentRef(
    firstVersion: Long,
    version: Long,
    blocks: Blocks,
    size: Long,
    path: Option[String] = None,
    fileSize: Long = 0,
    filters: Seq[PartitionFilter] = Nil,
    flags: Int = 0) {

  def isBase: Boolean = firstVersion == 0

  def file: Option[LocatedFile] = path.map(LocatedFile(_, fileSize))

  def keyGroups: Array[Int] = blocks.keyGroups

  /** Starts of the blocks, in the file or in `data`. */
  def offsets: Array[Long] = blocks.offsets

  /** The bytes of a segment without a file. */
  def data: Array[Byte] = blocks.data

  /** Number of versions whose changes a delta has. */
  def covers: Int = if (isBase) 1 else (version - firstVersion + 1).toInt
}

/**
 * Blocks of a segment. In JSON they are their number: index and payload of the message have the blocks themselves.
 *
 * @param keyGroups key group of each, ascending in deltas to be merged
 * @param offsets   start of each, in the segment's file or in `data`, ascending in segments to be loaded
 * @param data      bytes of a segment without a file
 */
@JsonSerialize(using = classOf[BlocksWriter])
@JsonDeserialize(using = classOf[BlocksReader])
private[ckpt] sealed class Blocks(
    val keyGroups: Array[Int], val offsets: Array[Long], val data: Array[Byte] = Message.NoBytes) {

  /** Their number. */
  def count: Int = offsets.length
}

/** Blocks of which only the number is known yet. */
private[protocol] final class ExpectedBlocks(override val count: Int)
    extends Blocks(Array.emptyIntArray, Array.emptyLongArray)

private[protocol] final class BlocksWriter extends StdSerializer[Blocks](classOf[Blocks]) {
  override def serialize(blocks: Blocks, out: JsonGenerator, provider: SerializerProvider): Unit =
    out.writeNumber(blocks.count)
}

private[protocol] final class BlocksReader extends StdDeserializer[Blocks](classOf[Blocks]) {
  override def deserialize(in: JsonParser, context: DeserializationContext): Blocks = {
    val count = _parseIntPrimitive(in, context)
    if (count < 0) context.reportInputMismatch[Any](classOf[Blocks], s"$count blocks")
    new ExpectedBlocks(count)
  }
}

private[ckpt] object Blocks {
  private val GroupBytes = 4
  private val BytesPerBlock = 12

  /** Key groups (uint32) and then offsets (int64) of each segment, little-endian (docs/protocol.md, section 1.2). */
  private[protocol] def index(segments: Seq[SegmentRef]): Array[Byte] = {
    val buffer = ByteBuffer.allocate(segments.iterator.map(_.blocks.count * BytesPerBlock).sum)
      .order(ByteOrder.LITTLE_ENDIAN)
    segments.foreach { segment =>
      segment.keyGroups.foreach(buffer.putInt)
      segment.offsets.foreach(buffer.putLong)
    }
    buffer.array()
  }

  /** The bytes of the segments without a file. */
  private[protocol] def payload(segments: Seq[SegmentRef]): Array[Byte] =
    segments.map(_.data).filter(_.nonEmpty) match {
      case Seq() => Message.NoBytes
      case Seq(one) => one
      case many => Array.concat(many: _*)
    }

  /** Takes the blocks of one segment after another from the index and the payload of a message. */
  private[protocol] final class Cursor(message: Message) {
    private val index = ByteBuffer.wrap(message.index).order(ByteOrder.LITTLE_ENDIAN)
    private var taken = 0

    /** @throws org.apache.spark.sql.ckpt.common.CheckpointFailure if the message is shorter than its header states */
    def next(segment: SegmentRef): SegmentRef = {
      val count = segment.blocks.count
      if (count.toLong * BytesPerBlock > index.remaining) throw tooShort(s"$count blocks")
      val keyGroups = new Array[Int](count)
      index.asIntBuffer().get(keyGroups)
      index.position(index.position() + count * GroupBytes)
      val offsets = new Array[Long](count)
      index.asLongBuffer().get(offsets)
      index.position(index.position() + count * java.lang.Long.BYTES)
      val bytes = if (segment.path.isDefined) Message.NoBytes else data(segment)
      segment.copy(blocks = new Blocks(keyGroups, offsets, bytes))
    }

    private def data(segment: SegmentRef): Array[Byte] = {
      if (segment.size < 0 || segment.size > message.payload.length - taken) throw tooShort(s"${segment.size} bytes")
      val from = taken
      taken += segment.size.toInt
      java.util.Arrays.copyOfRange(message.payload, from, taken)
    }

    private def tooShort(what: String) =
      Message.malformed(message.kind, s"a segment has $what, and less is in the index or the payload")
  }
}
