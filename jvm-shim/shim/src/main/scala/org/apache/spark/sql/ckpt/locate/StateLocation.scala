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
package org.apache.spark.sql.ckpt.locate

import java.io.Closeable

import scala.collection.mutable.ArrayBuffer

import io.github.sparkckpt.engine.segment.{ArrayByteSource, ByteSource, StateSegment}

import org.apache.spark.sql.ckpt.files.{ReadAhead, StateFiles}
import org.apache.spark.sql.ckpt.protocol.{BaseDemand, LocateReply, LocatedFile, PartitionFilter}

/**
 * Location of the state of a version: the reply to `locate` (docs/protocol.md, section 1.3).
 *
 * @param stateId     id of the state, empty at version 0
 * @param parallelism number of the store's subtasks at that version, if found in the directory
 * @param base        the coordinator's demand for a base of that version
 * @param byKeyGroup  true if each key group may be loaded when it is needed: `rows` is exact, and the segments have
 *                    their key groups
 */
private[ckpt] final case class StateLocation(
    stateId: String,
    factors: Array[Int],
    operator: String,
    stateFormatVersion: Option[Int],
    rows: Long,
    segments: Seq[StateLocation.Segment],
    parallelism: Option[Int] = None,
    base: BaseDemand = BaseDemand.Nothing,
    byKeyGroup: Boolean = false)

private[ckpt] object StateLocation {

  /**
   * One base or delta, in a file or in bytes of the reply. Offsets are starts of blocks.
   *
   * @param filters conditions on a row; all must hold
   * @param covers  number of versions whose changes a delta has
   * @param keyGroups key groups of the blocks, empty if they are unknown
   * @param bytes   bytes of the segment, 0 if unknown; after a rescale, an estimate
   * @param isOrdered true if it has all of the state at its version, in the order of hashes
   */
  final case class Segment(
      isBase: Boolean,
      file: Option[LocatedFile],
      offsets: Array[Long],
      inline: Array[Byte],
      filters: Seq[PartitionFilter] = Nil,
      covers: Int = 1,
      keyGroups: Array[Int] = Array.emptyIntArray,
      bytes: Long = 0,
      isOrdered: Boolean = false) {

    /** Opens the segment with all its rows; the caller closes its source. */
    def open(files: StateFiles): StateSegment = StateSegment(isBase, source(files.source), offsets)

    private[ckpt] def source(ofFile: LocatedFile => ByteSource): ByteSource =
      file.fold[ByteSource](new ArrayByteSource("state inside _metadata", inline))(ofFile)
  }

  def of(reply: LocateReply): StateLocation = StateLocation(
    reply.stateId,
    reply.keyGroupFactors,
    reply.operator,
    reply.stateFormatVersion,
    reply.rows,
    reply.segments.map { found =>
      Segment(found.isBase, found.file, found.offsets, found.inline, found.filters, found.covers,
        found.keyGroups, found.bytes, found.isOrdered)
    },
    base = reply.base,
    byKeyGroup = reply.byKeyGroup)
}

/**
 * The open segments of a location, with a count of the bytes read. Where requests take long, all files are read ahead
 * at the same time.
 *
 * @param byKeyGroup true if they may be loaded one key group at a time
 */
private[ckpt] final class OpenSegments(
    location: StateLocation, files: StateFiles, partitions: RowPartitions, byKeyGroup: Boolean = false)
    extends Closeable {
  private val sources = ArrayBuffer.empty[ByteSource]
  private val ahead = new ReadAhead(files)
  private var bytes = 0L

  def bytesRead: Long = bytes

  /** Opens all segments; `close` closes them even after an error. */
  def open(): Seq[StateSegment] = {
    val opened = location.segments.map { segment =>
      val source = segment.source { file =>
        if (files.isRemote) ahead.source(file, segment.offsets) else files.source(file)
      }
      sources += source
      // Files that are read ahead come one after another.
      val keyGroups = if (byKeyGroup && !files.isRemote) segment.keyGroups else Array.emptyIntArray
      StateSegment(
        segment.isBase, new Counted(source), segment.offsets, partitions.filter(location, segment), keyGroups)
    }
    ahead.start()
    opened
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
