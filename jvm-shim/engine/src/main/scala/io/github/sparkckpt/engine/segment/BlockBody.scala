// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

/**
 * Body of a block that stays in its source, whose bytes were checked. Positions are those before compression.
 *
 * @param start position of the body in its source
 */
private[engine] sealed abstract class BlockBody(val start: Long) {

  /** Bytes of memory. */
  def memoryBytes: Long

  /** Fills the start of an array with the bytes from a position on. */
  def readFully(position: Int, to: Array[Byte], count: Int, buffers: BlockBody.Buffers): Unit
}

private[engine] object BlockBody {

  /** Arrays for reads of compressed bodies, one after another. */
  final class Buffers {
    private[BlockBody] var stored = new Array[Byte](0)
    private[BlockBody] var chunk = new Array[Byte](0)

    /** Bytes of memory. */
    def memoryBytes: Long = stored.length.toLong + chunk.length
  }

  /** A body without compression. */
  final class Plain(source: ByteSource, start: Long) extends BlockBody(start) {
    override def memoryBytes: Long = 24

    override def readFully(position: Int, to: Array[Byte], count: Int, buffers: Buffers): Unit =
      source.readFully(start + position, to, 0, count)
  }

  /** A body in chunks: those that have the wanted bytes are read at once, and restored one after another. */
  final class Chunked(source: ByteSource, start: Long, chunks: Chunks) extends BlockBody(start) {
    override def memoryBytes: Long = 32 + chunks.memoryBytes

    override def readFully(position: Int, to: Array[Byte], count: Int, buffers: Buffers): Unit = if (count > 0) {
      val first = chunks.chunkAt(position)
      val last = chunks.chunkAt(position + count - 1)
      val from = chunks.storedStart(first)
      val size = chunks.storedStart(last + 1) - from
      if (buffers.stored.length < size) buffers.stored = new Array[Byte](size + size / 8)
      if (buffers.chunk.length < chunks.chunkBytes) buffers.chunk = new Array[Byte](chunks.chunkBytes)
      source.readFully(start + chunks.headBytes + from, buffers.stored, 0, size)
      var copied = 0
      var i = first
      while (i <= last) {
        if (!chunks.restore(i, buffers.stored, chunks.storedStart(i) - from, buffers.chunk, 0)) {
          throw new StateStreamDamagedException(source.name, start, s"chunk $i of a body does not decompress", null)
        }
        val skipped = position + copied - chunks.startOf(i)
        val n = Math.min(count - copied, chunks.plainBytes(i) - skipped)
        System.arraycopy(buffers.chunk, skipped, to, copied, n)
        copied += n
        i += 1
      }
    }
  }
}
