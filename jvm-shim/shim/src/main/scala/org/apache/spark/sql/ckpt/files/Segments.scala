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
package org.apache.spark.sql.ckpt.files

import java.io.OutputStream
import java.nio.{ByteBuffer, ByteOrder}

import io.github.sparkckpt.engine.segment.{SegmentBytes, SegmentInfo}

import org.apache.spark.sql.ckpt.protocol.{Message, SegmentDescription}

/** Start of a task's segment in a shared file, and length of the file. */
private[ckpt] final case class FileShare(start: Long, fileBytes: Long)

/**
 * A segment for the coordinator: its bytes if they travel with the ack, else the file with them.
 *
 * @param path  name relative to the `ckpt` directory, or None
 * @param bytes bytes of the segment, empty if it is in a file
 * @param share its part of the file, None for a whole file
 */
private[ckpt] final case class ShippedSegment(
    info: SegmentInfo,
    path: Option[String],
    bytes: Array[Byte],
    share: Option[FileShare] = None) {

  /** Description of the segment in an ack. */
  def describe(rows: Long): SegmentDescription =
    SegmentDescription(
      share.map(_.start), share.map(_.fileBytes), info.keyGroups.length, info.bytes, rows, path, info.isCompressed,
      info.isOrdered)
}

private[ckpt] object ShippedSegment {
  def inline(segment: SegmentBytes): ShippedSegment = ShippedSegment(segment.info, None, segment.bytes)

  /**
   * Writes a segment to a file of its own.
   *
   * @param kind first part of the file name
   */
  def inFile(files: StateFiles, kind: String)(write: OutputStream => SegmentInfo): ShippedSegment = {
    var info: SegmentInfo = null
    val name = files.write(kind)(out => info = write(out))
    ShippedSegment(info, Some(name), Message.NoBytes)
  }

  /** Key groups (uint32) then offsets (int64) of every segment, little-endian (docs/protocol.md, section 1.2). */
  def index(segments: Seq[ShippedSegment]): Array[Byte] = {
    val size = segments.map(_.info.keyGroups.length * 12).sum
    val buffer = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN)
    segments.foreach { segment =>
      segment.info.keyGroups.foreach(buffer.putInt)
      segment.info.offsets.foreach(buffer.putLong)
    }
    buffer.array()
  }

  def payload(segments: Seq[ShippedSegment]): Array[Byte] = segments.map(_.bytes).filter(_.nonEmpty) match {
    case Seq() => Message.NoBytes
    case Seq(one) => one
    case many => Array.concat(many: _*)
  }
}
