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

import java.io.Closeable
import java.nio.{ByteBuffer, ByteOrder}

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.FSDataInputStream

import org.apache.spark.sql.ckpt.Message
import org.apache.spark.sql.ckpt.backend.{ArrayByteSource, ByteSource, StateSegment}

/**
 * Where the state of a version is: the answer to `locate` (docs/protocol.md, section 1.3).
 *
 * @param stateId     the id of that state, empty at version 0
 * @param parallelism number of subtasks of the store at that version, if it was found in the directory
 */
private[ckpt] final case class StateLocation(
    stateId: String,
    factors: Array[Int],
    operator: String,
    stateFormatVersion: Option[Int],
    rows: Long,
    segments: Seq[StateLocation.Segment],
    parallelism: Option[Int] = None)

private[ckpt] object StateLocation {

  /**
   * One base or delta: in a file, or in bytes that came with the answer. Offsets are starts of blocks.
   *
   * @param filters what a row must pass to count, all of them
   */
  final case class Segment(
      isBase: Boolean,
      path: Option[String],
      offsets: Array[Long],
      inline: Array[Byte],
      filters: Seq[PartitionFilter] = Nil) {

    /** Opens the segment, with all of its rows; the caller closes its source. */
    def open(files: StateFiles): StateSegment = {
      val source = path match {
        case Some(name) => new HadoopByteSource(files.path(name).toString, files.open(name), files.length(name))
        case None => new ArrayByteSource("state inside _metadata", inline)
      }
      StateSegment(isBase, source, offsets)
    }
  }

  def of(reply: Message): StateLocation = {
    val header = reply.json
    val index = ByteBuffer.wrap(reply.index).order(ByteOrder.LITTLE_ENDIAN)
    var payloadFrom = 0
    val segments = header.path("segments").elements().asScala.toSeq.map { segment =>
      val offsets = Array.fill(segment.path("count").asInt())(index.getLong())
      val path = Option(segment.path("path").asText(null))
      val inline = if (path.isDefined) Message.NoBytes
      else {
        val length = segment.path("bytes").asInt()
        val bytes = java.util.Arrays.copyOfRange(reply.payload, payloadFrom, payloadFrom + length)
        payloadFrom += length
        bytes
      }
      Segment(segment.path("kind").asText() == "base", path, offsets, inline, PartitionFilter.of(segment.path("filters")))
    }
    StateLocation(
      header.path("ckpt_id").asText(""),
      header.path("key_group_factors").elements().asScala.map(_.asInt()).toArray,
      header.path("operator").asText(""),
      Option(header.get("state_format_version")).filter(_.isInt).map(_.asInt()),
      header.path("rows").asLong(0),
      segments)
  }
}

/** The segments of a location while they are read, and how much has been read of them. */
private[ckpt] final class OpenSegments(location: StateLocation, files: StateFiles, partitions: RowPartitions)
    extends Closeable {
  private val sources = ArrayBuffer.empty[ByteSource]
  private var bytes = 0L

  def bytesRead: Long = bytes

  /** Opens them; also after an error, what is open is closed by `close`. */
  def open(): Seq[StateSegment] = location.segments.map { segment =>
    val opened = segment.open(files)
    sources += opened.source
    opened.copy(source = new Counted(opened.source), rows = partitions.filter(location, segment))
  }

  override def close(): Unit = sources.foreach(_.close())

  private final class Counted(source: ByteSource) extends ByteSource {
    override def name: String = source.name

    override def length: Long = source.length

    override def readFully(position: Long, buffer: Array[Byte], from: Int, count: Int): Unit = {
      source.readFully(position, buffer, from, count)
      bytes += count
    }

    override def close(): Unit = source.close()
  }
}

/** A state file read through Hadoop. */
private[executor] final class HadoopByteSource(val name: String, in: FSDataInputStream, val length: Long)
    extends ByteSource {

  override def readFully(position: Long, buffer: Array[Byte], from: Int, count: Int): Unit = {
    if (in.getPos != position) in.seek(position)
    in.readFully(buffer, from, count)
  }

  override def close(): Unit = in.close()
}
