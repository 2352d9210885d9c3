// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.bytes

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32

/** Primitive operations on the bytes of rows. */
object Bytes {
  private final val MaxInlineCopy = 96

  /** Hash of a key, as `UnsafeRow.hashCode`. The length is a multiple of 8. */
  def hash(base: AnyRef, offset: Long, length: Int): Int =
    Murmur3_x86_32.hashUnsafeWords(base, offset, length, 42)

  /** True if two keys of one length, a multiple of 8, are equal. */
  def equalWords(a: AnyRef, aOffset: Long, b: AnyRef, bOffset: Long, length: Int): Boolean = {
    var i = 0
    while (i < length && Platform.getLong(a, aOffset + i) == Platform.getLong(b, bOffset + i)) {
      i += 8
    }
    i >= length
  }

  /** True if a slice, of a length that is a multiple of 8, has these bytes. */
  def isEqual(slice: Slice, base: AnyRef, offset: Long, length: Int): Boolean =
    slice.length == length && equalWords(slice.base, slice.offset, base, offset, length)

  /** Copies bytes. Short rows are copied word by word, without a call of the JVM's copy routine. */
  def copy(from: AnyRef, fromOffset: Long, to: AnyRef, toOffset: Long, length: Int): Unit = {
    if (length <= MaxInlineCopy && (length & 7) == 0) {
      var i = 0
      while (i < length) {
        Platform.putLong(to, toOffset + i, Platform.getLong(from, fromOffset + i))
        i += 8
      }
    } else {
      Platform.copyMemory(from, fromOffset, to, toOffset, length)
    }
  }

  /** Bytes in a new array. */
  def toArray(base: AnyRef, offset: Long, length: Int): Array[Byte] = {
    val bytes = new Array[Byte](length)
    Platform.copyMemory(base, offset, bytes, Platform.BYTE_ARRAY_OFFSET, length)
    bytes
  }

  /** Words of 8 bytes that hold this many bytes. */
  def words(length: Int): Int = ((length.toLong + 7) >>> 3).toInt
}
