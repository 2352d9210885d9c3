package org.apache.spark.sql.ckpt.backend

import java.io.OutputStream

/** Writes what a batch changed as a delta. */
private[backend] final class DeltaWriter(maxParallelism: Int) {
  private val writer = new SegmentWriter(maxParallelism)

  /** About how many bytes the changes of some families take, not less. O(changes). */
  def size(families: Iterator[KeyedFamily]): Long = {
    var size = 0L
    val cursor = new EntryCursor
    families.foreach { f =>
      ChangeSource.of(f).foreach { source =>
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
  def write(families: Iterator[KeyedFamily], version: Long, out: OutputStream): SegmentInfo =
    writer.write(families.flatMap(ChangeSource.of).toArray, isBase = false, version, out)
}
