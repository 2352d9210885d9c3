// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.files

import java.io.OutputStream

import io.github.sparkckpt.engine.segment.{SegmentBytes, SegmentInfo}

import org.apache.spark.sql.ckpt.protocol.{Blocks, SegmentRef}

/** New segments of a store: their bytes travel with an ack, or are in a file. */
private[ckpt] object NewSegments {

  /** A segment whose bytes travel with an ack. */
  def inline(firstVersion: Long, version: Long, segment: SegmentBytes): SegmentRef = {
    val info = segment.info
    val blocks = new Blocks(info.keyGroups, info.offsets, segment.bytes)
    SegmentRef(firstVersion, version, blocks, info.bytes, flags = info.flags)
  }

  /**
   * Writes a segment to a file of its own.
   *
   * @param kind first part of the file name
   */
  def inFile(files: StateFiles, kind: String, firstVersion: Long, version: Long)(
      write: OutputStream => SegmentInfo): SegmentRef = {
    var info: SegmentInfo = null
    val name = files.write(kind)(out => info = write(out))
    inFile(name, start = 0, info.bytes, firstVersion, version, info)
  }

  /**
   * A segment in a file.
   *
   * @param path     file relative to the `ckpt` directory
   * @param start    start of the segment in the file
   * @param fileSize bytes of the file
   */
  def inFile(
      path: String, start: Long, fileSize: Long, firstVersion: Long, version: Long, info: SegmentInfo): SegmentRef = {
    val offsets = if (start == 0) info.offsets else info.offsets.map(_ + start)
    val blocks = new Blocks(info.keyGroups, offsets)
    SegmentRef(firstVersion, version, blocks, info.bytes, Some(path), fileSize, flags = info.flags)
  }
}
