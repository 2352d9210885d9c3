// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import java.io.OutputStream

import io.github.sparkckpt.engine.bytes.EntryCursor
import io.github.sparkckpt.engine.segment.{BlockCodec, SegmentFormat, SegmentInfo, SegmentSource, SegmentWriter}

/** Writer of a batch's changes as a delta. */
private[engine] final class DeltaWriter(maxParallelism: Int, codec: BlockCodec) {
  private val writer = new SegmentWriter(maxParallelism, codec)

  /** Bytes of memory, estimated while a delta is written. From any thread. */
  def memoryBytes: Long = writer.memoryBytes

  /** Approximate bytes of the changes of some families, not less than the actual number. O(changes). */
  def size(families: Iterator[HashMapTable]): Long = {
    var size = 0L
    val cursor = new EntryCursor
    families.foreach { f =>
      f.changes.foreach { source =>
        var id = 0
        while (id < source.count) {
          if (source.contains(id)) {
            source.point(id, cursor)
            size += 8L + cursor.keyLength + math.max(0, cursor.valueLength)
          }
          id += 1
        }
        size += math.min(maxParallelism, f.buffer.count) * (SegmentFormat.HeaderBytes + 15L + 3L * f.name.length)
      }
    }
    size
  }

  /** @param version the version that the changes lead to */
  def write(families: Iterator[HashMapTable], version: Long, out: OutputStream): SegmentInfo =
    try {
      writer.write(families.flatMap(_.changes).toArray[SegmentSource], isBase = false, version, out)
    } finally writer.trim()
}
