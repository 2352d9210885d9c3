// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

import io.github.sparkckpt.engine.bytes.{Bytes, EntryCursor}

import org.apache.spark.unsafe.Platform

/** Writes sections of a block (docs/protocol.md section 2). A writer can be used again, by one thread. */
private[engine] final class SectionWriter(block: BlockBuilder) {
  import SegmentFormat._

  private val cursor = new EntryCursor
  private var keyLengths = new Array[Int](64)
  private var valueLengths = new Array[Int](64)

  /** Bytes of memory, estimated while a section is written. */
  def memoryBytes: Long = (keyLengths.length + valueLengths.length) * 4L

  /**
   * Adds a section to the block.
   *
   * @param ids  ids of its entries, from `from` on
   * @param n    number of entries, at least 1
   */
  def write(source: EntrySource, ids: Array[Int], from: Int, n: Int, group: Int): Unit = {
    if (n > keyLengths.length) {
      keyLengths = new Array[Int](math.max(n, keyLengths.length * 2))
      valueLengths = new Array[Int](keyLengths.length)
    }
    var keyBytes = 0L
    var valueBytes = 0L
    var sameKeys = true
    var sameValues = true
    var i = 0
    while (i < n) {
      source.point(ids(from + i), cursor)
      keyLengths(i) = cursor.keyLength
      valueLengths(i) = cursor.valueLength
      keyBytes += cursor.keyLength
      if (cursor.valueLength > 0) valueBytes += cursor.valueLength
      sameKeys &= cursor.keyLength == keyLengths(0)
      sameValues &= cursor.valueLength == valueLengths(0)
      i += 1
    }
    // Entries of the empty key get a length each: a reader trusts no number of entries that takes no bytes.
    if (keyBytes == 0 && n > 1) sameKeys = false
    block.startSection(source.family, flags(source), group, n, sameKeys, sameValues, keyBytes + valueBytes)
    block.putInts(keyLengths, if (sameKeys) 1 else n)
    block.putInts(valueLengths, if (sameValues) 1 else n)
    var keyAt = Platform.BYTE_ARRAY_OFFSET.toLong + block.position
    var valueAt = keyAt + keyBytes
    i = 0
    while (i < n) {
      source.point(ids(from + i), cursor)
      Bytes.copy(cursor.keyBase, cursor.keyOffset, block.bytes, keyAt, cursor.keyLength)
      keyAt += cursor.keyLength
      if (cursor.valueLength > 0) {
        Bytes.copy(cursor.valueBase, cursor.valueOffset, block.bytes, valueAt, cursor.valueLength)
        valueAt += cursor.valueLength
      }
      i += 1
    }
    block.position += (keyBytes + valueBytes).toInt
  }
  /**
   * Adds a section with a group's rows.
   *
   * @param n number of them, at least 1
   */
  def write(source: EntrySource, rows: UniformRows, n: Int, group: Int): Unit = {
    val part = rows.part(group)
    block.startSection(
      source.family, flags(source), group, n, sameKeys = true, sameValues = true, part.length)
    block.putInt(rows.keyLength)
    block.putInt(rows.valueLength)
    System.arraycopy(part, 0, block.bytes, block.position, part.length)
    block.position += part.length
  }

  private def flags(source: EntrySource): Int =
    (if (source.multiValue) Lists else 0) | (if (source.appends) Appends else 0)
}
