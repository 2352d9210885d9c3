// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

import java.io.{Closeable, EOFException}

/** Bytes with blocks: a file, or bytes of a reply. Used by one thread at a time. */
trait ByteSource extends Closeable {

  /** Name for error messages, a path where there is one. */
  def name: String

  /** Number of readable bytes, from position 0. */
  def length: Long

  /** Fills `buffer(from)` until `from + count` with the bytes from `position`, or throws `IOException`. */
  def readFully(position: Long, buffer: Array[Byte], from: Int, count: Int): Unit
}

/** Bytes in memory, `from` until `from + count` of an array. Positions are relative to `from`. */
final class ArrayByteSource(val name: String, array: Array[Byte], from: Int, count: Int) extends ByteSource {

  def this(name: String, array: Array[Byte]) = this(name, array, 0, array.length)

  override def length: Long = count

  override def readFully(position: Long, buffer: Array[Byte], bufferFrom: Int, n: Int): Unit = {
    if (position < 0 || position + n > count) {
      throw new EOFException(s"$name ends at $count, expected ${position + n}")
    }
    System.arraycopy(array, from + position.toInt, buffer, bufferFrom, n)
  }

  override def close(): Unit = ()
}
