// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import java.io.IOException
import java.util.concurrent.atomic.AtomicInteger
import java.util.zip.CRC32C

/**
 * A page in a local file, shared by a table and its snapshots.
 *
 * @param firstBlock first block in the file
 * @param blocks     blocks in the file
 * @param length     bytes
 * @param sums       CRC32C of each block of its bytes
 */
private[engine] final class LocalPage(
    file: LocalFile,
    val firstBlock: Int,
    val blocks: Int,
    val length: Int,
    sums: Array[Int]) {
  import LocalFile.{BlockBytes, BlockShift}

  private val users = new AtomicInteger(1)

  /** Bytes of memory. */
  def memoryBytes: Long = 64L + sums.length * 4L

  def position: Long = firstBlock.toLong << BlockShift

  /** True if its blocks are free, and may have the bytes of another page. */
  def isFree: Boolean = users.get() == 0

  /** Another user. */
  def retain(): Unit = users.incrementAndGet()

  /** Ends one use. With the last one the blocks become free. */
  def release(): Unit = if (users.decrementAndGet() == 0) file.free(this)

  /** The bytes. */
  def read(): Array[Byte] = {
    val bytes = new Array[Byte](length)
    file.read(this, 0, length, bytes, 0)
    bytes
  }

  /**
   * The record at an offset, in an array of its own.
   *
   * @param expected likely bytes of the record: if it is no longer, one read suffices
   */
  def record(offset: Int, linkWords: Int, expected: Int): Array[Byte] = {
    val start = offset & -BlockBytes
    val scratch = LocalFile.Scratch.get()
    val first = endOfBlock(math.min(length.toLong, offset + math.max(16L, math.min(expected.toLong, 3L * BlockBytes))))
    file.read(this, start, first, scratch.bytes, 0)
    val size = TableRecord.bytesAt(scratch.bytes, offset - start, linkWords)
    if (size <= 0 || offset + size > length) {
      throw new IllegalStateException(s"a record of $size bytes is at $offset of a page of $length bytes")
    }
    val record = new Array[Byte](size.toInt)
    val have = math.min(size.toInt, first - offset)
    System.arraycopy(scratch.bytes, offset - start, record, 0, have)
    if (have < size) {
      val last = endOfBlock(offset + size)
      val rest = if (last - first <= scratch.bytes.length) scratch.bytes else new Array[Byte](last - first)
      file.read(this, first, last, rest, 0)
      System.arraycopy(rest, 0, record, have, size.toInt - have)
    }
    record
  }

  private def endOfBlock(at: Long): Int = math.min(length.toLong, (at + BlockBytes - 1) & -BlockBytes.toLong).toInt

  /** Checks the blocks of bytes that were read. */
  private[engine] def check(from: Int, until: Int, bytes: Array[Byte], at: Int): Unit = {
    val crc = new CRC32C
    var done = from
    while (done < until) {
      val count = math.min(BlockBytes, until - done)
      if (LocalFile.sumOf(crc, bytes, at + done - from, count) != sums(done >>> BlockShift)) {
        throw new IOException(s"the checksum of the block at ${position + done} is wrong")
      }
      done += count
    }
  }
}
