// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

import java.util.Arrays

import io.github.sparkckpt.engine.bytes.{Bytes, ListCursor}

import org.apache.spark.unsafe.Platform

/**
 * Order of the entries of a section by the hashes of their keys, as unsigned numbers. In this order [[BaseLookups]]
 * find a key without loading the others. An instance can be used again, by one thread.
 */
private[engine] final class HashOrder {
  import HashOrder._

  // Of each entry the hash above its number.
  private var order = Array.emptyLongArray
  private var sorted = Array.emptyLongArray
  private var copy = Array.emptyByteArray

  // Starts in the copy; empty for entries of the same lengths.
  private var keyStarts = Array.emptyIntArray
  private var valueStarts = Array.emptyIntArray

  /** Bytes of memory, estimated during a sort. */
  def memoryBytes: Long =
    (order.length + sorted.length) * 8L + copy.length + (keyStarts.length + valueStarts.length) * 4L

  /**
   * Brings the entries of a section into the order.
   *
   * @param bytes array with the section
   * @param end   end of its values
   * @return false if it is too large, and stays as it is
   */
  def sort(bytes: Array[Byte], section: SectionLayout, end: Int): Boolean = {
    val from = section.keyLengthsAt
    if (end - from > MaxBytes) {
      false
    } else {
      if (section.rows > 1) {
        reserve(section, end - from)
        note(bytes, section)
        sortByHash(section.rows)
        System.arraycopy(bytes, from, copy, 0, end - from)
        place(bytes, section)
      }
      true
    }
  }

  private def reserve(section: SectionLayout, size: Int): Unit = {
    if (copy.length < size) copy = new Array[Byte](size)
    if (order.length < section.rows) {
      order = new Array[Long](section.rows)
      sorted = new Array[Long](section.rows)
    }
    if (!section.sameKeys && keyStarts.length < section.rows) keyStarts = new Array[Int](section.rows)
    if (!section.sameValues && valueStarts.length < section.rows) valueStarts = new Array[Int](section.rows)
  }

  private def note(bytes: Array[Byte], section: SectionLayout): Unit = {
    var keyAt = section.keysAt
    var i = 0
    while (i < section.rows) {
      val length = section.keyLength(i)
      val hash = Bytes.hash(bytes, Platform.BYTE_ARRAY_OFFSET.toLong + keyAt, length)
      order(i) = ((hash & 0xFFFFFFFFL) << NumberBits) | i
      if (!section.sameKeys) keyStarts(i) = keyAt - section.keyLengthsAt
      keyAt += length
      i += 1
    }
    if (!section.sameValues) {
      var valueAt = keyAt - section.keyLengthsAt
      i = 0
      while (i < section.rows) {
        valueStarts(i) = valueAt
        valueAt += section.valueLength(i)
        i += 1
      }
    }
  }

  /** A radix sort takes a few nanoseconds per entry, a comparison sort of a large key group some fifty. */
  private def sortByHash(n: Int): Unit =
    if (n < MinRadix) {
      Arrays.sort(order, 0, n)
    } else {
      var shift = NumberBits
      while (shift < NumberBits + 32) {
        pass(n, shift)
        shift += DigitBits
      }
    }

  private def pass(n: Int, shift: Int): Unit = {
    val next = new Array[Int](1 << DigitBits)
    val mask = next.length - 1
    var i = 0
    while (i < n) {
      next((order(i) >>> shift).toInt & mask) += 1
      i += 1
    }
    var sum = 0
    var digit = 0
    while (digit < next.length) {
      val count = next(digit)
      next(digit) = sum
      sum += count
      digit += 1
    }
    i = 0
    while (i < n) {
      val digit = (order(i) >>> shift).toInt & mask
      sorted(next(digit)) = order(i)
      next(digit) += 1
      i += 1
    }
    val done = order
    order = sorted
    sorted = done
  }

  /** Copies lengths, keys and values back in the new order. */
  private def place(bytes: Array[Byte], section: SectionLayout): Unit = {
    val from = section.keyLengthsAt
    val start = Platform.BYTE_ARRAY_OFFSET.toLong
    // Lengths are read from the copy, since those in the array are replaced.
    val old = new SectionLayout(copy, section.rows, section.sameKeys, section.sameValues, 0)
    val valuesAt = old.keysAt + keyBytes(old)
    var keyAt = start + section.keysAt
    var valueAt = start + from + valuesAt
    var i = 0
    while (i < section.rows) {
      val entry = order(i).toInt & Int.MaxValue
      val keyLength = old.keyLength(entry)
      val valueLength = old.valueLength(entry)
      if (!section.sameKeys) ListCursor.putInt(bytes, start + section.keyLengthsAt + 4 * i, keyLength)
      if (!section.sameValues) ListCursor.putInt(bytes, start + section.valueLengthsAt + 4 * i, valueLength)
      val keyStart = if (section.sameKeys) old.keysAt + entry * keyLength else keyStarts(entry)
      val valueStart = if (section.sameValues) valuesAt + entry * valueLength else valueStarts(entry)
      Bytes.copy(copy, start + keyStart, bytes, keyAt, keyLength)
      Bytes.copy(copy, start + valueStart, bytes, valueAt, valueLength)
      keyAt += keyLength
      valueAt += valueLength
      i += 1
    }
  }

  private def keyBytes(section: SectionLayout): Int =
    if (section.sameKeys) {
      section.rows * section.keyLength(0)
    } else {
      val last = section.rows - 1
      keyStarts(last) + section.keyLength(last) - section.keysAt
    }
}

private[engine] object HashOrder {

  /** Most bytes of a section that is sorted, which takes as many again. */
  final val MaxBytes = 64 << 20

  private final val NumberBits = 31
  private final val DigitBits = 11
  private final val MinRadix = 1024
}
