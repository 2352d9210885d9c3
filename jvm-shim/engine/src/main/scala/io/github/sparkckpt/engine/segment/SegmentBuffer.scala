// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

import java.io.OutputStream
import java.util.Arrays

/** Buffer for a segment in memory: a `ByteArrayOutputStream` without locks, and without a copy if the segment fits. */
private[engine] final class SegmentBuffer(expected: Long) extends OutputStream {
  private var bytes = new Array[Byte](math.max(64L, math.min(expected, SegmentFormat.MaxInMemoryBytes)).toInt)
  private var count = 0

  override def write(b: Int): Unit = {
    reserve(1)
    bytes(count) = b.toByte
    count += 1
  }

  override def write(from: Array[Byte], offset: Int, length: Int): Unit = {
    reserve(length)
    System.arraycopy(from, offset, bytes, count, length)
    count += length
  }

  private def reserve(n: Int): Unit = {
    if (count.toLong + n > SegmentFormat.MaxInMemoryBytes) {
      throw new StateTooLargeException(
        "A segment of more than 1 GiB does not fit into one array: write it to a stream.")
    }
    if (count + n > bytes.length) {
      val length = math.max(count + n.toLong, bytes.length * 2L)
      bytes = Arrays.copyOf(bytes, math.min(SegmentFormat.MaxInMemoryBytes.toLong, length).toInt)
    }
  }

  def toArray: Array[Byte] = if (count == bytes.length) bytes else Arrays.copyOf(bytes, count)
}
